"""Slugs: texts as they may stand in a URL."""

import re


def slug(text: str, longest: int = 60) -> str:
    """The text in lower case, with a hyphen for whatever is neither letter nor digit."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:longest]

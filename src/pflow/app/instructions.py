"""The page for coding agents."""

from __future__ import annotations

from pathlib import Path


def instructions() -> str:
    """The page."""
    return Path(__file__).with_suffix(".md").read_text(encoding="utf-8")

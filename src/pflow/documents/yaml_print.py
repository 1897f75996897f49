"""YAML from plain data: whatever is printed here reads back as it was."""

from __future__ import annotations

import re
from typing import Any

import yaml

from pflow.documents.position import Malformed
from pflow.documents.yaml_core import TAG, resolved

_TAGS = {type(None): "null", bool: "bool", int: "int", float: "float", str: "str"}
_line_ends = re.compile(r"[\x85\u2028\u2029]")  # of YAML 1.1; only an escape keeps them
_UNFOLDED = 2**30  # the longest line


def dump(data: Any) -> str:
    """Plain data as a YAML text, texts of several lines as blocks."""
    return yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=_UNFOLDED
    )


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # one of two classes
    """Quotes every text that would be read as something else, by asking the reader's own rules."""

    def ignore_aliases(self, data: Any) -> bool:
        """Everything is written out."""
        return True

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """What a scalar would be without quotes."""
        return _plain_tag(value) if kind is yaml.ScalarNode and implicit[0] else super().resolve(kind, value, implicit)


def _plain_tag(text: str) -> str:
    try:
        return TAG + ("merge" if text == "<<" else _TAGS[type(resolved(text, 0))])
    except Malformed:  # digits that are too many for a number
        return TAG + "int"


def _represent_text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(TAG + "str", text, style=_style(text))


def _style(text: str) -> str | None:
    """Blocks for several lines, unless the white space around them would need marks of its own."""
    if "\n" not in text and not _line_ends.search(text):
        return None
    plain = not text[0].isspace() and not text.endswith("\n\n") and not _line_ends.search(text)
    return "|" if plain else '"'


_Dumper.add_representer(str, _represent_text)

"""Positions: where in a text the parts of its data stand.

A *spot* is a value's offset in the text; for a list or mapping it is the offset together with the spots inside.
Offsets become lines and columns only when somebody asks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

Spot: TypeAlias = "int | tuple[int, Inside]"
Inside: TypeAlias = "dict[str, tuple[int, Spot]] | list[Spot]"  # a key's own offset stands before its value's spot
Path: TypeAlias = tuple[str | int, ...]

MAX_DEPTH = 200  # of lists and mappings inside each other: whatever walks a document may recurse
MAX_FAULTS = 100  # of one document: whoever has more does not read them

_line_end = re.compile(r"\r\n?|\n")


class Fault(NamedTuple):
    """Something wrong with a text, at an offset."""

    at: int
    message: str
    hint: str = ""


class Malformed(Exception):
    """A text that cannot be read; ``Source`` turns it into problems with places."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults[0].message)
        self.faults = tuple(faults)


def malformed(at: int, message: str, hint: str = "") -> Malformed:
    """The error for a text with one fault."""
    return Malformed([Fault(at, message, hint)])


class Lines:
    """The lines of a text: which of them an offset is in."""

    __slots__ = ("starts",)

    def __init__(self, text: str) -> None:
        self.starts = [0, *(match.end() for match in _line_end.finditer(text))]

    def locate(self, at: int) -> tuple[int, int]:
        """Line and column of an offset, counted from 1."""
        line = bisect_right(self.starts, at)
        return line, at - self.starts[line - 1] + 1


def offset(spot: Spot, path: Path, key: bool = False) -> int:
    """Where the value at ``path`` stands (its key, if asked for), or the nearest parent of it that exists."""
    at = _own(spot)
    for last, part in enumerate(path, 1 - len(path)):
        inside = spot[1] if isinstance(spot, tuple) else None
        if isinstance(inside, dict) and isinstance(part, str) and part in inside:
            key_at, spot = inside[part]
            at = key_at if key and not last else _own(spot)
        elif isinstance(inside, list) and isinstance(part, int) and 0 <= part < len(inside):
            spot = inside[part]
            at = _own(spot)
        else:
            break
    return at


def _own(spot: Spot) -> int:
    return spot[0] if isinstance(spot, tuple) else spot

"""Reading a document by rules: every dialect asks for what it knows, and every deviation is gathered as a problem.

    reading = Reading(source)
    top = reading.top(("flow", "nodes", "edges"))            # any other key is a problem with a suggestion
    flow = top.fields("flow", ("name", "policy"), required=True)
    name = flow.text("name", required=True)
    for cell in top.items("nodes", required=True): ...
    reading.finish()                                         # raises WorkflowError with all there was

A getter always gives a value of its type, the default where the document has none or a wrong one, so that a
parser reads on and never checks. Null counts as absent, but for ``cell``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Any

from pflow.documents.position import MAX_FAULTS, Path
from pflow.documents.source import Source
from pflow.errors import Place, Problem, WorkflowError, suggest
from pflow.model.value import type_name

LARGEST = 2**53  # of whole numbers: what every reader of JSON keeps exactly

_KINDS = {"null": "nothing (null)", "boolean": "true or false", "number": "a number", "text": "text"}
_KINDS |= {"list": "a list", "object": "a mapping"}
_MAPPING = 'write "key: value" lines below it, or {"key": value}'
_FLAG_WORDS = frozenset({"yes", "no", "on", "off", "true", "false", "y", "n"})


class Reading:
    """A document that is being read, and what was found wrong with it; ``node_id`` is the node it is at."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.node_id = ""

    def top(self, known: Collection[str], alike: float = 0) -> Fields:
        """The document's own mapping."""
        return Cell(self, self.source.data, ()).fields(known, alike)

    def problem(self, message: str, place: Place, hint: str = "", code: str = "invalid") -> None:
        """Note something wrong; after many, no more are noted."""
        if len(self.problems) < MAX_FAULTS:
            self.problems.append(Problem(message, place, hint, code, self.node_id))

    def finish(self) -> None:
        """Raise what was found, in order of place."""
        if self.problems:
            raise WorkflowError(sorted(self.problems, key=lambda p: (p.place.line, p.place.column)))


class Cell:
    """A value in a document, and the path that leads to it."""

    __slots__ = ("path", "reading", "value")

    def __init__(self, reading: Reading, value: Any, path: Path) -> None:
        self.reading = reading
        self.value = value
        self.path = path

    @property
    def place(self) -> Place:
        """Where the value stands."""
        return self.reading.source.place(self.path)

    @property
    def key_place(self) -> Place:
        """Where its key stands."""
        return self.reading.source.key_place(self.path)

    @property
    def label(self) -> str:
        """What messages call it: its key, or its number in a list."""
        if not self.path:
            return "the document"
        last = self.path[-1]
        if isinstance(last, str):
            return f'"{_short(last)}"'
        return f"{_short(str(self.path[-2])) if len(self.path) > 1 else ''}[{last}]"

    def problem(self, message: str, hint: str = "", code: str = "invalid") -> None:
        """Note something wrong with this value."""
        self.reading.problem(message, self.place, hint, code)

    def wrong(self, wanted: str, hint: str = "") -> None:
        """Note that the value is of a wrong type."""
        self.problem(f"{self.label} must be {wanted}, not {_KINDS[type_name(self.value)]}", hint, "type")

    def fields(self, known: Collection[str], alike: float = 0) -> Fields:
        """The value as a mapping with these keys; a key less ``alike`` to all of them, from 0 to 1, is not for us."""
        if not isinstance(self.value, dict):
            self.wrong("a mapping", _MAPPING)
            return Fields(self, None)
        for key in self.value:
            if key not in known and (not alike or get_close_matches(key, known, 1, alike)):
                self._unknown(key, known)
        return Fields(self, self.value)

    def _unknown(self, key: str, known: Collection[str]) -> None:
        if len(self.reading.problems) < MAX_FAULTS:  # looking for the nearest name takes its time
            place = self.reading.source.key_place((*self.path, key))
            message = f'{self.label} has no key "{_short(key)}"' if self.path else f'unknown key "{_short(key)}"'
            self.reading.problem(message, place, suggest(key, known, "known"), "unknown-key")

    def entries(self) -> list[tuple[str, Cell]]:
        """The value as a mapping with keys of the user's own."""
        if not isinstance(self.value, dict):
            self.wrong("a mapping", _MAPPING)
            return []
        return [(key, Cell(self.reading, value, (*self.path, key))) for key, value in self.value.items()]

    def items(self) -> list[Cell]:
        """The value as a list."""
        if not isinstance(self.value, list):
            self.wrong("a list", "write [] for an empty one" if self.value is None else 'start each item with "- "')
            return []
        return [Cell(self.reading, value, (*self.path, n)) for n, value in enumerate(self.value)]

    def text(self) -> str | None:
        """The value as a text, or None for another one."""
        if isinstance(self.value, str):
            return self.value
        self.wrong("text", "quote it" if isinstance(self.value, (bool, int, float)) else "write one text here")
        return None

    def flag(self) -> bool | None:
        """The value as true or false, or None for another one."""
        if isinstance(self.value, bool):
            return self.value
        word = isinstance(self.value, str) and self.value.lower() in _FLAG_WORDS
        self.wrong("true or false", f"{'this word is text here; ' if word else ''}write true or false, without quotes")
        return None

    def number(
        self, least: float = 0, most: float = LARGEST, above: float | None = None, kind: str = "a number"
    ) -> float | None:
        """The value as a number within bounds, or None for another one; ``above`` is a bound it must not reach."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong(kind, "remove the quotes" if _reads_as_number(value) else f"write {kind} here")
            return None
        low = value <= above if above is not None else value < least
        if value != value or low or value > most:  # the first: not a number
            bound = (
                f"at most {most:,}" if value > most else f"above {above}" if above is not None else f"at least {least}"
            )
            self.problem(f"{self.label} must be {bound}, not {str(value)[:40]}", "choose another number", "range")
            return None
        return float(value)

    def whole(self, least: int = 0, most: int = LARGEST) -> int | None:
        """The value as a whole number within bounds, or None for another one."""
        if isinstance(self.value, float) and not self.value.is_integer():
            self.problem(f"{self.label} must be a whole number, not {self.value}", "round it", "type")
            return None
        found = self.number(least, most, kind="a whole number")
        return None if found is None else int(self.value)

    def texts(self) -> Iterator[Cell]:
        """Every text in the value, at any depth."""
        rest = [self]
        while rest:
            cell = rest.pop()
            if isinstance(cell.value, str):
                yield cell
            elif isinstance(cell.value, dict):
                rest.extend(Cell(self.reading, value, (*cell.path, key)) for key, value in cell.value.items())
            elif isinstance(cell.value, list):
                rest.extend(Cell(self.reading, value, (*cell.path, n)) for n, value in enumerate(cell.value))


class Fields:
    """A mapping with known keys. One that is not there has none, and nothing is said about what it lacks."""

    __slots__ = ("_own", "_values")

    def __init__(self, own: Cell, values: dict[str, Any] | None) -> None:
        self._own = own
        self._values = values

    @property
    def reading(self) -> Reading:
        """What gathers the problems."""
        return self._own.reading

    def cell(self, key: str, required: bool = False) -> Cell | None:
        """What stands at a key, null included; None where there is no such key."""
        own = self._own
        if self._values is None:
            return None
        if key in self._values:
            return Cell(own.reading, self._values[key], (*own.path, key))
        if required:
            own.problem(f'{own.label} needs "{key}", which is missing', f'add "{key}"', "missing-key")
        return None

    def _given(self, key: str, required: bool) -> Cell | None:
        """What stands at a key; null only where something must stand, to be refused by its type."""
        cell = self.cell(key, required)
        return None if cell is None or (cell.value is None and not required) else cell

    def fields(self, key: str, known: Collection[str], required: bool = False) -> Fields:
        """The mapping at a key, with these keys and no others."""
        cell = self._given(key, required)
        return Fields(self._own, None) if cell is None else cell.fields(known)

    def entries(self, key: str) -> list[tuple[str, Cell]]:
        """The mapping at a key, with keys of the user's own."""
        cell = self._given(key, False)
        return [] if cell is None else cell.entries()

    def items(self, key: str, required: bool = False) -> list[Cell]:
        """The list at a key."""
        cell = self._given(key, required)
        return [] if cell is None else cell.items()

    def text(self, key: str, default: str = "", required: bool = False) -> str:
        """The text at a key; one that is required must not be empty."""
        cell = self._given(key, required)
        found = None if cell is None else cell.text()
        if cell is not None and required and found is not None and not found.strip():
            cell.problem(f"{cell.label} must not be empty", "give it a value", "missing-key")
        return default if found is None else found

    def flag(self, key: str, default: bool = False) -> bool:
        """The truth value at a key."""
        cell = self._given(key, False)
        found = None if cell is None else cell.flag()
        return default if found is None else found

    def whole(self, key: str, default: int = 0, least: int = 0, most: int = LARGEST, required: bool = False) -> int:
        """The whole number at a key."""
        cell = self._given(key, required)
        found = None if cell is None else cell.whole(least, most)
        return default if found is None else found

    def number(
        self, key: str, least: float = 0, most: float = LARGEST, above: float | None = None, required: bool = False
    ) -> float | None:
        """The number at a key, or None where there is none."""
        cell = self._given(key, required)
        return None if cell is None else cell.number(least, most, above)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"


def _reads_as_number(value: Any) -> bool:
    try:
        return isinstance(value, str) and len(value) < 40 and math.isfinite(float(value))
    except ValueError:
        return False

"""Paths: how templates and expressions reach into values.

A path is a tuple of parts: a text is a key (or, on a list, an index in digits), a number is an index, and a
nested path is an index looked up first (``${a[${__index__}].x}``). Only dicts, lists and texts are entered, by
key and position; attributes of Python objects are out of reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from pflow.errors import BindingError, nearest
from pflow.model.value import type_name

Part: TypeAlias = "str | int | tuple[Part, ...]"
Path: TypeAlias = tuple[Part, ...]
Values: TypeAlias = Mapping[str, Any]

MISSING: Final = object()  # what a path that leads nowhere gives; no value is ever this object
MAX_NESTING = 8  # of indexes inside indexes
_MAX_DIGITS = 18  # of an index: no list is longer
_SHOWN = 12  # names in a hint

_key = re.compile(r"[^.\[\]{}|]*")
_quoted = re.compile(r'\[\s*(?:"([^"\\]*(?:\\.[^"\\]*)*)"|\'([^\'\\]*(?:\\.[^\'\\]*)*)\')\s*\]', re.DOTALL)
_index = re.compile(r"\[([^\[\]{}|]*)\]")
_escape = re.compile(r"\\([\\'\"])")
_word = re.compile(r"\w++(?:-\w++)*+")


class Reference(msgspec.Struct, frozen=True):
    """A path that a template or expression will look up; where it is ``strict``, a missing value is an error."""

    path: Path
    text: str  # as written
    strict: bool

    @property
    def root(self) -> str:
        """The name in the run's values that the path starts from."""
        return str(self.path[0])


class MalformedTemplate(BindingError):
    """A template that cannot be read; ``offset`` counts characters from the start of its text."""

    def __init__(self, message: str, offset: int, hint: str = "") -> None:
        super().__init__(f"{message} at offset {offset}", hint)
        self.offset = offset


# Reading a path.


def read_path(text: str, start: int, nested: bool = False, depth: int = 0) -> tuple[Path, int]:
    """The path that starts at ``start`` and where it ends: before a ``}``, a ``|`` or anything that is no path.

    ``nested`` allows ``${…}`` as an index.
    """
    key, at = _read_key(text, start)
    parts: list[Part] = [key]
    while at < len(text) and text[at] in ".[":
        part, at = _read_key(text, at + 1) if text[at] == "." else _read_index(text, at, nested, depth)
        parts.append(part)
    return tuple(parts), at


def _read_key(text: str, start: int) -> tuple[str, int]:
    match = _key.match(text, start)
    key = match.group().strip() if match else ""
    if match is None or not key:
        raise MalformedTemplate("a name is missing", start)
    return key, match.end()


def _read_index(text: str, start: int, nested: bool, depth: int) -> tuple[Part, int]:
    part: Part
    if nested and text.startswith("${", start + 1):
        if depth == MAX_NESTING:
            raise MalformedTemplate(f"indexes are nested more than {MAX_NESTING} deep", start)
        part, end = read_path(text, start + 3, nested, depth + 1)
        if not text.startswith("}]", end):
            raise MalformedTemplate('"}]" is missing after a nested index', end)
        return part, _after_index(text, end + 2)
    if quoted := _quoted.match(text, start):
        return unescaped(quoted[1] if quoted[1] is not None else quoted[2]), _after_index(text, quoted.end())
    plain = _index.match(text, start)
    digits = plain[1].strip() if plain else ""
    if plain is None or not is_index(digits):
        raise MalformedTemplate("an index is a number or a quoted key", start)
    return int(digits), _after_index(text, plain.end())


def _after_index(text: str, at: int) -> int:
    """Where reading goes on after ``]``: spaces may end a path, a name right after an index may not follow."""
    match = _key.match(text, at)
    if match is None or match.group().strip():
        raise MalformedTemplate('a "." or "[" is missing', at)
    return match.end()


def unescaped(text: str) -> str:
    """A quoted key without its quoting."""
    return _escape.sub(r"\1", text)


def is_index(text: str) -> bool:
    """Whether a key counts as an index where the value is a list."""
    return text.isdigit() and text.isascii() and len(text) <= _MAX_DIGITS


def path_text(path: Iterable[Part]) -> str:
    """A path as it would be written."""
    return "".join(map(_part_text, path)).removeprefix(".")


def _part_text(part: Part) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    if isinstance(part, tuple):
        return f"[${{{path_text(part)}}}]"
    if _word.fullmatch(part):
        return f".{part}"
    escaped = part.replace("\\", "\\\\").replace('"', '\\"')
    return f'["{escaped}"]'


# Looking up.


def find(values: Values, path: Path, parsing: bool = False) -> Any:
    """The value at ``path``, or ``MISSING``; ``parsing`` lets a path go into a text that holds JSON."""
    found, known = _walk(values, path, parsing)
    return found if known == len(path) else MISSING


def _walk(values: Values, path: Path, parsing: bool) -> tuple[Any, int]:
    """The deepest value on the path that exists, and how many parts lead to it."""
    try:
        found = values[path[0]]  # type: ignore[index]  # a root is a key; not .get(), since values may make theirs
    except KeyError:
        return values, 0
    for known in range(1, len(path)):
        part = path[known]
        if isinstance(part, tuple):
            part = find(values, part, parsing)
        inner = _enter(found, part, parsing)
        if inner is MISSING:
            return found, known
        found = inner
    return found, len(path)


def _enter(value: Any, part: Any, parsing: bool) -> Any:
    if isinstance(value, str) and parsing:
        value = _parsed(value)
    if isinstance(value, dict) and isinstance(part, str) and part in value:
        return value[part]
    if isinstance(value, list):
        index = int(part) if isinstance(part, str) and is_index(part) else part
        if type(index) is int and 0 <= index < len(value):
            return value[index]
    if part == "length" and isinstance(value, (str, list, dict)):
        return len(value)
    return MISSING


def _parsed(text: str) -> Any:
    """What a text holds when it is a JSON list or object, else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text


def getter(path: Path, parsing: bool) -> Callable[[Values], Any]:
    """``find`` for one path, made ready: a key, or a key in an object, costs little more than the lookups."""
    root = path[0]

    def find_root(values: Values) -> Any:
        try:
            return values[root]  # type: ignore[index]
        except KeyError:
            return MISSING

    def find_key(values: Values) -> Any:
        try:
            found = values[root]  # type: ignore[index]
            if type(found) is dict:
                return found[key]
        except KeyError:
            pass
        return find(values, path, parsing)  # no such key, or something else than an object: the general rules

    if len(path) == 1:
        return find_root
    if len(path) == 2 and isinstance(key := path[1], str):
        return find_key
    return lambda values: find(values, path, parsing)


# Explaining what is not there.


def unresolved(values: Values, path: Path, written: str, parsing: bool = False) -> BindingError:
    """The error for a path that leads nowhere: how far it leads, and what exists there."""
    found, known = _walk(values, path, parsing)
    wanted = path[known]
    if isinstance(wanted, tuple):
        index = find(values, wanted, parsing)
        if index is MISSING:
            return unresolved(values, wanted, written, parsing)
        wanted = index if isinstance(index, (str, int)) else type_name(index)
    if known == 0:
        return BindingError(f"{_short(written)}: there is no {_named(wanted)}", _listing(wanted, values, "available"))
    place = _short(path_text(path[:known]))
    if isinstance(found, str) and parsing:
        found = _parsed(found)
    if isinstance(found, dict):
        message = f'"{place}" has no {_named(wanted)}'
        return BindingError(f"{_short(written)}: {message}", _listing(wanted, found, f"available in {place}"))
    if isinstance(found, list):
        message = f'"{place}" is a list of {len(found)} and has no {_named(wanted)}'
        items = f"0 ({type_name(found[0])}) to {len(found) - 1} ({type_name(found[-1])})" if found else "none"
        return BindingError(f"{_short(written)}: {message}", f"available in {place}: {items}")
    message = f'"{place}" is {type_name(found)} and has no {_named(wanted)}'
    return BindingError(f"{_short(written)}: {message}", f"{place} can be used as a whole")


def _listing(wanted: Part, values: Values, what: str) -> str:
    """A hint that lists names with their types, the nearest first; bounded, since names can be long and many."""
    available = getattr(values, "available", None)
    names = [str(name) for name in (available() if callable(available) else list(values))]
    near = nearest(str(wanted)[:64], [name for name in names[:500] if len(name) <= 64])
    ordered = sorted(names[:500], key=lambda name: name != near)[:_SHOWN]
    shown = ", ".join(_typed(values, name) for name in ordered) or "none"
    lead = f'did you mean "{near}"? ' if near else ""
    return f"{lead}{what}: {shown}{', …' if len(names) > _SHOWN else ''}"


def _typed(values: Values, name: str) -> str:
    try:
        return f"{_short(name)} ({type_name(values[name])})"
    except KeyError:
        return _short(name)


def _named(part: Part) -> str:
    return f"index {part}" if isinstance(part, int) else f'"{_short(str(part))}"'


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"

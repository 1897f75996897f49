"""What is taken from an agent's answer: the outputs that its node declares.

Looked for, each by its name: in the JSON objects of the answer (fenced, bare, or inside prose), then in lines of
``name: value``. Where no name is found at all, the first output is the whole answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pflow.documents.json_in_text import objects
from pflow.lang.template import to_text
from pflow.model.typed import typed

_LONGEST_NAME = 200  # of what stands before a ":" that could be a name
_bullet = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(.*)")
_MARKS = " \t*_`\"'#>-+•"  # what Markdown and JSON put around a name
_WRAPS = ("**", "__", "`")


class Extracted(NamedTuple):
    """Outputs by name, and the names that were found nowhere (their outputs are empty texts)."""

    values: dict[str, Any]
    missing: list[str]


def take(text: str, names: Sequence[str], data: Mapping[str, Any] | None = None) -> Extracted:
    """The outputs of an answer; ``data`` is an answer that is a mapping already."""
    found = dict(_named(data, names)) if data is not None else lookup(text, names)
    if not found and names:
        found = {names[0]: _whole(text)}
    missing = [name for name in names if name not in found]
    return Extracted({name: found.get(name, "") for name in names}, missing)


def lookup(text: str, names: Sequence[str]) -> dict[str, Any]:
    """Those of the names that an answer gives a value, in JSON or in lines."""
    found: dict[str, Any] = {}
    for candidate in objects(text):
        own = dict(_named(candidate, names))
        if len(own) >= len(found) and own:
            found = own  # of equals, the last: an example comes before the answer
    rest = [name for name in names if name not in found]
    return {**found, **_in_lines(text, rest)} if rest else found


def _named(data: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    folded = {_folded(str(key)): value for key, value in data.items()}
    for name in names:
        if name in data:
            yield name, data[name]
        elif _folded(name) in folded:
            yield name, folded[_folded(name)]


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_").replace(" ", "_")


def _in_lines(text: str, names: Sequence[str]) -> dict[str, Any]:
    wanted = {_folded(name): name for name in names}
    lines = text.splitlines()
    starts = [(n, *read) for n, line in enumerate(lines) if (read := _entry(line, wanted)) is not None]
    found: dict[str, Any] = {}
    for i, (n, name, value) in enumerate(starts):
        until = starts[i + 1][0] if i + 1 < len(starts) else len(lines)
        made = _typed(value) if value else _below(lines[n + 1 : until])
        if made != "" or name not in found:
            found[name] = made
    return found


def _entry(line: str, wanted: Mapping[str, str]) -> tuple[str, str] | None:
    """The output that a line gives, and its value as written."""
    head, colon, value = line[: _LONGEST_NAME + 1].partition(":")
    if not colon:
        return None
    bullet = _bullet.fullmatch(head)
    name = wanted.get(_folded((bullet[1] if bullet else head).strip(_MARKS)))
    if name is None:
        return None
    value = line[len(head) + 1 :].strip()
    if head.strip().startswith('"'):
        value = value.removesuffix(",")  # a line of JSON that is broken elsewhere
    return name, _unwrapped(value)


def _unwrapped(value: str) -> str:
    for mark in _WRAPS:
        if value.startswith(mark) and value.count(mark) % 2:
            value = value.removeprefix(mark).strip()  # the end of a mark that began before the name
        if value.startswith(mark) and value.endswith(mark) and len(value) > 2 * len(mark):
            value = value[len(mark) : -len(mark)].strip()
    return value


def _below(lines: list[str]) -> Any:
    """A value that stands below its name: a list of what is bulleted, or a text."""
    said = [line for line in lines if line.strip()]
    bullets = [match[1].strip() for line in said if (match := _bullet.fullmatch(line))]
    if said and len(bullets) == len(said):
        return bullets
    return "\n".join(lines).strip()


def _typed(text: str) -> Any:
    """A value as it was meant; a number only if nothing of its spelling is lost (``1.10`` may be a version)."""
    try:
        made = typed(text)
    except RecursionError:
        return text
    is_number = isinstance(made, (int, float)) and not isinstance(made, bool)
    return text if is_number and to_text(made) != text else made


def _whole(text: str) -> Any:
    """The whole answer: a number, a boolean or a list where that is all it says, else its text."""
    text = text.strip()
    made = _typed(text)
    return made if isinstance(made, (bool, int, float, list)) else text

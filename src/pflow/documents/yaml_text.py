"""YAML 1.2: the data of a text, with the spots of its parts.

PyYAML does the syntax (in C where it can) and hands over events; what they mean is decided here, in one pass
that never recurses. Aliases share what they point at, and what they would grow to is bounded. Import this module
only where a document is YAML: PyYAML takes its time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from pflow.documents.json_text import repeated_key, too_deep
from pflow.documents.position import MAX_DEPTH, MAX_FAULTS, Fault, Malformed, Spot, malformed
from pflow.documents.yaml_core import TAG, key_name, resolved, tagged, unknown_tag
from pflow.errors import suggest

MAX_NODES = 2_000_000  # that a document may hold
MAX_ALIASED = 1_000_000  # that its aliases may add
_CHARACTERS_A_NODE = 100  # what a repeated text counts for
# PyYAML takes NEL, LS and PS for line ends, as YAML 1.1 did: they would be changed in silence.
_unfit = re.compile(r"[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_half_pair = re.compile(r"[\ud800-\udfff]")  # PyYAML in C refuses it, in Python it does not
_WAITING: Any = object()  # stands where a mapping's next key will be


def parse(text: str) -> tuple[Any, Spot]:
    """The data of a YAML text and their spots; raises ``Malformed``."""
    if bad := _unfit.search(text):
        hint = "remove it, or write it as an escape in double quotes"
        raise malformed(bad.start(), f"the character U+{ord(bad[0]):04X} cannot stand in YAML", hint)
    composer = _Composer(text)
    try:
        for event in events(text):
            if (take := composer.takers.get(type(event))) is not None:
                take(event)
    except Malformed as error:
        composer.faults.extend(error.faults)
    except yaml.MarkedYAMLError as error:
        composer.faults.append(_explained(text, error))
    except (yaml.YAMLError, ValueError) as error:  # no mark: PyYAML's reader, or an escape that is no character
        composer.faults.append(Fault(0, f"this is not YAML: {str(error).splitlines()[0]}"))
    if composer.faults:
        raise Malformed(composer.faults)
    return composer.result()


def events(text: str) -> Iterator[yaml.Event]:
    """PyYAML's events, from its C parser where there is one."""
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)(text)
    try:
        while (event := loader.get_event()) is not None:
            yield event
            if isinstance(event, yaml.StreamEndEvent):
                return
    finally:
        loader.dispose()


# Composing.


class _Frame:
    """A list or mapping that is being filled."""

    __slots__ = ("anchor", "at", "data", "height", "inside", "key", "key_at", "size")

    def __init__(self, data: Any, inside: Any, at: int, anchor: str | None, size: int) -> None:
        self.data = data
        self.inside = inside
        self.at = at
        self.anchor = anchor
        self.size = size  # of the document before it
        self.height = 1  # of what is inside each other in it
        self.key: Any = _WAITING if type(data) is dict else None  # None in a list: no key is ever awaited there
        self.key_at = 0


class _Anchored(NamedTuple):
    """What an anchor names: the value, its spot, and how much an alias of it adds."""

    value: Any
    spot: Spot
    size: int
    height: int
    plain: bool = False


class _Composer:
    """Builds data and spots from PyYAML's events (which its stubs describe too loosely to be of use).

    ``nodes`` and ``aliased`` together are the expanded size of the document so far.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.faults: list[Fault] = []
        self.documents: list[Any] = []
        self.spots: list[Spot] = []
        self.frame = _Frame(self.documents, self.spots, 0, None, 0)
        self.outer: list[_Frame] = []
        self.anchors: dict[str, _Anchored | None] = {}  # None while the value is not complete
        self.nodes = 0
        self.aliased = 0
        self.takers: dict[type[yaml.Event], Callable[[Any], None]] = {
            yaml.ScalarEvent: self.scalar,
            yaml.AliasEvent: self.alias,
            yaml.SequenceStartEvent: self.open,
            yaml.MappingStartEvent: self.open,
            yaml.SequenceEndEvent: self.close,
            yaml.MappingEndEvent: self.close,
            yaml.DocumentStartEvent: self.document,
        }

    def result(self) -> tuple[Any, Spot]:
        if not self.documents:
            raise malformed(0, "the file holds no document", "it is empty, or all of it is comments")
        return self.documents[0], self.spots[0]

    def document(self, event: Any) -> None:
        if self.documents:
            hint = 'split the file at its "---" lines'
            raise malformed(event.start_mark.index, "the file holds more than one document", hint)

    def scalar(self, event: Any) -> None:
        at, text = event.start_mark.index, event.value
        plain = not event.style and event.tag is None
        value = resolved(text, at) if plain else text if event.tag is None else tagged(text, event.tag, at)
        if event.style == '"' and not text.isascii() and _half_pair.search(text):
            raise malformed(at, "an escape is half of a surrogate pair", "write the character itself")
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(value, at, 1 + len(text) // _CHARACTERS_A_NODE, 0, plain)
        self.nodes += 1
        if self.frame.key is _WAITING:
            self.key(value, at, plain)
        else:
            self.add(value, at)

    def alias(self, event: Any) -> None:
        at, name = event.start_mark.index, event.anchor
        if name not in self.anchors:
            hint = suggest(name, list(self.anchors)[-100:], "anchors")
            raise malformed(at, f'there is no anchor "{name[:60]}" before this alias', hint)
        if (found := self.anchors[name]) is None:
            hint = "a document cannot contain itself"
            raise malformed(at, f'the alias "*{name[:60]}" stands inside the value it names', hint)
        self.aliased += found.size
        if self.aliased > MAX_ALIASED:
            hint = "aliases of aliases multiply; write the document out"
            raise malformed(at, f"with its aliases the document grows beyond {MAX_ALIASED:,} nodes", hint)
        if len(self.outer) + found.height > MAX_DEPTH:
            raise too_deep(at)
        if self.frame.key is _WAITING:
            self.key(found.value, at, found.plain)
            return
        self.frame.height = max(self.frame.height, found.height + 1)
        self.add(found.value, (at, found.spot[1]) if isinstance(found.spot, tuple) else at)

    def open(self, event: Any) -> None:
        at = event.start_mark.index
        keyed = type(event) is yaml.MappingStartEvent
        if event.tag is not None and event.tag not in ("!", TAG + ("map" if keyed else "seq")):
            raise unknown_tag(event.tag, at)
        if self.frame.key is _WAITING:
            raise self.bad_key(at, keyed)
        if len(self.outer) >= MAX_DEPTH:
            raise too_deep(at)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.outer.append(self.frame)
        self.frame = _Frame({} if keyed else [], {} if keyed else [], at, event.anchor, self.nodes + self.aliased)
        self.nodes += 1

    def close(self, event: Any) -> None:
        done = self.frame
        self.frame = parent = self.outer.pop()
        spot = (done.at, done.inside)
        if done.anchor is not None:
            size = self.nodes + self.aliased - done.size
            self.anchors[done.anchor] = _Anchored(done.data, spot, size, done.height)
        if done.height >= parent.height:
            parent.height = done.height + 1
        self.add(done.data, spot)

    def add(self, value: Any, spot: Spot) -> None:
        if self.nodes > MAX_NODES:
            raise malformed(_start(spot), f"the document has more than {MAX_NODES:,} nodes", "split it")
        frame = self.frame
        if frame.key is None:
            frame.data.append(value)
            frame.inside.append(spot)
        else:
            frame.data[frame.key] = value
            frame.inside[frame.key] = (frame.key_at, spot)
            frame.key = _WAITING

    def key(self, value: Any, at: int, plain: bool) -> None:
        frame = self.frame
        if type(value) is not str:
            if isinstance(value, (dict, list)):
                raise self.bad_key(at, isinstance(value, dict))
            value = key_name(value)
        elif plain and value == "<<":
            raise malformed(
                at, 'merge keys ("<<") are not part of YAML 1.2', "write the keys out, or alias whole values"
            )
        if value in frame.data and len(self.faults) < MAX_FAULTS:
            self.faults.append(repeated_key(value, at, self.text, frame.inside[value][0]))
        frame.key, frame.key_at = value, at

    def bad_key(self, at: int, keyed: bool) -> Malformed:
        if self.text[at - 1 : at + 1] == "{{":
            return malformed(
                at - 1, 'a text that starts with "{{" must be quoted', 'write "{{…}}" with quotes around it'
            )
        what = "a mapping" if keyed else "a list"
        return malformed(at, f"a key must be text, not {what}", "quote a text that starts with a bracket or brace")


def _start(spot: Spot) -> int:
    return spot[0] if isinstance(spot, tuple) else spot


# Explaining PyYAML's messages. What is open (brackets, quotes) is reported where it was opened.

_MESSAGES: tuple[tuple[str, str, str], ...] = (
    ("mapping values are not allowed", 'unexpected ":"', 'quote a text that contains ": ", or check the indentation'),
    (
        "could not find expected ':'",
        'a key without ":"',
        'write "key: value"; a text of several lines needs | or quotes',
    ),
    ("expected ',' or ']'", 'a list is not closed with "]"', 'add the "]", or a "," between its items'),
    ("expected ',' or '}'", 'a mapping is not closed with "}"', 'add the "}", or quote a text that starts with "{{"'),
    ("unexpected end of stream", "a quoted text is not closed", "add the closing quote"),
    ("unexpected document ", "a quoted text is not closed", "add the closing quote"),
    ("escape", 'an unknown escape after "\\"', 'write "\\\\" for a backslash, or use single quotes'),
    ("expected key", "this line does not fit the ones above", "keys of one mapping start in the same column"),
    ("expected '-' indicator", "this line does not fit the list above", "items of one list start in the same column"),
    ("expected <block end>", "this line does not fit the ones above", "what belongs together starts in one column"),
    ("sequence entries are not allowed", 'a list cannot start here ("-")', "put it on a new line, indented"),
    ("block mapping", "a mapping cannot start here", "put it on a new line, indented"),
    ("mapping keys are not allowed", 'a key cannot stand here ("?")', "quote a text that starts with ?"),
    ("alphabetic or numeric character", "an anchor or alias without a name", "quote a text that starts with * or &"),
    ("node content", "a value is missing", "check the commas and brackets around it"),
    ("tag handle", "an unknown kind of tag", "quote a text that starts with !"),
    ("<document start>", "text after the end of the document", "check the indentation, or remove it"),
    ("comment or line break", "unexpected text after | or >", "start the text in the next line, indented"),
    ("indentation indicators", "unexpected text after | or >", "start the text in the next line, indented"),
    ("directive", "an unknown directive", "quote a text that starts with %"),
    ("incompatible YAML document", "a YAML version that is not known", "remove the %YAML line"),
)


def _explained(text: str, error: yaml.MarkedYAMLError) -> Fault:
    problem = error.problem or "it cannot be read"
    mark = error.problem_mark or error.context_mark
    at = mark.index if mark is not None else 0
    char = text[at : at + 1]
    if "cannot start any token" in problem or "tab character" in problem:
        if char == "\t":
            return Fault(at, "a tab where indentation is expected", "indent with spaces")
        return Fault(at, f'a text cannot start with "{char}"', "quote it")
    for part, message, hint in _MESSAGES:
        if part in problem:
            if "not fit" in message and text[text.rfind("\n", 0, at) + 1 : at].strip(" -"):
                return Fault(at, f'unexpected "{char}" after a complete value', "quote all of it, or check its quotes")
            opened = "not closed" in message and error.context_mark is not None
            return Fault(error.context_mark.index if opened else at, message, hint)  # type: ignore[union-attr]
    return Fault(at, f"this is not YAML: {problem}")

"""Front matter: the few lines of YAML between two ``---`` at the top of a Markdown file.

Reads what front matter holds (texts, numbers, switches, lists, mappings, texts of several lines) by the rules of
YAML 1.2, without the price of importing a whole YAML parser. It forgives one thing that YAML does not, as the tools do
that people copy their agents from: a text without quotes may contain ``: ``.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

import msgspec

from pflow.errors import NodeError, Place

_key = re.compile(r"""(?P<quote>["']?)(?P<key>[A-Za-z_][\w.-]*)(?P=quote)[ \t]*:(?:[ \t]+(?P<value>.*))?""", re.DOTALL)
_item = re.compile(r"-(?:[ \t]+(.*))?", re.DOTALL)
_block = re.compile(r"([|>])([+-]?)[ \t]*(?:#.*)?")
_comment = re.compile(r"(?:^|[ \t])#.*")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_SWITCH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_integer = re.compile(r"[-+]?[0-9]{1,18}")
_float = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?")
_flow_word = re.compile(r"[^,\[\]{}:\"'#]+(?::(?!\s|$)[^,\[\]{}:\"'#]*)*")
_MAX_DEPTH = 20


class Entry(NamedTuple):
    """A value, and the line it stands on."""

    value: Any
    line: int


class _Line(NamedTuple):
    number: int
    indent: int
    text: str  # without its indent


def read(text: str, file: str = "") -> tuple[dict[str, Entry], str]:
    """The entries at the top of a document, and what follows them; a document need not have any."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text.strip()
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        raise wrong(file, 1, 'the front matter is not closed: "---" is missing after it', "end it with a line of ---")
    entries = _Reader(lines[1:end], file).mapping(0)
    return entries, "\n".join(lines[end + 1 :]).strip()


def wrong(file: str, line: int, message: str, hint: str = "") -> NodeError:
    """The error that something in a definition is not as it should be."""
    return NodeError(f"{Place(file, line)}: {message}", hint, kind="validation")


class _Reader:
    """Goes through the lines once."""

    def __init__(self, lines: list[str], file: str) -> None:
        self._file = file
        self._lines = [_Line(n, len(line) - len(line.lstrip(" ")), line.strip(" ")) for n, line in enumerate(lines, 2)]
        self._at = 0

    def fail(self, line: int, message: str, hint: str = "") -> NoReturn:
        raise wrong(self._file, line, message, hint)

    def _next(self) -> _Line | None:
        """The next line that says something; it is not passed over yet."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.text.strip() and not line.text.startswith("#"):
                return line
            self._at += 1
        return None

    def mapping(self, indent: int, depth: int = 0) -> dict[str, Entry]:
        """Entries of one indentation."""
        found: dict[str, Entry] = {}
        while (line := self._next()) is not None and line.indent >= indent:
            match = _key.fullmatch(line.text)
            if line.text.startswith("\t"):
                self.fail(line.number, "a tab indents this line", "indent with spaces")
            if match is None or line.indent > indent:
                self.fail(line.number, f'"{line.text[:60]}" is not understood here', "write key: value")
            key = match["key"]
            if key in found:
                self.fail(line.number, f'"{key}" is there twice', f"the first is on line {found[key].line}")
            self._at += 1
            found[key] = Entry(self._value(match["value"] or "", line, depth), line.number)
        return found

    def _value(self, text: str, line: _Line, depth: int) -> Any:
        text = text.strip()
        if block := _block.fullmatch(text):
            return self._text_block(block[1], block[2], line.indent)
        if text[:1] in ("[", "{", '"', "'"):
            return self._flow(text, line)
        plain = _comment.sub("", text).strip()
        if not plain:
            return self._below(line, depth + 1)
        return scalar(" ".join([plain, *self._continued(line.indent)]))

    def _below(self, line: _Line, depth: int) -> Any:
        """What is written below a key that has nothing beside it."""
        if depth > _MAX_DEPTH:
            self.fail(line.number, "this is nested too deep")
        after = self._next()
        if after is None:
            return None
        if _item.fullmatch(after.text) and after.indent >= line.indent:
            return self._list(after.indent)
        if after.indent <= line.indent:
            return None
        return {key: entry.value for key, entry in self.mapping(after.indent, depth).items()}

    def _list(self, indent: int) -> list[Any]:
        found = []
        while (line := self._next()) is not None and line.indent == indent and (match := _item.fullmatch(line.text)):
            self._at += 1
            text = (match[1] or "").strip()
            if _key.fullmatch(text):
                self.fail(line.number, f'"{text[:60]}" is a mapping inside a list', "list texts and numbers only")
            found.append(self._value(text, line, _MAX_DEPTH))
        return found

    def _continued(self, indent: int) -> list[str]:
        """Further lines of a text without quotes: those that are indented more."""
        found = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.text.strip() or line.indent <= indent or line.text.startswith("#"):
                break
            found.append(_comment.sub("", line.text).strip())
            self._at += 1
        return found

    def _text_block(self, style: str, chomp: str, indent: int) -> str:
        """A text of several lines: kept as they are (|) or folded into paragraphs (>)."""
        taken: list[_Line] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.text.strip() and line.indent <= indent:
                break
            taken.append(line)
            self._at += 1
        margin = min((line.indent for line in taken if line.text.strip()), default=0)
        lines = [" " * max(line.indent - margin, 0) + line.text if line.text.strip() else "" for line in taken]
        body = "\n".join(lines)
        if style == ">":
            body = re.sub(r"(?<!\n)\n(?![\n ])", " ", body.rstrip("\n")).replace("\n\n", "\n")
        body = body.rstrip("\n") if chomp != "+" else body
        return body if chomp == "-" or not body else body.rstrip("\n") + "\n"

    def _flow(self, text: str, line: _Line) -> Any:
        """A list, a mapping or a quoted text, which may go on on the next lines."""
        while True:
            try:
                value, end = _flow(text, 0, 0)
            except _Open:
                if self._at == len(self._lines):
                    self.fail(line.number, f"{text[0]} is not closed")
                text = f"{text} {self._lines[self._at].text.strip()}"
                self._at += 1
                continue
            except ValueError as error:
                self.fail(line.number, str(error), "write [a, b], {key: value} or a text in quotes")
            if _comment.sub("", text[end:]).strip():
                self.fail(line.number, f'"{text[end:].strip()[:40]}" follows a value that is complete')
            return value


class _Open(Exception):
    """The text ends inside of a value."""


def scalar(text: str) -> Any:
    """A word without quotes: null, a switch, a number, else text."""
    if text in _NULL:
        return None
    if text in _SWITCH:
        return _SWITCH[text]
    if _integer.fullmatch(text):
        return int(text)
    if _float.fullmatch(text):
        return float(text)
    return text


def _flow(text: str, at: int, depth: int) -> tuple[Any, int]:
    at = _space(text, at)
    if at == len(text):
        raise _Open
    if depth > _MAX_DEPTH:
        raise ValueError("this is nested too deep")
    opener = text[at]
    if opener == "[":
        return _flow_list(text, at + 1, depth + 1)
    if opener == "{":
        return _flow_mapping(text, at + 1, depth + 1)
    if opener in "\"'":
        return _quoted(text, at)
    word = _flow_word.match(text, at)
    if word is None:
        raise ValueError(f'"{text[at : at + 20]}" is not understood here')
    return scalar(word[0].strip()), word.end()


def _flow_list(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while (at := _space(text, at)) < len(text) and text[at] != "]":
        value, at = _flow(text, at, depth)
        found.append(value)
        at = _separator(text, at, "]")
    return found, _closed(text, at)


def _flow_mapping(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while (at := _space(text, at)) < len(text) and text[at] != "}":
        key, at = _flow(text, at, depth)
        at = _space(text, at)
        if at == len(text):
            raise _Open
        if text[at] != ":":
            raise ValueError(f'":" is missing after "{key}"')
        found[str(key)], at = _flow(text, at + 1, depth)
        at = _separator(text, at, "}")
    return found, _closed(text, at)


def _space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at


def _separator(text: str, at: int, closer: str) -> int:
    at = _space(text, at)
    if at == len(text):
        raise _Open
    if text[at] not in ("," + closer):
        raise ValueError(f'"," or "{closer}" is missing before "{text[at : at + 20]}"')
    return at + 1 if text[at] == "," else at


def _closed(text: str, at: int) -> int:
    if at == len(text):
        raise _Open
    return at + 1


def _quoted(text: str, at: int) -> tuple[str, int]:
    quote = text[at]
    end = at + 1
    while end < len(text) and (text[end] != quote or (quote == "'" and text[end + 1 : end + 2] == "'")):
        end += 2 if (quote == '"' and text[end] == "\\") or (quote == "'" and text[end] == "'") else 1
    if end >= len(text):
        raise _Open
    inside = text[at + 1 : end]
    if quote == "'":
        return inside.replace("''", "'"), end + 1
    try:
        return msgspec.json.decode(f'"{inside}"', type=str), end + 1
    except msgspec.DecodeError:
        raise ValueError(f'"{inside[:40]}" has an escape that is not known') from None

"""A document as it was read: its data, and the place in its file of every part of them."""

from __future__ import annotations

import codecs
from functools import cached_property
from typing import Any

from pflow.documents import json_text
from pflow.documents.position import Lines, Malformed, Path, Spot, malformed, offset
from pflow.errors import Place, Problem, WorkflowError

MAX_SIZE = 16 * 1024 * 1024  # characters

_AS_UTF8 = "save it as UTF-8 text"


class Source:
    """The data of a document, and where they stand in its text; made by ``load``, or in a program without a text."""

    def __init__(self, file: str, data: Any, text: str = "", spot: Spot = 0) -> None:
        self.file = file
        self.data = data
        self.text = text
        self._spot = spot

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.text)

    def place(self, path: Path = ()) -> Place:
        """Where the value at ``path`` stands; where there is none, its nearest parent."""
        return self._place(offset(self._spot, path))

    def key_place(self, path: Path) -> Place:
        """Where the key of the value at ``path`` stands; for an item of a list, the item."""
        return self._place(offset(self._spot, path, key=True))

    def _place(self, at: int) -> Place:
        return Place(self.file, *self._lines.locate(at)) if self.text else Place(self.file)


def load(text: str | bytes, file: str) -> Source:
    """Read a JSON or YAML document; raises ``WorkflowError`` with every place that cannot be read."""
    decoded = decode(text, file)
    try:
        return _read(decoded, file)
    except Malformed as error:
        raise failure(error, decoded, file) from None


def failure(error: Malformed, text: str, file: str) -> WorkflowError:
    """What a text that cannot be read is refused with."""
    lines = Lines(text)
    return WorkflowError(
        [Problem(message, Place(file, *lines.locate(at)), hint, "syntax") for at, message, hint in sorted(error.faults)]
    )


def _read(text: str, file: str) -> Source:
    """JSON where it says so or looks like it; a mapping in braces that is no JSON may still be YAML."""
    name = file.lower()
    if name.endswith(".json"):
        return _read_json(text, file)
    if not text.lstrip().startswith(("{", "[")):
        return _read_yaml(text, file)
    try:
        return _read_json(text, file)
    except Malformed as as_json:
        try:
            return _read_yaml(text, file)
        except Malformed as as_yaml:
            raise (as_yaml if name.endswith((".yaml", ".yml")) else as_json) from None


def _read_json(text: str, file: str) -> Source:
    data, spot = json_text.parse(text)
    return Source(file, data, text, spot)


def _read_yaml(text: str, file: str) -> Source:
    from pflow.documents import yaml_text  # JSON documents do without it

    data, spot = yaml_text.parse(text)
    return Source(file, data, text, spot)


def decode(text: str | bytes, file: str) -> str:
    """The characters of a file that holds text, without a byte order mark."""
    if len(text) > MAX_SIZE:
        size = f"{len(text) / 2**20:.0f} MiB"
        raise WorkflowError([Problem(f"the file is too large: {size}", Place(file), f"at most {MAX_SIZE >> 20} MiB")])
    if isinstance(text, bytes):
        text = _characters(text, file)
    text = text.removeprefix("\ufeff")
    try:
        if (at := text.find("\0")) >= 0:
            raise malformed(at, "the file is not text: it holds a NUL byte", _AS_UTF8)
        text.encode()
        if not text.strip():
            raise malformed(0, "the file is empty", "write something into it, or remove it")
    except UnicodeEncodeError as error:
        fault = malformed(error.start, "the text holds half of a surrogate pair", _AS_UTF8)
        raise failure(fault, text, file) from None
    except Malformed as error:
        raise failure(error, text, file) from None
    return text


def _characters(text: bytes, file: str) -> str:
    encoding = "utf-16" if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    try:
        return text.decode(encoding)
    except UnicodeDecodeError as error:
        before = text[: error.start].decode(encoding, "replace")
        fault = malformed(len(before), f"the file is not text: it is not {encoding.upper()} here", _AS_UTF8)
        raise failure(fault, before, file) from None

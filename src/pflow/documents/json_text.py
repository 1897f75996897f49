"""JSON: the data of a text, with the spots of its parts."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from pflow.documents.position import MAX_DEPTH, MAX_FAULTS, Fault, Inside, Malformed, Spot, malformed

_token = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]|[^\s,:{}\[\]"]++', re.DOTALL)
_byte = re.compile(r"^(?:JSON is malformed: )?(.*) \(byte (\d+)\)$", re.DOTALL)
_half_pair = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: str) -> tuple[Any, Spot]:
    """The data of a JSON text and their spots; raises ``Malformed``."""
    try:
        return msgspec.json.decode(text), _spots(text)
    except RecursionError:
        _spots(text)
        raise too_deep(0) from None  # its depth is allowed, but not where we were called
    except msgspec.ValidationError:
        raise _too_large(text) from None
    except msgspec.DecodeError as error:
        raise _explained(text, str(error)) from None


def _spots(text: str) -> Spot:
    """The spots of a text that is JSON; refused where it is too deep, or has a key twice."""
    document: list[Spot] = []
    inside: Inside = document
    outer: list[Inside] = []
    repeated: list[Fault] = []
    key, key_at = None, 0
    for match in _token.finditer(text):
        at = match.start()
        char = text[at]
        if char in "]}":
            inside = outer.pop()
            continue
        if key is None and isinstance(inside, dict):
            key, key_at = _key(match[0]), at
            if key in inside and len(repeated) < MAX_FAULTS:
                repeated.append(repeated_key(key, at, text, inside[key][0]))
            continue
        within: Inside | None = {} if char == "{" else [] if char == "[" else None
        spot: Spot = at if within is None else (at, within)
        if isinstance(inside, dict):
            inside[key or ""], key = (key_at, spot), None
        else:
            inside.append(spot)
        if within is not None:
            outer.append(inside)
            inside = within
            if len(outer) > MAX_DEPTH:
                raise too_deep(at)
    if repeated:
        raise Malformed(repeated)
    return document[0]


def repeated_key(key: str, at: int, text: str, first: int) -> Fault:
    """The fault of a key that stands twice in one mapping."""
    line = text.count("\n", 0, first) + 1
    return Fault(at, f'the key "{key[:60]}" is there twice', f"remove one of the two; the first is in line {line}")


def _key(written: str) -> str:
    return str(msgspec.json.decode(written)) if "\\" in written else written[1:-1]


# Explaining what is wrong: slow, and only ever done once.


def too_deep(at: int) -> Malformed:
    """The error for a document that is nested too deeply."""
    return malformed(at, f"lists and mappings are nested more than {MAX_DEPTH} deep", "flatten the document")


def _too_large(text: str) -> Malformed:
    for match in _token.finditer(text):
        word = match[0]
        if word[0] in "-0123456789" and (len(word) > 1000 or not math.isfinite(float(word))):
            return too_large(match.start())
    return too_large(0)


def too_large(at: int) -> Malformed:
    """The error for a number that no computer word holds."""
    return malformed(at, "a number is too large", "quote it, if it is meant as text")


def _explained(text: str, message: str) -> Malformed:
    """The decoder's error, with the position that it counts in bytes."""
    if found := _byte.match(message):
        at = len(text.encode()[: int(found[2])].decode(errors="ignore"))
        return malformed(min(at, max(len(text) - 1, 0)), f"this is not JSON: {found[1]}", _advice(text, at, found[1]))
    if half := _half_pair.search(text):
        return malformed(half.start(), "this is not JSON: half of a surrogate pair", "write the character itself")
    return malformed(len(text.rstrip()), "this is not JSON: it ends too early", 'close every text, "[" and "{"')


def _advice(text: str, at: int, message: str) -> str:
    char = text[at : at + 1]
    if "trailing comma" in message:
        return "remove the last comma"
    if "trailing characters" in message:
        return "a file holds one value; remove what follows it"
    if char == "'":
        return "texts are in double quotes"
    if char in ("/", "#"):
        return "JSON has no comments; a workflow may be YAML, which has them"
    if text.startswith(("NaN", "Infinity", "-Infinity"), at):
        return "JSON has no word for it; leave it out or write null"
    return "check the commas and quotes before this place"

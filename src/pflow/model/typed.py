"""The words for types, and values on a command line.

There ``true``, ``10``, ``3.14`` and JSON are what they look like; anything else is text.
"""

from __future__ import annotations

from typing import Any

import msgspec

TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "str": (str,),
    "number": (int, float),
    "float": (int, float),
    "integer": (int,),
    "int": (int,),
    "boolean": (bool,),
    "bool": (bool,),
    "array": (list,),
    "list": (list,),
    "object": (dict,),
    "dict": (dict,),
}
TEXTS = ("string", "str", "text")
_LOOKS_LIKE_JSON = frozenset('-0123456789tfn{["')


def typed(text: str, kind: str = "any") -> Any:
    """A value as it was meant, unless a declared type says that it is text."""
    if kind in TEXTS or text[:1] not in _LOOKS_LIKE_JSON:
        return text
    if text.lstrip("-").isdecimal():
        return _whole(text)
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text


def _whole(text: str) -> int | str:
    """A whole number of any size; 007 is no number, and neither is -."""
    digits = text.removeprefix("-")
    plain = digits.isascii() and (digits == "0" or not digits.startswith("0")) and len(digits) < 1000
    return int(text) if plain and not digits.startswith("-") else text


def choice_of(text: str, choices: tuple[str, ...]) -> str | None:
    """The choice that a text means: itself, its number, or the only one that starts so."""
    wanted = text.strip().casefold()
    exact = [choice for choice in choices if choice.casefold() == wanted]
    if exact:
        return exact[0]
    if wanted.isdecimal() and 1 <= int(wanted[:9]) <= len(choices):
        return choices[int(wanted[:9]) - 1]
    started = [choice for choice in choices if wanted and choice.casefold().startswith(wanted)]
    return started[0] if len(started) == 1 else None

"""JSON in a text that may say other things as well, such as the answer of a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NoReturn

_BUDGET = 50_000_000  # characters read in vain before looking for JSON is given up
_SKIM = 64  # characters that counting the lines before an error passes over while the parser reads one
_object = re.compile(r"\{\s*+[\"}]")


def value_at(text: str, at: int = 0) -> tuple[Any, int]:
    """The JSON value that starts at a place, and where it ends; ``ValueError`` where there is none."""
    try:
        return _strict().raw_decode(text, at)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def extract(text: str) -> Any:
    """The JSON in an answer: all of it, in a fenced block, or from its first bracket on; ``ValueError`` if none is."""
    fenced = re.search(r"```(?:json)?\s*\n(.*?)```", text, re.S)
    start = re.search(r"[\[{]", text)
    first: ValueError | None = None
    for candidate, alone in ((text, True), (fenced[1] if fenced else "", True), (text, False)):
        try:
            at = start.start() if start and not alone else len(candidate) - len(candidate.lstrip())
            value, end = value_at(candidate, at)
            if not alone or not candidate[end:].strip():
                return value
            raise ValueError("other text follows it")
        except ValueError as error:
            first = first or error
    assert first is not None
    raise first


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, outermost ones only, in order."""
    at, budget = 0, _BUDGET
    while budget > 0 and (start := _object.search(text, at)) is not None:
        at = start.start()
        try:
            value, end = _lenient().raw_decode(text, at)
        except json.JSONDecodeError as error:
            budget -= error.pos - at + error.pos // _SKIM + 1
            at += 1
        except (ValueError, RecursionError):
            return  # a number or a nesting beyond all measure
        else:
            yield value
            at = end


@lru_cache(maxsize=1)
def _lenient() -> json.JSONDecoder:
    return json.JSONDecoder(strict=False, parse_constant=str)  # strict would refuse a line break inside a text


@lru_cache(maxsize=1)
def _strict() -> json.JSONDecoder:
    return json.JSONDecoder(parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")

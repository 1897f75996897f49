"""Comparison: truth, equality and order over values that people and models wrote.

Forgiving where a model's answer is a text for something else (``"85"``, ``"85%"``, ``"Yes"``), and loud where
nothing sensible can be said. A warning is words for the journal; an error shows the values.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from pflow.errors import ExpressionError
from pflow.model.value import json_text, same, type_name

Warn = Callable[[str], None]

_FALSE = frozenset({"", "no", "false", "0"})
_WORDS = {"yes": True, "true": True, "no": False, "false": False}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LONGEST_NUMBER = 64
_number = re.compile(r"([-+]?(?:\d++(?:\.\d*+)?|\.\d++))(?:([eE][-+]?\d++)|\s*+(%))?", re.ASCII)


def truth(value: Any) -> bool:
    """Whether a value counts as true: ``no``, ``false``, ``0`` and empty texts do not, in any case."""
    if isinstance(value, str):
        return value.strip().casefold() not in _FALSE
    return bool(value)


def is_blank(value: Any) -> bool:
    """Whether a value says nothing: null or an empty text."""
    return value is None or (isinstance(value, str) and not value.strip())


def is_empty(value: Any) -> bool:
    """Whether a value has nothing in it: blank, or a list or object without items."""
    return is_blank(value) or value == [] or value == {}


def alike(left: Any, right: Any) -> bool:
    """Equality that ignores the case of texts and reads a text as a number or boolean beside one."""
    if isinstance(left, str) and isinstance(right, str):
        return left.casefold() == right.casefold()
    if isinstance(left, bool) and isinstance(right, str):
        return _WORDS.get(right.strip().casefold()) is left
    if isinstance(right, bool) and isinstance(left, str):
        return alike(right, left)
    if isinstance(left, str) or isinstance(right, str):
        pair = _numbers(left, right)
        return pair is not None and pair[0] == pair[1]
    return same(left, right)


def unlike(left: Any, right: Any) -> bool:
    """Whether two values can never be alike: their types differ, and neither reads as the other's."""
    kinds = {type_name(left), type_name(right)}
    if len(kinds) == 1 or "null" in kinds:
        return False
    if kinds == {"boolean", "text"}:
        return (left if isinstance(left, str) else right).strip().casefold() not in _WORDS
    return _numbers(left, right) is None


def ordered(op: str, left: Any, right: Any) -> bool:
    """One of ``< <= > >=`` on two numbers or two texts; anything else is an error that shows both."""
    compare = _ORDER[op]
    if pair := _numbers(left, right):
        return compare(*pair)
    if isinstance(left, str) and isinstance(right, str):
        return compare(left.casefold(), right.casefold())
    raise ExpressionError(
        f"{shown(left)} {op} {shown(right)}: {type_name(left)} and {type_name(right)} have no order",
        "compare numbers with numbers and texts with texts; len(x) is the size of a list",
    )


def contained(item: Any, container: Any) -> bool:
    """Whether a list has an item, an object a key or a text a part; case is ignored, as in equality."""
    if container is None:
        return False
    if isinstance(container, (list, dict)):
        return any(alike(item, other) for other in container)
    if isinstance(container, str) and isinstance(item, str | None):
        return item is not None and not is_blank(item) and item.casefold() in container.casefold()
    raise ExpressionError(f"{shown(item)} in {shown(container)}: {type_name(container)} cannot hold {type_name(item)}")


def size(value: Any) -> int:
    """How many items, keys or characters; null has none."""
    if value is None:
        return 0
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise ExpressionError(f"len({shown(value)}): {type_name(value)} has no length")


def shown(value: Any) -> str:
    """A value in a message, cut short."""
    if isinstance(value, (str, bytes, list)):
        value = value[:80]
    text = repr(value) if type(value) is int else json_text(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _numbers(left: Any, right: Any) -> tuple[float, float] | None:
    """Both as numbers, if both are; a percentage is a fraction beside a number that is at most 1."""
    a, b = _number_of(left), _number_of(right)
    if a is None or b is None:
        return None
    (x, x_part), (y, y_part) = a, b
    if x_part is not None and y_part is None and y <= 1:
        x = x_part
    elif y_part is not None and x_part is None and x <= 1:
        y = y_part
    return x, y


def _number_of(value: Any) -> tuple[float, float | None] | None:
    """A number, and its hundredth where it was written with a ``%``."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value, None
    text = value.strip() if isinstance(value, str) and len(value) <= _LONGEST_NUMBER else ""
    match = _number.fullmatch(text)
    if not match:
        return None
    digits, exponent, percent = match.groups()
    whole = int(digits) if not exponent and "." not in digits else float(digits + (exponent or ""))
    return whole, float(f"{digits}e-2") if percent else None  # read, not divided: "85.3%" is 0.853 to the last bit

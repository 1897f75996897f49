"""YAML's core schema: which value a scalar stands for.

``yes``, ``no``, ``on``, ``off``, dates, ``1_000`` and ``1:30`` are texts; ``017`` is 17 and ``0o17`` is 15.
"""

from __future__ import annotations

import math
import re
from typing import Any

from pflow.documents.json_text import too_large
from pflow.documents.position import Malformed, malformed
from pflow.model.value import key_text

TAG = "tag:yaml.org,2002:"
_LONGEST_NUMBER = 1000  # characters: Python refuses to print much longer ones
_WORDS: dict[str, Any] = {
    **dict.fromkeys(["", "~", "null", "Null", "NULL"]),
    **dict.fromkeys(["true", "True", "TRUE"], True),
    **dict.fromkeys(["false", "False", "FALSE"], False),
    **dict.fromkeys([sign + word for sign in ("", "+") for word in (".inf", ".Inf", ".INF")], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
}
_number = re.compile(
    r"(?P<int>[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
)
_NUMERIC = frozenset("0123456789+-.")


def resolved(text: str, at: int) -> Any:
    """The value of a plain scalar; ``at`` is where it stands."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC or (match := _number.fullmatch(text)) is None:
        return text
    if len(text) > _LONGEST_NUMBER:
        raise too_large(at)
    if match.lastgroup == "int":
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if not math.isfinite(number := float(text)):
        raise too_large(at)
    return number


def tagged(text: str, tag: str, at: int) -> Any:
    """The value of a scalar whose tag is written out."""
    if tag in ("!", TAG + "str"):
        return text
    kinds = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}
    kind: Any = kinds.get(tag.removeprefix(TAG)) if tag.startswith(TAG) else None
    if kind is None:
        raise unknown_tag(tag, at)
    value = resolved(text, at)
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        raise malformed(at, f'"{text[:60]}" is not what its tag !!{tag.removeprefix(TAG)} says', "remove the tag")
    return float(value) if tag == TAG + "float" else value


def unknown_tag(tag: str, at: int) -> Malformed:
    """The error for a tag that is not of the core schema."""
    written = tag.replace(TAG, "!!", 1)[:60]
    return malformed(at, f'the tag "{written}" is not known here', "remove it; quote a text that starts with !")


def key_name(value: Any) -> str:
    """A key that is no text, as the core schema prints it."""
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return key_text(value)

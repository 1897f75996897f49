"""Values: what flows between nodes, how they are compared, and how they are written down.

A *plain* value is None, bool, int, float, str, bytes, a conversation, a list of plain values or a dict from str to
plain values. Whatever a node returns is made plain at the border, so that what the live run sees is exactly what a
replay of its journal will see. A *portable* value is its JSON form, in which what JSON lacks is tagged.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from pflow.model.conversation import TAG, Conversation, whole

Value = Any  # a plain value; Python's types cannot say it recursively without cost

_ATOMS = frozenset({type(None), bool, str})
_MAX_INT = 2**63 - 1
_sorted = msgspec.json.Encoder(order="sorted", enc_hook=whole)
_encoder = msgspec.json.Encoder(enc_hook=whole)


def plain(value: Any) -> Value:
    """``value`` as a plain value; the same object when it is one already."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _valid_text(value)
    if kind is int or kind is bool or value is None or kind is float or kind is bytes:
        return value
    if kind is dict:
        return _plain_dict(value)
    if kind is list:
        return _plain_list(value)
    return _plain_other(value)


def _plain_dict(value: dict[Any, Any]) -> dict[str, Value]:
    result = value
    for key, item in value.items():
        made = plain(item)
        name = key if type(key) is str and key.isascii() else key_text(key)
        if made is not item or name is not key:
            if result is value:
                result = dict(value)
            if name is not key:
                del result[key]
            result[name] = made
    return result


def _plain_list(value: list[Any]) -> list[Value]:
    made = [plain(item) for item in value]
    return value if all(a is b for a, b in zip(made, value, strict=True)) else made


def _plain_other(value: Any) -> Value:
    """Values that are nearly plain are translated; anything else is refused by name."""
    if isinstance(value, Conversation):
        return value
    if isinstance(value, Mapping):
        return {key_text(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=canonical)
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return _valid_text(str(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    try:
        return plain(msgspec.to_builtins(value, enc_hook=_path_text))
    except (TypeError, NotImplementedError):
        raise TypeError(f"a value of type {type(value).__name__} cannot be kept") from None


def _path_text(value: Any) -> str:
    if hasattr(value, "__fspath__"):
        return str(value)
    raise NotImplementedError


def _valid_text(text: str) -> str:
    """Lone surrogates (bytes that were no UTF-8) cannot be written; each becomes a question mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def key_text(key: Any) -> str:
    """A mapping's key as text: JSON's spelling for what JSON knows."""
    known = key is None or isinstance(key, (bool, int, float))
    return json_text(key) if known else _valid_text(key if type(key) is str else str(key))


def portable(value: Value) -> Any:
    """A plain value as JSON can hold it; the same object when nothing needs a tag."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is int:
        return value if -_MAX_INT <= value <= _MAX_INT else {TAG: "int", "value": str(value)}
    if kind is float:
        return value if math.isfinite(value) else {TAG: "float", "value": repr(value)}
    if kind is bytes:
        return {TAG: "base64", "data": base64.b64encode(value).decode()}
    if kind is list:
        items = [portable(item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return _portable_dict(value) if kind is dict else value  # whoever encodes a conversation knows how


def _portable_dict(value: dict[str, Value]) -> dict[str, Any]:
    result = value
    for key, item in value.items():
        made = portable(item)
        if made is not item:
            if result is value:
                result = dict(value)
            result[key] = made
    return {TAG: "dict", "value": result} if TAG in value else result


def restore(value: Any) -> Value:
    """The inverse of ``portable``."""
    if type(value) is list:
        return [restore(item) for item in value]
    if type(value) is not dict:
        return value
    match value.get(TAG):
        case None:
            return {key: restore(item) for key, item in value.items()}
        case "base64":
            return base64.b64decode(value["data"])
        case "int":
            return int(value["value"])
        case "float":
            return float(value["value"])
        case "dict":
            return {key: restore(item) for key, item in value["value"].items()}
        case _:
            return value


def canonical(value: Value) -> bytes:
    """One spelling for a value: sorted keys, no spaces, tags for what JSON lacks."""
    return _sorted.encode(portable(value))


def digest(value: Value) -> str:
    """The name of a value: SHA-256 of its canonical form, as hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def json_text(value: Value) -> str:
    """A value as compact JSON text, as templates print lists and mappings."""
    return _encoder.encode(portable(value)).decode()


def json_pretty(value: Value) -> str:
    """A value as JSON for people to read."""
    return msgspec.json.format(_encoder.encode(portable(value)), indent=2).decode()


def same(left: Value, right: Value) -> bool:
    """JSON equality: ``true`` is not ``1``, ``1`` is ``1.0``, the order of keys does not matter."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(item, right[key]) for key, item in left.items())
    return bool(left == right)


def type_name(value: Value) -> str:
    """A value's type in the words of JSON, for messages."""
    names = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "text", bytes: "bytes"}
    return names.get(type(value), "list" if isinstance(value, list) else "object")

"""JSON schemas: whether one can be used, and whether a value fits it.

The part of JSON Schema that structured answers use: types, enum and const, objects, lists, limits, patterns,
any/all/one/not, and references inside the schema. Annotations, ``format`` and other keywords are passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from pflow.errors import NodeError
from pflow.model.value import same, type_name

Schema = dict[str, Any]
_DEPTH = 100
_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: not isinstance(value, bool) and isinstance(value, (int, float)) and value == int(value),
}
# keyword: what of a value it looks at, whether it holds, how it is said
_LIMITS: dict[str, tuple[type | tuple[type, ...], Callable[[Any, Any], bool], str]] = {
    "minimum": ((int, float), lambda value, limit: value >= limit, "is under {}"),
    "maximum": ((int, float), lambda value, limit: value <= limit, "is over {}"),
    "exclusiveMinimum": ((int, float), lambda value, limit: value > limit, "is not over {}"),
    "exclusiveMaximum": ((int, float), lambda value, limit: value < limit, "is not under {}"),
    "minLength": (str, lambda value, limit: len(value) >= limit, "is shorter than {}"),
    "maxLength": (str, lambda value, limit: len(value) <= limit, "is longer than {}"),
    "minItems": (list, lambda value, limit: len(value) >= limit, "has fewer than {} items"),
    "maxItems": (list, lambda value, limit: len(value) <= limit, "has more than {} items"),
    "pattern": (str, lambda value, pattern: re.search(pattern, value) is not None, "does not match {}"),
}


def check(schema: Any) -> Schema:
    """The schema, given as an object or as its JSON; refused before a call is paid for where it cannot be used."""
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError as error:
            raise NodeError(f"the schema is no JSON: {error}", kind="validation") from None
    if not isinstance(schema, dict):
        raise NodeError(f"the schema is {type_name(schema)}, not an object", kind="validation")
    for where, part in _parts(schema, "schema"):
        _check_part(where, part, schema)
    return schema


def problem(value: Any, schema: Schema, name: str = "the answer") -> str:
    """The first thing in which a value does not fit, with its place; empty where it fits."""
    return next(_problems(value, schema, schema, name, 0), "")


def _problems(value: Any, schema: Any, root: Schema, at: str, depth: int) -> Iterator[str]:
    if schema is False:
        yield f"{at} is not allowed"
    if not isinstance(schema, dict):
        return
    if depth > _DEPTH:
        yield f"{at} is nested too deep"
        return
    if "$ref" in schema:
        yield from _problems(value, _referred(schema["$ref"], root), root, at, depth + 1)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_TYPES[name](value) for name in types):
        yield f"{at} is {type_name(value)}, not {' or '.join(types)}"
        return
    if "enum" in schema and not any(same(value, item) for item in schema["enum"]):
        yield f"{at} is {_shown(value)}, not one of {_shown(schema['enum'])}"
    if "const" in schema and not same(value, schema["const"]):
        yield f"{at} is {_shown(value)}, not {_shown(schema['const'])}"
    for keyword, (kind, holds, words) in _LIMITS.items():
        looked_at = keyword in schema and isinstance(value, kind) and not isinstance(value, bool)
        if looked_at and not holds(value, schema[keyword]):
            yield f"{at} {words.format(schema[keyword])}"
    yield from _inside(value, schema, root, at, depth + 1)
    yield from _combined(value, schema, root, at, depth + 1)


def _inside(value: Any, schema: Schema, root: Schema, at: str, depth: int) -> Iterator[str]:
    """Problems of the fields of an object, or of the items of a list."""
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f'{at} has no "{name}"'
        for name, item in value.items():
            inner = fields.get(name, schema.get("additionalProperties", True))
            if inner is False:
                yield f'{at} has "{name}", which is not allowed'
            yield from _problems(item, inner or True, root, f"{at}.{name}", depth)
    if isinstance(value, list):
        first = schema.get("prefixItems", ())
        for n, item in enumerate(value):
            inner = first[n] if n < len(first) else schema.get("items", True)
            yield from _problems(item, inner, root, f"{at}[{n}]", depth)
        if schema.get("uniqueItems") and len({json.dumps(item, sort_keys=True) for item in value}) < len(value):
            yield f"{at} has an item twice"


def _combined(value: Any, schema: Schema, root: Schema, at: str, depth: int) -> Iterator[str]:
    for inner in schema.get("allOf", ()):
        yield from _problems(value, inner, root, at, depth)
    for keyword in ("anyOf", "oneOf"):
        choices = schema.get(keyword)
        if choices is None:
            continue
        found = [next(_problems(value, inner, root, at, depth), "") for inner in choices]
        fits = found.count("")
        if not fits:
            yield f"{at} fits none of its {len(choices)} forms: {'; '.join(found)}"
        elif keyword == "oneOf" and fits > 1:
            yield f"{at} fits {fits} of its forms at once"
    if "not" in schema and not any(_problems(value, schema["not"], root, at, depth)):
        yield f"{at} is what it must not be"


def _parts(schema: Any, at: str) -> Iterator[tuple[str, Schema]]:
    """Every schema inside a schema, with its place."""
    if not isinstance(schema, dict):
        return
    yield at, schema
    for keyword in ("properties", "$defs", "definitions"):
        inner = schema.get(keyword)
        for name, part in inner.items() if isinstance(inner, dict) else ():
            yield from _parts(part, f"{at}.{keyword}.{name}")
    for keyword in ("items", "additionalProperties", "not"):
        yield from _parts(schema.get(keyword), f"{at}.{keyword}")
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        inner = schema.get(keyword)
        for n, part in enumerate(inner if isinstance(inner, list) else ()):
            yield from _parts(part, f"{at}.{keyword}[{n}]")


def _check_part(where: str, part: Schema, root: Schema) -> None:
    types = part.get("type", [])
    for name in [types] if isinstance(types, str) else types if isinstance(types, list) else [types]:
        if name not in _TYPES:
            raise NodeError(f'{where} has the type "{name}"', f"one of {', '.join(_TYPES)}", "validation")
    for keyword, kind in (("properties", dict), ("required", list), ("enum", list), ("anyOf", list), ("oneOf", list)):
        if keyword in part and not isinstance(part[keyword], kind):
            raise NodeError(f"{where}.{keyword} is {type_name(part[keyword])}", kind="validation")
    if "pattern" in part:
        try:
            re.compile(part["pattern"])
        except (re.error, TypeError) as error:
            raise NodeError(f"{where}.pattern cannot be used: {error}", kind="validation") from None
    if "$ref" in part:
        _referred(part["$ref"], root)


def _referred(ref: Any, root: Schema) -> Any:
    found: Any = root
    for name in str(ref).removeprefix("#").strip("/").split("/"):
        if not name:
            continue
        name = name.replace("~1", "/").replace("~0", "~")
        if not str(ref).startswith("#") or not isinstance(found, dict) or name not in found:
            raise NodeError(
                f'the schema refers to "{ref}"', "only to what is in the schema: #/$defs/NAME", "validation"
            )
        found = found[name]
    return found


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:80]}…"

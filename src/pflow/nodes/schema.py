"""Node types as tools: what they are called, what they do, and the JSON schema of their params."""

from __future__ import annotations

from typing import Any

import msgspec

from pflow.nodes.type import REQUIRED, NodeType


def described(kind: NodeType) -> dict[str, Any]:
    """A node type, as a tool is described to a model."""
    return {"name": kind.name, "description": kind.doc.partition("\n\n")[0], "parameters": schema_of(kind)}


def schema_of(kind: NodeType) -> dict[str, Any]:
    """The JSON schema of a node type's params."""
    if kind.schema is not None:
        return kind.schema
    made: dict[str, Any] = {
        "type": "object",
        "properties": {_public(name): _described(param.annotation, param.default) for name, param in _params(kind)},
        "required": [_public(name) for name, param in _params(kind) if param.required],
    }
    return made if kind.open else {**made, "additionalProperties": False}


def _params(kind: NodeType) -> list[tuple[str, Any]]:
    return list(kind.params.items())


def _public(name: str) -> str:
    """``as`` for ``as_``, which only Python needs."""
    return name.removesuffix("_")


def _described(annotation: Any, default: Any) -> dict[str, Any]:
    try:
        made = {} if annotation in (Any, REQUIRED, object) else msgspec.json.schema(annotation)
    except TypeError:
        made = {}  # a type of its own: anything may be tried
    if default is REQUIRED or default is None:
        return made
    return {**made, "default": msgspec.to_builtins(default, enc_hook=str)}

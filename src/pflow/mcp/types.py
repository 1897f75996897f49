"""Node types from the tools of MCP servers: ``mcp-<server>-<tool>``, known without starting anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pflow.documents.schema import check, problem
from pflow.errors import NodeError, UsageError
from pflow.mcp.catalogue import ServerTool, type_name
from pflow.mcp.config import Server
from pflow.mcp.pool import pool
from pflow.model.value import digest
from pflow.model.workflow import Effect
from pflow.nodes.step import StepContext
from pflow.nodes.type import Declared, NodeType, Param, converter

_ANNOTATIONS: dict[Any, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
}


class ToolType(NodeType):
    """A tool of an MCP server as a node type: its schema says its params, its structured content is its outputs."""

    def __init__(self, server: str, spec: Server, tool: ServerTool) -> None:
        declared = Declared(type_name(server, tool.name), outputs=_outputs(tool), main_out="result")
        super().__init__(_caller(server, tool.name), declared, False, f'the MCP server "{server}"')
        self.doc = tool.description or f'The tool "{tool.name}" of the MCP server "{server}".'
        # What a user accepted was this tool of this server; secrets are no part of it.
        self.source = digest([spec.command, list(spec.args), spec.url, _plain(tool)])
        self.read_only = tool.read_only
        self.stays_impure = "" if tool.read_only else "its server does not call it read-only"
        self.schema = tool.input_schema
        self.open = bool(tool.input_schema.get("additionalProperties", not _properties(tool)))
        self.params = _params(tool)
        self.converters = {name: _lenient(param) for name, param in self.params.items()}
        self._checked = _usable(tool.input_schema)

    def effect_for(self, params: Mapping[str, Any]) -> Effect:
        """Impure, unless the server calls it read-only and the user has accepted it."""
        return "quiet" if self.read_only and self.standing == "accepted" else "impure"

    def convert(self, params: dict[str, Any]) -> dict[str, Any]:
        """Params of the types that the tool's schema asks for; raises ``UsageError`` naming the one that does not fit.

        What is not there is left out: a tool's optional params are rarely allowed to be null.
        """
        given = {key: value for key, value in params.items() if value is not None or self._wants_null(key)}
        made = super().convert(given)
        wrong = problem(made, self.schema or {}, "params") if self._checked else ""
        if wrong:
            raise UsageError(f"{self.name}: {wrong}", f"`pflow registry describe {self.name}` shows what it takes")
        return made

    def _wants_null(self, key: str) -> bool:
        param = self.params.get(key)
        if param is None or param.required:
            return True
        schema = self.schema or {}
        field = schema.get("properties", {}).get(key)
        shared: dict[str, Any] = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
        return self._checked and isinstance(field, dict) and not problem(None, {**shared, **field}, key)


def _caller(server: str, tool: str) -> Callable[..., Any]:
    async def call(step: StepContext, /, **arguments: Any) -> dict[str, Any]:
        return await pool().call(step, server, tool, arguments)

    return call


def _plain(tool: ServerTool) -> list[Any]:
    return [tool.name, tool.description, tool.input_schema, tool.output_schema, tool.read_only]


def _properties(tool: ServerTool) -> dict[str, Any]:
    found = tool.input_schema.get("properties")
    return found if isinstance(found, dict) else {}


def _params(tool: ServerTool) -> dict[str, Param]:
    required = tool.input_schema.get("required") or ()
    return {name: _param(name, field, name in required) for name, field in _properties(tool).items()}


def _param(name: str, field: Any, required: bool) -> Param:
    said = field.get("type") if isinstance(field, dict) else None
    annotation = _ANNOTATIONS.get(said, Any) if isinstance(said, str) else Any
    if required:
        return Param(name, annotation)
    return Param(name, annotation, field.get("default") if isinstance(field, dict) else None)


def _lenient(param: Param) -> Callable[[Any], Any]:
    """A converter for every param, so that all of them are held against the schema."""
    return converter(param) or (lambda value: value)


def _outputs(tool: ServerTool) -> tuple[str, ...] | None:
    """The outputs that the tool's own schema names; None where it has none, and anything may come."""
    schema = tool.output_schema
    fields = schema.get("properties") if schema is not None else None
    if not isinstance(fields, dict):
        return None
    return tuple(dict.fromkeys(["result", *fields, "content"]))


def _usable(schema: dict[str, Any]) -> bool:
    """Whether we can hold params against a schema; what we cannot check, the server will."""
    try:
        check(schema)
    except NodeError:
        return False
    return True

"""pflow JSON: ``nodes`` with ``type`` and ``params``, joined by ``edges``.

    inputs, outputs                     declared, with types; an output's ``source`` is a template
    nodes[].id, type, params            a node's; texts are templates: ${node.output[0].field}, $${x} is literal
    nodes[].batch                       batch: once for each item
    nodes[].exec                        retries → attempts - 1, timeout → timeout, cache → cache; never in params
    edges[].from, to, action            source, target, on: "default", "error", or a route's label
    start_node                          what is not reachable from it is left out
    template_resolution_mode            strict → fail, permissive → keep
    mappings                            legacy renames, turned into templates
    metadata, purpose                   cosmetic

Without edges, nodes form a chain in the order in which they are written. A saved wrapper ``{name, description, ir}`` is
opened.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import msgspec

from pflow.documents.read import Cell, Fields, Reading
from pflow.documents.source import Source
from pflow.errors import Place, Problem, UsageError, suggest
from pflow.model.typed import TYPES, typed
from pflow.model.workflow import DEFAULT, Batch, Edge, Input, Node, Output, Policy, Retry, Workflow

NAME = "pflow"
_TYPES = (*TYPES, "any")
_TOP = (
    "ir_version", "nodes", "edges", "start_node", "inputs", "outputs", "template_resolution_mode", "mappings",
    "metadata",
)  # fmt: skip
_NODE = ("id", "type", "purpose", "params", "batch", "exec")
_BATCH = ("items", "as", "error_handling", "parallel", "max_concurrent", "max_retries", "retry_wait")
_EXEC = ("retries", "timeout", "cache")
_INPUT = ("type", "required", "default", "description", "stdin", "secret")
_OUTPUT = ("type", "description", "source")
_WRAPPER = ("name", "description", "ir", "created_at", "updated_at", "version", "metadata", "rich_metadata")
_MOST_RETRIES = 100
_LONGEST = 10**9  # seconds
_name = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)


# Reading.


def parse(source: Source) -> Workflow:
    """The workflow that a document describes; raises ``WorkflowError`` with everything that is wrong with it."""
    reading = Reading(source)
    top, name, description = _opened(reading)
    nodes = [_node(cell) for cell in top.items("nodes", required=True)]
    edges = [_edge(cell) for cell in top.items("edges")] or _chain(nodes)
    inputs = tuple(_input(name, cell) for name, cell in top.entries("inputs"))
    nodes, edges, warnings = _reachable(top, nodes, edges)
    nodes = _mapped(top, nodes, edges, {item.name for item in inputs})
    metadata = top.cell("metadata")
    workflow = Workflow(
        name=name or PurePath(source.file).stem or "workflow",
        dialect=NAME,
        nodes=tuple(nodes),
        edges=tuple(edges),
        inputs=inputs,
        open_inputs=not inputs,
        outputs=tuple(_output(name, cell, nodes) for name, cell in top.entries("outputs")),
        syntax="dollar",
        missing="keep" if _mode(top) == "permissive" else "fail",
        safe_retries=True,
        description=description,
        version=top.text("ir_version"),
        file=source.file,
        text=source.text,
        warnings=tuple(warnings),
        notes={"metadata": metadata.value} if metadata is not None else {},
    )
    reading.finish()
    return workflow


def _opened(reading: Reading) -> tuple[Fields, str, str]:
    """The document's own fields; those of its ``ir`` where it is wrapped, with the wrapper's name."""
    data = reading.source.data
    if isinstance(data, dict) and "ir" in data and "nodes" not in data:
        wrapper = reading.top(_WRAPPER)
        return wrapper.fields("ir", _TOP, required=True), wrapper.text("name"), wrapper.text("description")
    return reading.top(_TOP), "", ""


def _mode(top: Fields) -> str:
    cell = top.cell("template_resolution_mode")
    if cell is None or cell.value in ("strict", "permissive"):
        return "strict" if cell is None else str(cell.value)
    cell.problem(
        f"{cell.label} must be strict or permissive", suggest(str(cell.value), ("strict", "permissive"), "modes")
    )
    return "strict"


def _node(cell: Cell) -> Node:
    reading = cell.reading
    written = cell.value.get("id") if isinstance(cell.value, dict) else None
    reading.node_id = written if isinstance(written, str) else ""
    fields = cell.fields(_NODE)
    places: dict[str, Place] = {}
    params = {}
    for key, inner in fields.entries("params"):
        params[key] = inner.value
        places[f"params.{key}"] = inner.key_place
    for part in ("type", "batch", "exec"):
        if (inner_cell := fields.cell(part)) is not None:
            places[part] = inner_cell.place
    node = Node(
        fields.text("id", required=True),
        fields.text("type", required=True),
        params,
        policy=_policy(fields.fields("exec", _EXEC)),
        batch=_batch(fields),
        place=cell.place,
        places=places,
        notes={"purpose": purpose} if (purpose := fields.text("purpose")) else {},
    )
    reading.node_id = ""
    return node


def _policy(fields: Fields) -> Policy:
    retries = fields.whole("retries", 0, least=0, most=_MOST_RETRIES)
    cell = fields.cell("cache")
    return Policy(
        retry=Retry(retries + 1),
        timeout=fields.number("timeout", above=0, most=_LONGEST),
        cache=cell.flag() if cell is not None and cell.value is not None else None,
    )


def _batch(fields: Fields) -> Batch | None:
    cell = fields.cell("batch")
    if cell is None or cell.value is None:
        return None
    own = cell.fields(_BATCH)
    items = own.cell("items", required=True)
    if items is not None and not _may_be_list(items.value):
        items.wrong("a list or a template", 'for example "${files.names}"')
    name = own.text("as", "item")
    if not _name.fullmatch(name):
        cell.problem(f'"{name}" cannot be the name of an item', 'for example "item"')
    handling = own.text("error_handling", "fail_fast")
    if handling not in ("fail_fast", "continue"):
        cell.problem(
            f'"error_handling" cannot be "{handling}"', suggest(handling, ("fail_fast", "continue"), "choices")
        )
    width = own.whole("max_concurrent", 10, least=1, most=10_000) if own.flag("parallel") else 1
    tries = own.whole("max_retries", 1, least=1, most=_MOST_RETRIES)
    wait = own.number("retry_wait", most=_LONGEST)
    return Batch(items.value if items else [], name, width, handling == "fail_fast", Retry(tries, wait or 0.0))


def _may_be_list(value: Any) -> bool:
    """Whether a value is a list, may become one, or is the JSON of one."""
    if not isinstance(value, str) or "${" in value:
        return isinstance(value, (str, list))
    return isinstance(typed(value.strip()), list)


def _edge(cell: Cell) -> Edge:
    fields = cell.fields(("from", "to", "action"))
    source, target = fields.text("from", required=True), fields.text("to", required=True)
    return Edge(source, target, fields.text("action") or DEFAULT, place=cell.place)


def _chain(nodes: list[Node]) -> list[Edge]:
    return [Edge(first.id, second.id, DEFAULT, place=second.place) for first, second in pairwise(nodes)]


def _input(name: str, cell: Cell) -> Input:
    fields = cell.fields(_INPUT)
    kind = fields.text("type", "any")
    if kind not in _TYPES:
        cell.problem(f'input "{name}": there is no type "{kind}"', suggest(kind, _TYPES, "types"), "type")
    default = fields.cell("default")
    required = fields.flag("required", True) and default is None
    return Input(
        name, kind, required, default.value if default else None, fields.text("description"), fields.flag("stdin"),
        fields.flag("secret"), place=cell.key_place,
    )  # fmt: skip


def _output(name: str, cell: Cell, nodes: list[Node]) -> Output:
    fields = cell.fields(_OUTPUT)
    written = fields.text("source")
    last = nodes[-1].id if nodes else ""
    source = written if "${" in written else f"${{{written or f'{last}.{name}'}}}"
    return Output(name, source, fields.text("type", "any"), fields.text("description"), cell.key_place)


def _reachable(top: Fields, nodes: list[Node], edges: list[Edge]) -> tuple[list[Node], list[Edge], list[Problem]]:
    """What a run from ``start_node`` can come to, with a warning about the rest."""
    cell = top.cell("start_node")
    if cell is None or cell.value is None:
        return nodes, edges, []
    start, ids = cell.text() or "", [node.id for node in nodes]
    if start not in ids:
        cell.problem(f'"start_node" names no node: "{start}"', suggest(start, ids, "nodes"), "edge")
        return nodes, edges, []
    found, queue = {start}, deque([start])
    while queue:
        here = queue.popleft()
        ahead = [edge.target for edge in edges if edge.source == here and edge.target not in found]
        found.update(ahead)
        queue.extend(ahead)
    left = [node.id for node in nodes if node.id not in found]
    text = f'not reachable from "{start}" and left out: {", ".join(left)}'
    warnings = (
        [Problem(text, cell.place, "remove start_node, or add edges", "unreachable", warning=True)] if left else []
    )
    return (
        [node for node in nodes if node.id in found],
        [edge for edge in edges if edge.source in found and edge.target in found],
        warnings,
    )


def _mapped(top: Fields, nodes: list[Node], edges: list[Edge], inputs: set[str]) -> list[Node]:
    """Legacy renames: a param takes what an earlier node left under a name."""
    renamed: dict[str, str] = {}
    wanted: dict[str, dict[str, str]] = {}
    for node_id, cell in top.entries("mappings"):
        if node_id not in {node.id for node in nodes}:
            cell.problem(
                f'"mappings" names no node: "{node_id}"', suggest(node_id, [n.id for n in nodes], "nodes"), "edge"
            )
        fields = cell.fields(("input_mappings", "output_mappings"))
        for output, inner in fields.entries("output_mappings"):
            renamed[inner.text() or ""] = f"{node_id}.{output}"
        wanted[node_id] = {param: inner.text() or "" for param, inner in fields.entries("input_mappings")}
    before = {edge.target: edge.source for edge in edges}
    made = []
    for node in nodes:
        params = dict(node.params)
        for param, key in wanted.get(node.id, {}).items():
            path = renamed.get(key) or (
                key if key in inputs else f"{before[node.id]}.{key}" if node.id in before else key
            )
            params.setdefault(param, f"${{{path}}}")
        made.append(msgspec.structs.replace(node, params=params))
    return made


# Printing.


def dump(workflow: Workflow) -> str:
    """A pflow document that says what a workflow of this dialect says."""
    from pflow.model.value import json_pretty

    if workflow.dialect != NAME:
        raise UsageError(
            f"a {workflow.dialect} workflow cannot be printed as pflow JSON", "print it in its own dialect"
        )
    made: dict[str, Any] = {"ir_version": workflow.version} if workflow.version else {}
    if workflow.inputs:
        made["inputs"] = {item.name: _printed_input(item) for item in workflow.inputs}
    if workflow.missing == "keep":
        made["template_resolution_mode"] = "permissive"
    made["nodes"] = [_printed_node(node) for node in workflow.nodes]
    made["edges"] = [
        {"from": edge.source, "to": edge.target, **({} if edge.on == DEFAULT else {"action": edge.on})}
        for edge in workflow.edges
    ]
    if workflow.outputs:
        made["outputs"] = {output.name: _printed_output(output) for output in workflow.outputs}
    return json_pretty(made | workflow.notes) + "\n"


def _printed_input(item: Input) -> dict[str, Any]:
    made: dict[str, Any] = {"type": item.type, "required": item.required}
    if not item.required:
        made["default"] = item.default
    extra = {"description": item.description, "stdin": item.stdin, "secret": item.secret}
    return made | {key: value for key, value in extra.items() if value}


def _printed_output(output: Output) -> dict[str, Any]:
    made = {"type": output.type, "source": output.source}
    return made | ({"description": output.description} if output.description else {})


def _printed_node(node: Node) -> dict[str, Any]:
    made: dict[str, Any] = {"id": node.id, "type": node.type, **node.notes, "params": node.params}
    directives = {
        "retries": node.policy.retry.attempts - 1 or None,
        "timeout": node.policy.timeout,
        "cache": node.policy.cache,
    }
    directives = {key: value for key, value in directives.items() if value is not None}
    if directives:
        made["exec"] = directives
    if node.batch is not None:
        made["batch"] = _printed_batch(node.batch)
    return made


def _printed_batch(batch: Batch) -> dict[str, Any]:
    return {
        "items": batch.items,
        "as": batch.name,
        "error_handling": "fail_fast" if batch.fail_fast else "continue",
        "parallel": batch.width > 1,
        "max_concurrent": batch.width if batch.width > 1 else 10,
        "max_retries": batch.retry.attempts,
        "retry_wait": batch.retry.delay,
    }

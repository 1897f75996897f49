"""HiFide graphs: nodes with ports, joined by edges from handle to handle.

    nodes[].id, nodeType, config        id, type, params; texts in a config are no templates
    edges[].source, sourceHandle        source, on: the port that a value comes from
    edges[].target, targetHandle        target, port: where it goes
    everything else                     cosmetic, and printed again: position, label, expanded, …

Older forms are read as well: ``kind`` or ``type`` for ``nodeType``, all of it below ``data``, ``chat`` for
``llmRequest``. Handles have aliases; one that is omitted is ``context``.
"""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from pflow.documents.read import Cell, Reading
from pflow.documents.source import Source
from pflow.errors import Problem, UsageError
from pflow.model.graph import CONTEXT, DATA
from pflow.model.workflow import Edge, Node, Workflow
from pflow.nodes.graph_api.flow import handle
from pflow.planning.wires import ENTRY

NAME = "hifide"
_LEGACY = {"chat": "llmRequest"}
_TYPED = ("nodeType", "kind", "type")
_EDGE = ("source", "target", "sourceHandle", "targetHandle")


# Reading.


def parse(source: Source) -> Workflow:
    """The workflow that a graph describes; raises ``WorkflowError`` with everything that is wrong with it."""
    reading = Reading(source)
    data = source.data if isinstance(source.data, dict) else {}
    top = reading.top(tuple(data))
    nodes = [_node(cell) for cell in top.items("nodes", required=True)]
    warnings: list[Problem] = []
    edges = [_edge(cell, {node.id: node.type for node in nodes}, warnings) for cell in top.items("edges")]
    name, version = data.get("name"), data.get("version")
    workflow = Workflow(
        name=name if isinstance(name, str) and name else PurePath(source.file).stem or "graph",
        dialect=NAME,
        nodes=tuple(nodes),
        edges=tuple(edges),
        scheduler="reactive",
        description=top.text("description"),
        version="" if version is None else str(version),
        file=source.file,
        text=source.text,
        warnings=tuple(warnings),
        notes={key: value for key, value in data.items() if key not in ("nodes", "edges")},
    )
    reading.finish()
    return workflow


def _node(cell: Cell) -> Node:
    data = cell.value if isinstance(cell.value, dict) else {}
    fields = cell.fields(tuple(data))
    node_id = cell.reading.node_id = fields.text("id", required=True)
    found = data.get("data")
    inner = found if isinstance(found, dict) else {}
    nested = "nodeType" in inner
    own = Cell(cell.reading, inner, (*cell.path, "data")).fields(tuple(inner)) if nested else fields
    key = "nodeType" if nested else next((key for key in _TYPED if data.get(key)), "")
    kind = own.text(key) if key else ""
    if not kind:
        hint = 'name it: "nodeType": "llmRequest"'
        cell.problem(f'node "{node_id}" has no type', hint, "missing-key")
    config = own.cell("config")
    params = {} if config is None or config.value is None else dict(config.entries())
    used = {"id", "config", *_TYPED, *(("data",) if nested else ())}
    notes = {name: value for name, value in data.items() if name not in used}
    if nested:
        notes |= {name: value for name, value in inner.items() if name not in used and name not in notes}
    made = Node(
        id=node_id,
        type=_LEGACY.get(kind, kind),
        params={name: one.value for name, one in params.items()},
        place=cell.place,
        places={f"params.{name}": one.key_place for name, one in params.items()},
        notes=notes,
    )
    cell.reading.node_id = ""
    return made


def _edge(cell: Cell, types: dict[str, str], warnings: list[Problem]) -> Edge:
    data = cell.value if isinstance(cell.value, dict) else {}
    fields = cell.fields(tuple(data))
    source, target = fields.text("source", required=True), fields.text("target", required=True)
    out, port = handle(fields.text("sourceHandle")), handle(fields.text("targetHandle"))
    if types.get(source) == ENTRY and (out, port) == (DATA, CONTEXT):
        text = f'edge {source} → {target}: an old form; "{source}" gives its context as "context"'
        warnings.append(Problem(text, cell.place, 'write "sourceHandle": "context"', "legacy", warning=True))
        out = CONTEXT
    notes = {key: value for key, value in data.items() if key not in _EDGE}
    return Edge(source, target, out, port=port, place=cell.place, notes=notes)


# Printing.


def dump(workflow: Workflow) -> str:
    """A graph that says what a workflow of this dialect says, with all that is cosmetic in it."""
    if workflow.dialect != NAME:
        raise UsageError(f"a {workflow.dialect} workflow cannot be printed as a graph", "print it in its own dialect")
    made: dict[str, Any] = {"name": workflow.name, **workflow.notes}
    made["nodes"] = [
        {"id": node.id, "nodeType": node.type, "config": node.params, **node.notes} for node in workflow.nodes
    ]
    made["edges"] = [
        {**edge.notes, "source": edge.source, "target": edge.target, "sourceHandle": edge.on, "targetHandle": edge.port}
        for edge in workflow.edges
    ]
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"

"""FlowSpec: YAML with a ``flow``, its ``nodes`` and its ``edges``.

    flow.name, version, description    the workflow's
    flow.input                         inputs with their defaults, found at ``flow.input``
    flow.nodePacks                     packs
    flow.policy                        failFast → fail_fast, maxConcurrency → width
    nodes[].id, type                   a node's; ids are names, since paths start with them
    nodes[].input                      params; their texts are templates: {{path}}, {{?path}}, {{path | default:…}}
    nodes[].config                     params as well, but static: a binding in there is refused
    nodes[].when, edges[].when         guards: equals {var, value} → same, not, and, or
    nodes[].policy                     retry.maxAttempts → attempts, backoffMs → delay, timeoutMs → timeout,
                                       continueOnError → tolerate
    edges[].from, to                   source, target

Edges are never inferred. The order of keys says nothing, so inputs are kept in order of their names.
"""

from __future__ import annotations

import math
import re
from typing import Any

from pflow.documents.read import Cell, Fields, Reading
from pflow.documents.source import Source
from pflow.errors import BindingError, Place, UsageError
from pflow.lang.path import path_text, read_path
from pflow.model.value import key_text
from pflow.model.workflow import ANY, Edge, Expr, Input, Node, Policy, Retry, Workflow

NAME = "flowspec"
INPUT_PATH = ("flow", "input")

_TOP = ("flow", "nodes", "edges")
_FLOW = ("name", "version", "description", "input", "nodePacks", "policy")
_FLOW_POLICY = ("failFast", "maxConcurrency")
_NODE = ("id", "type", "input", "config", "when", "policy")
_NODE_POLICY = ("retry", "timeoutMs", "continueOnError")
_RETRY = ("maxAttempts", "backoffMs")
_EDGE = ("from", "to", "when")
_CONDITIONS = ("equals", "not", "and", "or")
_LONGEST = 10**12  # milliseconds: some thirty years

_id = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_agent = re.compile(r"(?:.*[./])?agent(?:@.*)?", re.IGNORECASE | re.DOTALL)
_PROMPTS = {"prompt": "prompt", "prompt_file": "promptFile", "messages": "messages"}  # of an agent: one of these


# Reading.


def parse(source: Source) -> Workflow:
    """The workflow that a document describes; raises ``WorkflowError`` with everything that is wrong with it."""
    reading = Reading(source)
    top = reading.top(_TOP)
    flow = top.fields("flow", _FLOW, required=True)
    policy = flow.fields("policy", _FLOW_POLICY)
    workflow = Workflow(
        name=flow.text("name", required=True),
        dialect=NAME,
        nodes=tuple(_node(cell) for cell in top.items("nodes", required=True)),
        edges=tuple(_edge(cell) for cell in top.items("edges", required=True)),
        inputs=_inputs(flow),
        input_path=INPUT_PATH,
        width=policy.whole("maxConcurrency", 1, least=1),
        fail_fast=policy.flag("failFast", True),
        packs=tuple(cell.text() or "" for cell in flow.items("nodePacks")),
        description=flow.text("description"),
        version=_version(flow),
        file=source.file,
        text=source.text,
    )
    reading.finish()
    return workflow


def _inputs(flow: Fields) -> tuple[Input, ...]:
    found = [Input(name, default=cell.value, place=cell.key_place) for name, cell in flow.entries("input")]
    return tuple(sorted(found, key=lambda item: item.name))


def _version(flow: Fields) -> str:
    cell = flow.cell("version")
    if cell is None or cell.value is None:
        return "1"
    if type(cell.value) is int or (type(cell.value) is float and math.isfinite(cell.value)):
        return key_text(cell.value)
    return cell.text() or ""


def _node(cell: Cell) -> Node:
    cell.reading.node_id = _written_id(cell)
    fields = cell.fields(_NODE)
    node_id = _node_id(fields)
    kind = fields.text("type", required=True)
    params, places, static = _params(fields, kind)
    if (type_cell := fields.cell("type")) is not None:
        places["type"] = type_cell.place
    guard = _when(fields, places)
    policy = _policy(fields.fields("policy", _NODE_POLICY))
    cell.reading.node_id = ""
    return Node(
        node_id,
        kind,
        params,
        guard,
        policy,
        place=cell.place,
        places=places,
        notes={"config": static} if static else {},
    )


def _written_id(cell: Cell) -> str:
    written = cell.value.get("id") if isinstance(cell.value, dict) else None
    return written if isinstance(written, str) else ""


def _node_id(fields: Fields) -> str:
    node_id = fields.text("id", required=True)
    cell = fields.cell("id")
    if cell is None or not node_id.strip():
        return ""
    if not _id.fullmatch(node_id):
        hint = f'for example "{_as_id(node_id)}"'
        cell.problem(f'"{node_id[:60]}" cannot be an id: ids are letters, digits and _, and start with no digit', hint)
    elif node_id == INPUT_PATH[0]:
        cell.problem(f'"{node_id}" cannot be an id: it names the flow itself', 'its input is at "flow.input"')
    return node_id


def _as_id(text: str) -> str:
    """An id that looks like a text."""
    made = re.sub(r"\W+", "_", text[:60], flags=re.ASCII).strip("_")
    return made if _id.fullmatch(made) else f"node_{made}"


def _params(fields: Fields, kind: str) -> tuple[dict[str, Any], dict[str, Place], list[str]]:
    """A node's params, their places, and which of them are static."""
    params: dict[str, Any] = {}
    places: dict[str, Place] = {}
    static: list[str] = []
    for part in ("input", "config"):
        for written, cell in fields.entries(part):
            key = "prompt_file" if written == "promptFile" and _agent.fullmatch(kind) else written
            if key in params:
                cell.reading.problem(
                    f'"{written[:60]}" is given twice', cell.key_place, "keep one of the two", "duplicate"
                )
            if part == "config":
                static.append(key)
                _refuse_bindings(cell)
            params[key] = cell.value
            places[f"params.{key}"] = cell.key_place
    if _agent.fullmatch(kind):
        _check_prompt(fields, params, places)
    return params, places, static


def _refuse_bindings(cell: Cell) -> None:
    for text in cell.texts():
        if "{{" in text.value:
            text.problem('"config" is static: nothing is bound in it', 'move this to "input"', "template")


def _check_prompt(fields: Fields, params: dict[str, Any], places: dict[str, Place]) -> None:
    reading = fields.reading
    given = [key for key in _PROMPTS if params.get(key) is not None]
    for key in given[1:]:
        message = f'"{_PROMPTS[key]}" and "{_PROMPTS[given[0]]}" exclude each other'
        reading.problem(message, places[f"params.{key}"], "keep one of the two")
    file = params.get("prompt_file")
    if file is not None and not isinstance(file, str):
        reading.problem('"promptFile" must be a path in text', places["params.prompt_file"], "quote it", "type")


def _policy(fields: Fields) -> Policy:
    timeout = fields.number("timeoutMs", above=0, most=_LONGEST)
    return Policy(
        retry=_retry(fields.fields("retry", _RETRY)),
        timeout=timeout / 1000 if timeout is not None else None,
        tolerate=fields.flag("continueOnError"),
    )


def _retry(fields: Fields) -> Retry:
    attempts = fields.whole("maxAttempts", 1, least=1, required=True)
    backoff = fields.number("backoffMs", most=_LONGEST)
    return Retry(attempts, backoff / 1000) if backoff else Retry(attempts)


def _edge(cell: Cell) -> Edge:
    fields = cell.fields(_EDGE)
    source, target = fields.text("from", required=True), fields.text("to", required=True)
    return Edge(source, target, guard=_when(fields, {}), place=cell.place)


def _when(fields: Fields, places: dict[str, Place]) -> Expr | None:
    cell = fields.cell("when")
    if cell is None:
        return None
    places["guard"] = cell.key_place
    return _condition(cell)


def _condition(cell: Cell) -> Expr:
    """A condition as an expression; a wrong one is reported, and gives one that nobody will evaluate."""
    fields = cell.fields(_CONDITIONS)
    given = [inner for word in _CONDITIONS if (inner := fields.cell(word)) is not None]
    if len(given) != 1:
        if given or cell.value == {}:
            found = " and ".join(inner.label for inner in given) or "none"
            cell.problem(
                f"a condition is one of {', '.join(_CONDITIONS)}; here is {found}", "combine several: and: [{…}, {…}]"
            )
        return ["and"]
    (inner,) = given
    word = inner.path[-1]
    if word == "equals":
        return _equals(inner)
    return [word, *map(_condition, [inner] if word == "not" else inner.items())]


def _equals(cell: Cell) -> Expr:
    fields = cell.fields(("var", "value"))
    fields.text("var", required=True)
    var, value = fields.cell("var"), fields.cell("value", required=True)
    return ["same", ["path", *_path(var)], ["value", None if value is None else value.value]]


def _path(cell: Cell | None) -> list[Any]:
    """The parts of a path that is written without braces."""
    if cell is None or not isinstance(cell.value, str) or not cell.value.strip():
        return ["?"]
    try:
        path, end = read_path(cell.value, 0)
    except BindingError:
        path, end = (), 0
    if end < len(cell.value) or path_text(path[:1]) != path[0]:
        cell.problem(f'"{cell.value[:60]}" is not a path', 'write it without braces, for example "check.value"')
    return list(path)


# Printing.


def dump(workflow: Workflow) -> str:
    """A FlowSpec document that says what a workflow of this dialect says; comments and layout are not kept."""
    if workflow.dialect != NAME:
        raise UsageError(f"a {workflow.dialect} workflow cannot be printed as FlowSpec", "print it in its own dialect")
    from pflow.documents.yaml_print import dump as as_yaml

    sections = {
        "flow": _printed_flow(workflow),
        "nodes": [_printed_node(node) for node in workflow.nodes],
        "edges": [_printed_edge(edge) for edge in workflow.edges],
    }
    return "\n".join(as_yaml({key: value}) for key, value in sections.items())


def _printed_flow(workflow: Workflow) -> dict[str, Any]:
    version = workflow.version
    number = re.fullmatch(r"0|[1-9][0-9]{0,15}", version)
    policy = {
        "failFast": None if workflow.fail_fast else False,
        "maxConcurrency": workflow.width if workflow.width != 1 else None,
    }
    return _given(
        name=workflow.name,
        version=None if version == "1" else int(version) if number else version,
        description=workflow.description or None,
        input={item.name: item.default for item in workflow.inputs} or None,
        nodePacks=list(workflow.packs) or None,
        policy=_given(**policy) or None,
    )


def _printed_node(node: Node) -> dict[str, Any]:
    static = node.notes.get("config", ())
    written = {
        key: "promptFile" if key == "prompt_file" and _agent.fullmatch(node.type) else key for key in node.params
    }
    return _given(
        id=node.id,
        type=node.type,
        when=_printed_guard(node.guard),
        input={written[key]: value for key, value in node.params.items() if key not in static} or None,
        config={written[key]: value for key, value in node.params.items() if key in static} or None,
        policy=_printed_policy(node.policy) or None,
    )


def _printed_policy(policy: Policy) -> dict[str, Any]:
    retry: dict[str, Any] = {"maxAttempts": policy.retry.attempts}
    if policy.retry.delay:
        retry["backoffMs"] = _ms(policy.retry.delay)
    return _given(
        retry=retry if policy.retry != Retry() else None,
        timeoutMs=None if policy.timeout is None else _ms(policy.timeout),
        continueOnError=policy.tolerate or None,
    )


def _printed_edge(edge: Edge) -> dict[str, Any]:
    if edge.on != ANY:
        raise UsageError(f'the edge {edge.source} → {edge.target} is taken on "{edge.on}"', "FlowSpec has only guards")
    return _given(**{"from": edge.source, "to": edge.target, "when": _printed_guard(edge.guard)})


def _printed_guard(guard: Expr | None) -> dict[str, Any] | None:
    match guard:
        case None:
            return None
        case ["same", ["path", *parts], ["value", value]]:
            return {"equals": {"var": path_text(parts), "value": value}}
        case ["not", inner]:
            return {"not": _printed_guard(inner)}
        case ["and" | "or" as word, *inner]:
            return {word: [_printed_guard(item) for item in inner]}
        case _:
            raise UsageError(f"FlowSpec has no condition for {str(guard)[:80]}", "it knows equals, not, and, or")


def _given(**fields: Any) -> dict[str, Any]:
    """What was given, without what was not."""
    return {key: value for key, value in fields.items() if value is not None}


def _ms(seconds: float) -> float:
    """The milliseconds that are read as these seconds: whole ones if they are."""
    near = seconds * 1000
    return next((ms for ms in (round(near), near, math.nextafter(near, 0)) if ms / 1000 == seconds), near)

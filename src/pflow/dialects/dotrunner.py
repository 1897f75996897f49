"""DotRunner: YAML with ``nodes`` that ask agents and say where to go next.

    workflow.name, description, version, context    the workflow's, also at the top; context gives inputs, in which
                                                    ${ENV} is the environment's
    nodes[].prompt, agent, agent_mode, outputs      an ``agent`` node; texts are templates: {var}, {node.output}
    nodes[].workflow, inputs, outputs               a ``workflow`` node
    nodes[].parallel_tasks, for_each                an ``agent.tasks`` node: one call for each task, at once
    nodes[].next                                    a text: there; a mapping: by the first output's value; a list: by
                                                    the first ``when`` that holds; ``default`` otherwise
    nodes[].retry_on_failure, retry_delay, retry    attempts, delay, by kind of error
    nodes[].critical, optional, on_optional_failure, on_error, max_visits, timeout, strict_outputs, type: terminal

Without ``next`` the node that is listed next follows, unless some route names that one.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from pflow.documents.read import Cell, Fields, Reading
from pflow.documents.source import Source
from pflow.errors import ExpressionError, Place, Problem
from pflow.lang.expression import parse as parse_expression
from pflow.model.workflow import ANY, DEFAULT, ERROR, OPTIONAL, Edge, Input, Node, Policy, Retry, Workflow

NAME = "dotrunner"
_OWN = ("name", "description", "version", "context")
_NODE = (
    "id", "name", "description", "prompt", "workflow", "inputs", "agent", "agent_mode", "outputs", "next",
    "retry_on_failure", "retry_delay", "retry", "timeout", "critical", "optional", "on_optional_failure", "on_error",
    "parallel_tasks", "for_each", "strict_outputs", "max_visits", "type",
)  # fmt: skip
_TASK = ("id", "name", "agent", "agent_mode", "prompt", "workflow", "inputs")
_RULE = ("retries", "delay", "backoff")
_MOST_RETRIES = 100
_LONGEST = 10**9
_DELAY = 1.0
_env = re.compile(r"\$\{[A-Za-z_]\w*\}", re.ASCII)
_word = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)


def parse(source: Source) -> Workflow:
    """The workflow that a document describes; raises ``WorkflowError`` with everything that is wrong with it."""
    reading = Reading(source)
    wrapped = isinstance(source.data, dict) and "workflow" in source.data
    top = reading.top(("workflow", "nodes") if wrapped else (*_OWN, "nodes"))
    own = top.fields("workflow", _OWN, required=True) if wrapped else top
    cells = top.items("nodes", required=True)
    read = [_node(cell) for cell in cells]
    edges, warnings = _edges(cells, [node for node, _ in read], [terminal for _, terminal in read])
    workflow = Workflow(
        name=own.text("name") or PurePath(source.file).stem or "workflow",
        dialect=NAME,
        nodes=tuple(node for node, _ in read),
        edges=tuple(edges),
        inputs=_inputs(own),
        syntax="brace",
        scheduler="routed",
        flat=True,
        description=own.text("description"),
        version=_version(own),
        file=source.file,
        text=source.text,
        warnings=tuple(warnings),
    )
    reading.finish()
    return workflow


def _version(own: Fields) -> str:
    cell = own.cell("version")
    return "" if cell is None or cell.value is None else str(cell.value)


def _inputs(own: Fields) -> tuple[Input, ...]:
    found = []
    for name, cell in own.entries("context"):
        env = isinstance(cell.value, str) and bool(_env.search(cell.value))
        found.append(Input(name, default=cell.value, env=env, place=cell.key_place))
    return tuple(sorted(found, key=lambda item: item.name))


# ── nodes ──


def _node(cell: Cell) -> tuple[Node, bool]:
    """A node, and whether it ends the run."""
    reading = cell.reading
    written = cell.value.get("id") if isinstance(cell.value, dict) else None
    reading.node_id = written if isinstance(written, str) else ""
    fields = cell.fields(_NODE)
    terminal = _terminal(fields)
    outputs = tuple(text for one in fields.items("outputs") if (text := one.text()) is not None)
    for one in fields.items("outputs"):
        if isinstance(one.value, str) and not _word.fullmatch(one.value):
            one.problem(f'"{one.value[:40]}" cannot be the name of an output', "letters, digits, _ and -")
    kind, params = _work(cell, fields, outputs, terminal)
    places = {f"params.{key}": cell.key_place for key, cell in _placed(fields)}
    node = Node(
        fields.text("id", required=True),
        kind,
        params,
        policy=_policy(fields),
        outputs=outputs,
        max_visits=fields.whole("max_visits", 100, least=1),
        place=cell.place,
        places=places,
        notes={key: text for key in ("name", "description") if (text := fields.text(key))},
    )
    reading.node_id = ""
    return node, terminal


def _terminal(fields: Fields) -> bool:
    cell = fields.cell("type")
    if cell is None or cell.value is None:
        return False
    if cell.value != "terminal":
        cell.problem(f'"type" cannot be "{str(cell.value)[:40]}"', 'the only one is "terminal": the run ends there')
    return True


def _placed(fields: Fields) -> list[tuple[str, Cell]]:
    names = {"prompt": "prompt", "agent": "agent", "agent_mode": "mode", "workflow": "workflow_ref", "inputs": "inputs"}
    found = [(name, fields.cell(key)) for key, name in names.items()]
    return [(name, cell) for name, cell in found if cell is not None]


def _work(cell: Cell, fields: Fields, outputs: tuple[str, ...], terminal: bool) -> tuple[str, dict[str, Any]]:
    """The type of a node and its params."""
    prompt, agent, ref = fields.text("prompt"), fields.text("agent"), fields.text("workflow")
    inputs = {key: one.value for key, one in fields.entries("inputs")}
    if ref and (prompt or agent):
        cell.problem("a node asks an agent or runs a workflow, not both", "split it in two", "exclusive")
    if ref:
        params: dict[str, Any] = {"workflow_ref": ref, "inputs": inputs}
        return "workflow", params | ({"outputs": {name: name for name in outputs}} if outputs else {})
    tasks = _tasks(fields)
    if not prompt and not agent and not tasks:
        if terminal:
            return "control.noop", {}
        cell.problem("a node needs a prompt, an agent or a workflow", 'add "prompt"', "missing-key")
    params = {"prompt": prompt or None, "agent": agent or None, "mode": fields.text("agent_mode") or None}
    params |= {
        "inputs": inputs or None,
        "outputs": list(outputs) or None,
        "strict_outputs": fields.flag("strict_outputs"),
    }
    params = {key: value for key, value in params.items() if value}
    return ("agent.tasks", params | tasks) if tasks else ("agent", params)


def _tasks(fields: Fields) -> dict[str, Any]:
    each = fields.cell("for_each")
    if each is not None and each.value is not None:
        if not isinstance(each.value, (str, list)):
            each.wrong("a list or a template", 'for example "{files}"')
        return {"tasks": each.value, "as_": "item"}
    made: list[Any] = []
    for cell in fields.items("parallel_tasks"):
        if isinstance(cell.value, dict):
            cell.fields(_TASK)
            made.append(cell.value)
        elif (text := cell.text()) is not None:
            made.append(text)
    return {"tasks": made, "as_": "task"} if made else {}


def _policy(fields: Fields) -> Policy:
    retries = fields.whole("retry_on_failure", 0, least=0, most=_MOST_RETRIES)
    delay = fields.number("retry_delay", most=_LONGEST)
    rules = {kind: _rule(cell) for kind, cell in fields.entries("retry")}
    timeout = fields.number("timeout", above=0, most=_LONGEST)
    return Policy(
        retry=Retry(retries + 1, _DELAY if delay is None else delay, "exponential") if retries else Retry(),
        by_kind=rules,
        timeout=timeout,
        tolerate=fields.flag("optional"),
        critical=fields.flag("critical"),
    )


def _rule(cell: Cell) -> Retry:
    fields = cell.fields(_RULE)
    backoff = fields.text("backoff", "exponential")
    if backoff not in ("constant", "exponential"):
        cell.problem(f'"backoff" cannot be "{backoff[:40]}"', "constant or exponential")
        backoff = "exponential"
    delay = fields.number("delay", most=_LONGEST)
    retries = fields.whole("retries", 0, least=0, most=_MOST_RETRIES, required=True)
    return Retry(
        retries + 1, _DELAY if delay is None else delay, "constant" if backoff == "constant" else "exponential"
    )


# ── routes ──


def _edges(cells: list[Cell], nodes: list[Node], terminal: list[bool]) -> tuple[list[Edge], list[Problem]]:
    """Every way from node to node, with warnings about those that are missing."""
    found: list[list[Edge]] = []
    for cell, node in zip(cells, nodes, strict=True):
        fields = Fields(cell, cell.value if isinstance(cell.value, dict) else None)
        own = _next(fields, node)
        for key, on in (("on_error", ERROR), ("on_optional_failure", OPTIONAL)):
            target = fields.text(key)
            if target and (inner := fields.cell(key)) is not None:
                own.append(Edge(node.id, target, on, place=inner.place))
        found.append(own)
    named = {edge.target for own in found for edge in own}
    warnings: list[Problem] = []
    for i, own in enumerate(found):
        goes_on = any(edge.on not in (ERROR, OPTIONAL) for edge in own)
        if goes_on:
            if not any(edge.on in (ANY, DEFAULT) and edge.guard is None for edge in own):
                text = f'node "{nodes[i].id}" has routes but no default'
                warnings.append(_warning(text, nodes[i].place, 'a value without a route is an error; add "default"'))
        elif not terminal[i] and i + 1 < len(nodes):
            after = nodes[i + 1].id
            if after in named:
                text = f'the run ends after "{nodes[i].id}": a route names "{after}", so it does not simply follow'
                warnings.append(_warning(text, nodes[i].place, f'say so: next: "{after}", or type: terminal'))
            else:
                own.insert(0, Edge(nodes[i].id, after, place=nodes[i].place))
    return [edge for own in found for edge in own], warnings


def _warning(text: str, place: Place, hint: str) -> Problem:
    return Problem(text, place, hint, "route", warning=True)


def _next(fields: Fields, node: Node) -> list[Edge]:
    cell = fields.cell("next")
    if cell is None or cell.value is None:
        return []
    if isinstance(cell.value, str):
        return [Edge(node.id, cell.value, place=cell.place)]
    if isinstance(cell.value, dict):
        return [
            Edge(node.id, target, DEFAULT if label.lower() == "default" else label.lower(), place=inner.place)
            for label, inner in cell.entries()
            if (target := inner.text()) is not None
        ]
    return [edge for inner in cell.items() if (edge := _conditional(inner, node)) is not None]


def _conditional(cell: Cell, node: Node) -> Edge | None:
    fields = cell.fields(("when", "goto", "default"))
    other = fields.text("default")
    if other:
        return Edge(node.id, other, DEFAULT, place=cell.place)
    text, target = fields.text("when", required=True), fields.text("goto", required=True)
    inner = fields.cell("when")
    try:
        return Edge(node.id, target, guard=parse_expression(text), place=cell.place, notes={"when": text})
    except ExpressionError as error:
        (inner or cell).problem(f"when: {error.message}", error.hint, "expression")
        return None


# ── printing ──


def dump(workflow: Workflow) -> str:
    """A DotRunner document that says what a workflow of this dialect says; comments and layout are not kept."""
    from pflow.documents.yaml_print import dump as as_yaml

    own: dict[str, Any] = {"name": workflow.name, "description": workflow.description, "version": workflow.version}
    own["context"] = {item.name: item.default for item in workflow.inputs}
    nodes = [_printed(node, [edge for edge in workflow.edges if edge.source == node.id]) for node in workflow.nodes]
    head = {key: value for key, value in own.items() if value}
    return f"{as_yaml({'workflow': head})}\n{as_yaml({'nodes': nodes})}"


def _printed(node: Node, edges: list[Edge]) -> dict[str, Any]:
    params, policy = node.params, node.policy
    made: dict[str, Any] = {"id": node.id, **node.notes}
    names = {"prompt": "prompt", "agent": "agent", "mode": "agent_mode", "workflow_ref": "workflow", "inputs": "inputs"}
    made |= {key: params[name] for name, key in names.items() if params.get(name)}
    if params.get("strict_outputs"):
        made["strict_outputs"] = True
    if params.get("tasks"):
        made["for_each" if params["as_"] == "item" else "parallel_tasks"] = params["tasks"]
    made["outputs"] = list(node.outputs)
    if policy.retry.attempts > 1:
        made |= {"retry_on_failure": policy.retry.attempts - 1, "retry_delay": policy.retry.delay}
    made["retry"] = {
        kind: {"retries": rule.attempts - 1, "delay": rule.delay, "backoff": rule.backoff}
        for kind, rule in policy.by_kind.items()
    }
    made |= {"timeout": policy.timeout, "optional": policy.tolerate, "critical": policy.critical}
    made["max_visits"] = node.max_visits if node.max_visits != 100 else None
    for edge in edges:
        if edge.on in (ERROR, OPTIONAL):
            made["on_error" if edge.on == ERROR else "on_optional_failure"] = edge.target
    made |= _printed_next([edge for edge in edges if edge.on not in (ERROR, OPTIONAL)])
    return {key: value for key, value in made.items() if value or (value == 0 and value is not False)}


def _printed_next(edges: list[Edge]) -> dict[str, Any]:
    if not edges:
        return {"type": "terminal"}
    if any(edge.guard is not None for edge in edges):
        return {
            "next": [
                {"default": edge.target} if edge.guard is None else {"when": edge.notes["when"], "goto": edge.target}
                for edge in edges
            ]
        }
    if len(edges) == 1 and edges[0].on == ANY:
        return {"next": edges[0].target}
    return {"next": {edge.on: edge.target for edge in edges}}

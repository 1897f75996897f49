"""What a client asks without running anything."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from pflow import app
from pflow.app import cache, library, types
from pflow.app.instructions import instructions as page_for_agents
from pflow.app.outcome import value_at
from pflow.app.preview import check, preview
from pflow.app.problems import problem_view, problems_of
from pflow.app.runs import inspect, survey
from pflow.app.trace import trace as trace_of
from pflow.app.trace import visit_files
from pflow.app.wording import sentence
from pflow.errors import PflowError, UsageError, WorkflowError, suggest
from pflow.mcp_server.bounds import Bounds
from pflow.mcp_server.excerpts import page, small

NEWEST = 20
Arguments = dict[str, Any]


def instructions(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """The page for agents."""
    return {"text": page_for_agents()}


def node_types(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """Node types, all or those that mention some words."""
    found = types.search(str(given.get("words", "")).split())
    return {"types": [f"{view['name']} ({view['effect']}): {types.summary(view)}" for view in found]}


def describe_node_type(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """One node type."""
    view = types.describe(given["type"])
    return {key: value for key, value in view.items() if value not in (None, [], {}, "")}


def validate(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """Every problem of a workflow; having some is no error of the call."""
    try:
        flow = bounds.target(given.get("workflow"), given.get("document")).workflow
        warnings = [_problem(one) for one in check(flow)]
    except WorkflowError as error:
        return {"valid": False, "problems": [_problem(one) for one in problems_of(error)]}
    inputs = [
        f"{item.name}: {item.type}" + ("" if item.required else f" = {small(item.default, 100)}")
        for item in flow.inputs
    ]
    return {"valid": True, "problems": warnings, "nodes": [node.id for node in flow.nodes], "inputs": inputs}


def _problem(problem: Any) -> dict[str, Any]:
    return {key: value for key, value in problem_view(problem).items() if value}


def plan(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """What would run, what would be reused, and why."""
    target = bounds.target(given.get("workflow"), given.get("document"))
    rows = preview(target, given.get("inputs") or {}, tuple(given.get("rerun") or ()))
    return {"workflow": target.workflow.name, "nodes": [_row(row, bool(given.get("params"))) for row in rows]}


def _row(row: Any, params: bool) -> dict[str, Any]:
    view = msgspec.to_builtins(row)
    if not params:
        del view["params"]
    return {key: value for key, value in view.items() if value not in ("", [], {}, False)}


def cache_status(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """What is cached of a file."""
    found = cache.status(bounds.path(given["workflow"]))
    nodes = [{"node": one.node, "status": one.status, "note": one.note} for one in found.nodes]
    return {"workflow": given["workflow"], "bytes": found.size, "nodes": nodes}


def why(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """Why a node would run again, or not."""
    path = bounds.path(given["workflow"])
    found = cache.why(path, given["node"], given.get("inputs") or {}, app.Options())
    changed = {name: {"then": then, "now": now} for name, then, now in found.fields if then != now}
    return {
        "node": given["node"],
        "would": found.prospect.would,
        "reason": sentence(found.prospect.reason),
        "changed": changed,
    }


def runs(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """The newest runs inside."""
    most = int(given.get("most", NEWEST))
    found = [glance for glance in survey() if bounds.owns(Path(glance.path))][:most]
    return {"runs": [msgspec.to_builtins(glance) for glance in found]}


def trace(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """What happened in a run, or in one of its nodes."""
    folder = _folder(bounds, given.get("run"))
    view = trace_of(folder)
    node = given.get("node")
    if node is not None:
        return _node_trace(folder, view, node)
    failure = view.pop("failure")
    view["timeline"] = [small(entry, 600) for entry in view["timeline"] if entry["kind"] != "began"]
    view["inputs"] = small(view["inputs"], 1000)
    if failure is not None:
        view["failure"] = {key: small(value, 2000) for key, value in failure.items() if value}
    if len(view["timeline"]) > 60:
        view["timeline"] = [*view["timeline"][:20], f"… {len(view['timeline']) - 40} more …", *view["timeline"][-20:]]
    return {key: value for key, value in view.items() if value is not None}


def _node_trace(folder: Path, view: dict[str, Any], node: str) -> dict[str, Any]:
    entries = [one for one in view["timeline"] if node in (one.get("node_id"), one.get("visit"))]
    if not entries:
        names = dict.fromkeys(one["node_id"] for one in view["timeline"] if "node_id" in one)
        raise UsageError(f'run {folder.name} never came to "{node}"', suggest(node, names, "it came to"))
    visit = entries[-1]["visit"]
    made: dict[str, Any] = {"run_id": folder.name, "visit": visit, "timeline": [small(one, 2000) for one in entries]}
    return made | {name: small(value, 3000) for name, value in visit_files(folder, visit).items()}


def _folder(bounds: Bounds, run_id: str | None) -> Path:
    """A run by its id, or the newest one inside."""
    if run_id is not None:
        return bounds.run(run_id)
    newest = next((one for one in survey() if bounds.owns(Path(one.path))), None)
    if newest is None:
        raise UsageError("there are no runs here yet", "`run` starts one")
    return Path(newest.path)


def field(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """One value of a run, whole."""
    folder = bounds.run(given["run"])
    session = inspect(folder)
    values = dict(session.values)
    with suppress(PflowError):
        values |= session.result().outputs
    found = session.redactor.value(value_at(values, given["path"]))
    return page(found, int(given.get("start", 0)), int(given.get("most", 20_000)))


def save(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """Keep a workflow under a name."""
    document = given.get("document")
    if (document is None) == ("workflow" not in given):
        raise UsageError("give either `workflow` (a path) or `document` (its text)")
    workflow = app.parse(document) if document is not None else app.load(bounds.path(given["workflow"]))
    library.save(workflow, given["name"], replace=bool(given.get("replace")))
    return {"saved": given["name"], "next": f'run(workflow="{given["name"]}")'}


def workflows(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """The saved workflows."""
    return {"workflows": [msgspec.to_builtins(one, enc_hook=str) for one in library.saved()]}


def cancel(bounds: Bounds, given: Arguments) -> dict[str, Any]:
    """End a run for good."""
    folder = bounds.run(given["run"])
    told = app.cancel(folder, "cancelled through MCP")
    return {"run_id": folder.name, "status": "told to cancel" if told else "cancelled"}

"""How a run went, as data: the object that ``--output-format json`` prints, and the value that is the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pflow.app.options import Result
from pflow.app.problems import place_view
from pflow.app.session import Session
from pflow.app.story import cost_of
from pflow.app.wording import sentence
from pflow.errors import Place, UsageError, suggest
from pflow.lang.path import MISSING, find, read_path
from pflow.model.records import Failure, Outcome
from pflow.model.visit import node_of, short, top_of
from pflow.model.workflow import Workflow
from pflow.planning.plan import Plan


def run_view(result: Result, session: Session, key: str | None) -> dict[str, Any]:
    """The whole story of a run, as one object."""
    costs = _costs(result)
    steps = [_step(visit, one, costs.get(visit, 0.0)) for visit, one in result.own.items()]
    value, missing = _asked_for(result, session, key)
    view: dict[str, Any] = {
        "success": result.success and not missing,
        "status": result.status,
        "run_id": result.run_id,
        "result": value,
        "outputs": result.outputs,
        "duration_ms": round(result.duration * 1000, 3),
        "total_cost_usd": None if result.usage.get("unpriced_calls") else cost(result),
        "nodes_executed": executed(result),
        "saved": saved(result),
        "execution": {"nodes_total": result.nodes_total, "steps": steps},
        "errors": errors(result, session.plan) + missing,
        "trace": str(result.path / "trace.jsonl") if result.path is not None else None,
    }
    if unpriced := result.usage.get("unpriced_calls"):
        view["unpriced_calls"] = unpriced
    if result.status == "paused":
        view["held"] = [
            {"node_id": short(visit), "message": why.message, "hint": why.hint} for visit, why in result.held.items()
        ]
        view["waiting"] = [
            {"node_id": short(ask.visit), "question": ask.question, "choices": list(ask.choices)}
            for ask in result.waiting
        ]
        view["doubts"] = [{"node_id": short(visit), "attempt": attempt} for visit, attempt in result.doubts]
    return view


def _asked_for(result: Result, session: Session, key: str | None) -> tuple[Any, list[dict[str, Any]]]:
    """The result; for an output that was asked for and that the run did not make, an error instead."""
    if not result.success:
        return None, []
    try:
        return main_value(result, session, key), []
    except UsageError as error:
        return None, [_error("output", None, error.message, error.hint)]


def executed(result: Result) -> int:
    """How many of the workflow's own nodes did something."""
    return sum(one.attempts > 0 and not one.reused and one.status != "skipped" for one in result.own.values())


def saved(result: Result) -> dict[str, float]:
    """The time and the money that reuse saved."""
    reused = [one.saved for one in result.visits.values() if one.reused]
    return {"ms": round(sum(one.get("ms", 0.0) for one in reused), 3), "cost_usd": sum(map(cost_of, reused))}


def cost(result: Result) -> float:
    """What a run cost, in US dollars."""
    return cost_of(result.usage)


def _costs(result: Result) -> dict[str, float | None]:
    """What each of the workflow's own visits cost, with all that ran inside it; what was reused cost nothing.

    A call whose price nobody knows makes the sum unknown.
    """
    costs: dict[str, float | None] = {}
    for visit, outcome in result.visits.items():
        if outcome.usage and not outcome.reused:
            root = top_of(visit)
            before = costs.get(root, 0.0)
            unknown = before is None or outcome.usage.get("unpriced_calls")
            costs[root] = None if unknown else (before or 0.0) + cost_of(outcome.usage)
    return costs


def _step(visit: str, outcome: Outcome, spent: float | None) -> dict[str, Any]:
    return {
        "node_id": node_of(visit),
        "visit": visit,
        "status": outcome.status,
        "cached": outcome.reused,
        "reason": sentence(outcome.reason),
        "attempts": outcome.attempts,
        "duration_ms": outcome.ms,
        "cost_usd": spent,
    }


# The result.


def main_value(result: Result, session: Session, key: str | None = None) -> Any:
    """What a run was for: the output that was asked for, the first declared one, or the last node's main output."""
    if key is not None:
        return value_at(session.values | result.outputs, key)
    if session.plan.outputs:
        return next(iter(result.outputs.values()), None)
    return _last(result, session.plan)


def shown_value(result: Result, session: Session, key: str | None = None) -> Any:
    """The result as text shows it: several declared outputs are shown together."""
    several = key is None and len(session.plan.outputs) > 1
    return result.outputs if several else main_value(result, session, key)


def _last(result: Result, plan: Plan) -> Any:
    """The main output of the last node: in the plan's order, or where a run finds its own way, of the last visit."""
    if plan.workflow.scheduler != "topological":
        ended = [node_of(visit) for visit in reversed(result.own)]
    else:
        ended = list(reversed(plan.order))
    for node_id in ended:
        outcome = _latest(result, node_id)
        if outcome is not None and outcome.status == "completed":
            return _main_output(plan, node_id, outcome.outputs)
    return None


def _latest(result: Result, node_id: str) -> Outcome | None:
    found = [one for visit, one in result.own.items() if node_of(visit) == node_id]
    return found[-1] if found else None


def _main_output(plan: Plan, node_id: str, outputs: dict[str, Any]) -> Any:
    kind = plan.nodes[node_id].type
    declared = kind.declared.main_out or (kind.main_out if kind.autonomous else "")
    for name in (declared, "result"):
        if name in outputs:
            return outputs[name]
    return next(iter(outputs.values())) if len(outputs) == 1 else outputs or None


def check_key(key: str | None, workflow: Workflow) -> None:
    """Refuse an output that a run of this workflow cannot have, before it is run."""
    if key is None:
        return
    names = [output.name for output in workflow.outputs] + [node.id for node in workflow.nodes]
    if key not in names and key.partition(".")[0].partition("[")[0] not in names:
        raise UsageError(f'the workflow has no output "{key}"', suggest(key, names, "outputs and nodes"))


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """A value of a run by its path: an output, or something inside of one."""
    if path in values:
        return values[path]
    parts, _ = read_path(path, 0)
    found = find(values, parts)
    if found is MISSING:
        inside = values.get(str(parts[0]), {})
        known = [f"{parts[0]}.{name}" for name in inside] if isinstance(inside, dict) else []
        raise UsageError(f'the run made no output "{path}"', suggest(path, known or list(values), "outputs"))
    return found


# Errors.


def errors(result: Result, plan: Plan) -> list[dict[str, Any]]:
    """What went wrong, the cause first; failures that the workflow tolerates are none."""
    if result.status in ("completed", "paused"):
        return []
    if result.status == "interrupted":
        return [_error("interrupted", None, "the run was interrupted", f"pflow resume {result.run_id}")]
    failures = [result.error] if result.error is not None else []
    told = {failure.chain[0] for failure in failures if failure.chain}
    for visit, outcome in result.own.items():
        if outcome.status == "failed" and visit not in told and outcome.failure is not None:
            planned = plan.nodes.get(node_of(visit))
            if planned is None or not planned.node.policy.tolerate:
                failures.append(msgspec.structs.replace(outcome.failure, chain=(visit, *outcome.failure.chain)))
    return [failure_view(failure, plan) for failure in failures] or [
        _error(result.status, None, f"the run was {result.status}", "")
    ]


def failure_view(failure: Failure, plan: Plan) -> dict[str, Any]:
    """A failure as an entry of ``errors``."""
    node_id = short(failure.chain[-1]) if failure.chain else None
    view = _error(failure.kind, node_id, failure.message, failure.hint)
    place = place_of(failure, plan)
    return view | {
        "location": place_view(place) if place is not None else None,
        "error_type": failure.error_type,
        "context": failure.details,
        "stack_trace": failure.stack_trace,
        "recovery_suggestions": list(failure.suggestions) or ([failure.hint] if failure.hint else []),
    }


def place_of(failure: Failure, plan: Plan) -> Place | None:
    """Where the node stands that failed, or the one around it that this document knows."""
    places = [plan.nodes[node].node.place for visit in failure.chain if (node := node_of(visit)) in plan.nodes]
    return places[-1] if places else None


def _error(code: str, node_id: str | None, message: str, hint: str) -> dict[str, Any]:
    return {"code": code, "node_id": node_id, "message": message, "hint": hint, "location": None}

"""What a plan would do, in words: the order, the effects, what would run and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pflow.app.forecast import Prospect
from pflow.errors import ExpressionError
from pflow.lang.expression import describe
from pflow.model.value import portable
from pflow.model.workflow import Effect, Policy
from pflow.planning.plan import Plan, Planned, Values

NO_CACHE = "each time"
_WORST: tuple[Effect, ...] = ("impure", "quiet", "pure")


class Row(msgspec.Struct, frozen=True):
    """A node of a plan, explained."""

    id: str
    type: str
    params: dict[str, Any]
    exec: dict[str, Any]  # how it is attempted; only what differs from once, without a limit
    effect: Effect
    cached: bool
    reason: str
    when: str = ""  # its guard, in words
    after: tuple[str, ...] = ()  # what must have ended before it starts
    within: str = ""  # the loop that repeats it


def explain(plan: Plan, values: Values | None = None, prospects: Mapping[str, Prospect] | None = None) -> list[Row]:
    """A plan's nodes in the order in which a single worker would run them, bodies of loops after their loop.

    ``values`` are what the first nodes see: a guard that reads nothing else is decided.
    """
    rows = _rows(plan, values or Values({}), "")
    found = prospects or {}
    return [_foretold(row, found[row.id]) if row.id in found and not row.within else row for row in rows]


def _foretold(row: Row, prospect: Prospect) -> Row:
    """A row with what the cache has to say."""
    kind, why = prospect.reason.kind, str(prospect)
    if kind == "route":
        return msgspec.structs.replace(row, reason=f"would run {why}")
    if kind in ("unreached", "portal"):
        return msgspec.structs.replace(row, reason=f"would not run: {why}")
    if prospect.would in ("skip", "look") or kind == "binding":
        return row
    if prospect.would == "reuse":
        return msgspec.structs.replace(row, cached=True, reason=f"would be reused: {why}")
    return msgspec.structs.replace(row, reason=row.reason.replace(NO_CACHE, why))


def _rows(plan: Plan, values: Values, within: str) -> list[Row]:
    above = _above(plan)
    rows: list[Row] = []
    for node_id in plan.order:
        body = plan.bodies.get(node_id)
        after = above.get(node_id, ())
        if body is not None and body.graph.ids == (node_id,):  # one node, repeated under its own name
            rows.append(_row(body, body.nodes[node_id], values, after, within, " for each item"))
            continue
        rows.append(
            _row(plan, plan.nodes[node_id], values, after, within, f" for each item of {within}" * bool(within))
        )
        if body is not None:
            rows += _rows(body, values, node_id)
    return rows


def _row(plan: Plan, planned: Planned, values: Values, after: tuple[str, ...], within: str, each: str) -> Row:
    node = planned.node
    return Row(
        node.id,
        planned.type.name,
        portable(node.params),
        exec_view(node.policy),
        _effect(plan, planned),
        False,
        _reason(planned, values, each),
        describe(node.guard) if node.guard is not None else "",
        after,
        within,
    )


def _reason(planned: Planned, values: Values, each: str) -> str:
    holds = _decided(planned, values)
    if holds is False:
        return "would be skipped: its guard does not hold"
    condition = " if its guard holds" if planned.guard is not None and holds is None else ""
    return f"would run{each}{condition}: {NO_CACHE}"


def _decided(planned: Planned, values: Values) -> bool | None:
    """Whether a guard holds, where that is known before anything runs."""
    if planned.guard is None or any(reference.root not in values for reference in planned.guard.references):
        return None
    try:
        return planned.guard.test(values)
    except ExpressionError:
        return None


def _effect(plan: Plan, planned: Planned) -> Effect:
    """A loop has the effect of what it repeats."""
    body = plan.bodies.get(planned.id)
    if body is None:
        return planned.effect
    effects = {_effect(body, body.nodes[child]) for child in body.graph.ids}
    return next((effect for effect in _WORST if effect in effects), planned.effect)


def exec_view(policy: Policy) -> dict[str, Any]:
    """How a node is attempted."""
    retry = policy.retry
    view: dict[str, Any] = {
        "retries": retry.attempts - 1,
        "delay": retry.delay if retry.attempts > 1 else 0,
        "timeout": policy.timeout,
        "continue_on_error": policy.tolerate,
    }
    return {key: value for key, value in view.items() if value}


def _above(plan: Plan) -> dict[str, tuple[str, ...]]:
    graph = plan.graph
    found: dict[str, list[str]] = {}
    for source, edges in zip(graph.ids, graph.outgoing, strict=True):
        for edge in edges:
            found.setdefault(graph.ids[edge.target], []).append(source)
    return {target: tuple(dict.fromkeys(sources)) for target, sources in found.items()}

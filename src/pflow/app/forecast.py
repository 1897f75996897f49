"""Forecast: what running a workflow now would execute, what it would reuse, and why; nothing is run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pflow.errors import BindingError, ExpressionError, UsageError
from pflow.kernel.scope import Scope, outputs_of
from pflow.lang.expression import describe
from pflow.model.run import Outcome, Visit
from pflow.model.value import digest
from pflow.planning.plan import Plan, Planned, Values
from pflow.reuse.policy import Call, Miss, Recalled, Reuse


class Prospect(msgspec.Struct, frozen=True):
    """What would happen to one node."""

    node: str
    would: Literal["run", "reuse", "skip", "look"]  # look: its own nodes are looked up when it runs
    kind: str
    reason: str


def forecast(plan: Plan, values: Values, reuse: Reuse) -> dict[str, Prospect]:
    """What would happen to each node, in the order in which one worker comes to them."""
    if plan.workflow.scheduler != "topological":
        return {node: Prospect(node, "look", "route", "where its run comes to") for node in plan.order or plan.nodes}
    scope = Scope(plan, values, "", "", 1)
    made: dict[str, Prospect] = {}
    for node in plan.order:
        made[node] = _prospect(scope, plan.nodes[node], reuse, made)
    return made


def _prospect(scope: Scope, planned: Planned, reuse: Reuse, before: Mapping[str, Prospect]) -> Prospect:
    node = planned.id
    moving = [name for name in planned.upstream if name in before and before[name].would in ("run", "look")]
    if moving and (planned.effect != "pure" or _reads(planned, moving)):
        return Prospect(node, "run", "upstream", f"upstream would run: {', '.join(moving)}")
    try:
        if planned.guard is not None and not planned.guard.test(scope.values):
            lineage = digest(["skipped", scope.upstream(planned)])
            _take(scope, node, Outcome("skipped", lineage=lineage))
            return Prospect(node, "skip", "guard", f"when: {describe(planned.node.guard or [])} does not hold")
        params: dict[str, Any] = planned.params.bind(scope.values)
        params = planned.type.convert(params)
    except (BindingError, ExpressionError, UsageError) as error:
        return Prospect(node, "run", "binding", error.message)
    if planned.type.composite:
        return Prospect(node, "look", "composite", "its own nodes are looked up when it runs")
    call = Call("", Visit(f"{node}#1", node), scope.plan, planned, params, scope.upstream(planned), scope.values, {})
    found: Recalled | Miss = reuse.recall(call) if reuse.active else Miss("off", "no cache is used")
    if isinstance(found, Miss):
        return Prospect(node, "run", found.kind, found.text)
    _take(scope, node, found.outcome)
    return Prospect(node, "reuse", "hit", found.outcome.reason)


def _reads(planned: Planned, nodes: list[str]) -> bool:
    return bool({ref.root for ref in planned.params.references}.intersection(nodes))


def _take(scope: Scope, node: str, outcome: Outcome) -> None:
    scope.values[node] = outputs_of(outcome)
    scope.lineages[node] = outcome.lineage

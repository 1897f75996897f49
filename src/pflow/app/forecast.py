"""Forecast: what running a workflow now would execute, what it would reuse, and why; nothing is run."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from pflow.errors import BindingError, ExpressionError, UsageError
from pflow.kernel.scope import Scope, outputs_of
from pflow.lang.expression import describe
from pflow.model.run import Ended, Outcome, Start, Visit
from pflow.model.value import digest
from pflow.model.visit import visit_id
from pflow.nodes.flow import TOOLS
from pflow.planning.plan import Plan, Planned, Values
from pflow.planning.wiring import PORTAL_IN, PORTAL_OUT
from pflow.reuse.policy import Call, Miss, Recalled, Reuse


class Prospect(msgspec.Struct, frozen=True):
    """What would happen to one node."""

    node: str
    would: Literal["run", "reuse", "skip", "look"]  # look: its own nodes are looked up when it runs
    kind: str
    reason: str
    then: dict[str, Any] = {}  # what was compared, part by part, where something was
    now: dict[str, Any] = {}


def forecast(plan: Plan, values: Values, reuse: Reuse) -> dict[str, Prospect]:
    """What would happen to each node, in the order in which one worker comes to them."""
    scope = Scope(plan, values, "", "", 1)
    if plan.workflow.scheduler == "routed":
        return _along(scope, reuse)
    if plan.workflow.scheduler == "reactive":
        return {node: _when(plan, node) for node in plan.order}
    made: dict[str, Prospect] = {}
    for node in plan.order:
        planned = plan.nodes[node]
        moving = [name for name in planned.upstream if name in made and made[name].would in ("run", "look")]
        if moving and (planned.effect != "pure" or _reads(planned, moving)):
            made[node] = Prospect(node, "run", "upstream", f"upstream would run: {', '.join(moving)}")
            continue
        made[node], outcome = _prospect(scope, planned, Visit(visit_id("", node), node), reuse)
        if outcome is not None:
            scope.values[node] = outputs_of(outcome)
            scope.lineages[node] = outcome.lineage
    return made


def _along(scope: Scope, reuse: Reuse) -> dict[str, Prospect]:
    """The way that a run would take as far as it is known: up to the first visit that would be executed."""
    made: dict[str, Prospect] = {}
    commands = scope.wake()
    while commands and isinstance(commands[0], Start):
        visit = commands[0].visit
        scope.note(commands[0])
        found, outcome = _prospect(scope, scope.plan.nodes[visit.node], visit, reuse)
        again = f"visit {visit.n}: " if visit.n > 1 else ""
        made[visit.node] = msgspec.structs.replace(found, reason=again + found.reason)
        if outcome is None:
            break
        outcome = scope.route(visit, outcome)
        commands = scope.take(Ended(0.0, visit.id, outcome))
    return {node: made.get(node) or _unknown(node) for node in scope.plan.order}


def _when(plan: Plan, node: str) -> Prospect:
    """When a node of a graph runs."""
    i = plan.graph.ids.index(node)
    if i == plan.graph.entry:
        return Prospect(node, "run", "new", "first")
    if any(wire.target == i and TOOLS not in (wire.out, wire.port) for wire in plan.graph.wires):
        return Prospect(node, "run", "new", "when it is pushed to, or pulled")
    if any(wire.source == i for wire in plan.graph.wires):
        return Prospect(node, "run", "new", "when it is pulled")
    return Prospect(
        node, "skip", "unreached", "a portal is stepped through" if _portal(plan, node) else "no edge leads here"
    )


def _portal(plan: Plan, node: str) -> bool:
    return plan.nodes[node].type.name in (PORTAL_IN, PORTAL_OUT)


def _unknown(node: str) -> Prospect:
    return Prospect(node, "look", "route", "if the run comes to it")


def _prospect(scope: Scope, planned: Planned, visit: Visit, reuse: Reuse) -> tuple[Prospect, Outcome | None]:
    """What would happen to a visit, with its outcome where that is known."""
    node = planned.id
    try:
        if planned.guard is not None and not planned.guard.test(scope.values):
            lineage = digest(["skipped", scope.upstream(planned)])
            reason = f"when: {describe(planned.node.guard or [])} does not hold"
            return Prospect(node, "skip", "guard", reason), Outcome("skipped", lineage=lineage)
        params: dict[str, Any] = planned.params.bind(scope.values)
        params = planned.type.convert(params)
    except (BindingError, ExpressionError, UsageError) as error:
        return Prospect(node, "run", "binding", error.message), None
    if planned.type.composite:
        return Prospect(node, "look", "composite", "its own nodes are looked up when it runs"), None
    call = Call("", visit, scope.plan, planned, params, scope.upstream(planned), scope.values, {})
    found: Recalled | Miss = reuse.recall(call) if reuse.active else Miss("off", "no cache is used")
    if isinstance(found, Miss):
        return Prospect(node, "run", found.kind, found.text, found.then, found.now), None
    return Prospect(node, "reuse", "hit", found.outcome.reason), found.outcome


def _reads(planned: Planned, nodes: list[str]) -> bool:
    return bool({ref.root for ref in planned.params.references}.intersection(nodes))

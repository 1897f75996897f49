"""Forecast: what running a workflow now would execute, what it would reuse, and why; nothing is run."""

from __future__ import annotations

from typing import Literal

import msgspec

from pflow.app.wording import sentence
from pflow.kernel.look import look
from pflow.kernel.scope import Scope, outputs_of
from pflow.model.graph import TOOLS
from pflow.model.reason import Reason
from pflow.model.records import Ended, Outcome, Start, Visit
from pflow.model.visit import visit_id
from pflow.planning.plan import Plan, Planned, Values
from pflow.planning.wires import PORTAL_IN, PORTAL_OUT
from pflow.reuse.policy import Reuse


class Prospect(msgspec.Struct, frozen=True):
    """What would happen to one node."""

    node: str
    would: Literal["run", "reuse", "skip", "look"]  # look: its own nodes are looked up when it runs
    reason: Reason
    n: int = 1  # of its visits, where it is visited several times

    def __str__(self) -> str:
        return f"visit {self.n}: " * (self.n > 1) + sentence(self.reason)


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
            made[node] = Prospect(node, "run", Reason("above", tuple(moving)))
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
        made[visit.node] = msgspec.structs.replace(found, n=visit.n)
        if outcome is None:
            break
        outcome = scope.route(visit, outcome)
        commands = scope.take(Ended(0.0, visit.id, outcome))
    return {node: made.get(node) or _unknown(node) for node in scope.plan.order}


def _when(plan: Plan, node: str) -> Prospect:
    """When a node of a graph runs."""
    i = plan.graph.ids.index(node)
    if i == plan.graph.entry:
        return Prospect(node, "run", Reason("first"))
    if any(wire.target == i and TOOLS not in (wire.out, wire.port) for wire in plan.graph.wires):
        return Prospect(node, "run", Reason("pushed"))
    if any(wire.source == i for wire in plan.graph.wires):
        return Prospect(node, "run", Reason("pulled"))
    return Prospect(node, "skip", Reason("portal" if _portal(plan, node) else "unreached"))


def _portal(plan: Plan, node: str) -> bool:
    return plan.nodes[node].type.name in (PORTAL_IN, PORTAL_OUT)


def _unknown(node: str) -> Prospect:
    return Prospect(node, "look", Reason("route"))


def _prospect(scope: Scope, planned: Planned, visit: Visit, reuse: Reuse) -> tuple[Prospect, Outcome | None]:
    """What would happen to a visit, with its outcome where that is known."""
    node, seen = planned.id, look(scope, visit, "", reuse, {})
    outcome = seen.outcome
    if outcome is None:
        composite = Reason("composite") if planned.type.composite else None
        return Prospect(node, "look" if composite else "run", composite or seen.why or Reason("off")), None
    if outcome.failure is not None:
        return Prospect(node, "run", Reason("binding", (outcome.failure.message,))), None
    assert outcome.reason is not None
    return Prospect(node, "skip" if outcome.status == "skipped" else "reuse", outcome.reason), outcome


def _reads(planned: Planned, nodes: list[str]) -> bool:
    return bool({ref.root for ref in planned.params.references}.intersection(nodes))

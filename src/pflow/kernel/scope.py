"""A scope: one scheduler at work. The run is one; each workflow nested in a visit is another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from pflow.model.run import Command, Fact, Finish, Outcome, Visit
from pflow.planning.plan import Plan, Planned, Values
from pflow.schedulers.topological import Topological


class Scheduler(Protocol):
    """Decides what happens next, and does nothing."""

    def start(self) -> list[Command]:
        """The first commands."""

    def on(self, fact: Fact) -> list[Command]:
        """The commands that follow from a fact."""

    def dump(self) -> dict[str, Any]:
        """The state, as plain data."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over a dumped state."""


class Ready:
    """A visit that was prepared and waits to be executed."""

    __slots__ = ("attempt", "begun", "params", "planned", "used", "visit", "wait_until")

    def __init__(self, visit: Visit, planned: Planned, params: dict[str, Any], attempt: int, wait_until: float) -> None:
        self.visit = visit
        self.planned = planned
        self.params = params
        self.attempt = attempt  # the number of the attempt that comes next
        self.wait_until = wait_until  # a crash during a delay waits for the rest of it
        self.begun = False  # its intent is in the journal
        self.used: dict[str, Any] = {}


class Scope:
    """A scheduler with the values it has led to and the work it has under way."""

    def __init__(self, plan: Plan, values: Values, prefix: str, label: str, width: int, depth: int = 0) -> None:
        self.plan = plan
        self.values = values
        self.width = width
        self.depth = depth  # of workflows around this one
        self.prefix = prefix  # of the visit ids in it: "" or "sub#1/"
        self.label = label  # of the tasks in it, for events: "" or "sub/"
        self.scheduler: Scheduler = Topological(plan.graph, values, prefix, width)
        self.started: dict[str, Visit] = {}  # visits that have not ended
        self.ready: list[Ready] = []  # prepared, not yet launched
        self.tasks: dict[str, asyncio.Task[None]] = {}  # who works on a visit
        self.stopping: dict[str, str] = {}  # visits that are being stopped → why
        self.awake = False  # the scheduler has been started
        self.finish: Finish | None = None
        self.done: asyncio.Future[None] | None = None

    def wake(self) -> list[Command]:
        """Start the scheduler."""
        self.awake = True
        return self.scheduler.start()

    def fold(self, visit: str, outcome: Outcome) -> None:
        """Make an ended visit's outputs visible to those after it."""
        node = self.started.pop(visit).node
        self.stopping.pop(visit, None)
        self.values[node] = outputs_of(outcome)

    def outputs(self) -> dict[str, dict[str, Any]]:
        """What each node of this scope left behind."""
        return {node_id: self.values[node_id] for node_id in self.plan.graph.ids if node_id in self.values}


def outputs_of(outcome: Outcome) -> dict[str, Any]:
    """What others see of a visit: its outputs, or a marker that says why there are none."""
    if outcome.status == "completed":
        return outcome.outputs
    if outcome.status == "skipped":
        return {"skipped": True}
    failure = outcome.failure
    error = {"kind": failure.kind, "message": failure.message, "hint": failure.hint} if failure else {}
    return {"failed": True, "error": error, "attempts": outcome.attempts}


def declared_outputs(scope: Scope) -> dict[str, Any]:
    """A workflow's outputs: the declared ones, or every node's by its id where none are declared."""
    if not scope.plan.outputs:
        return scope.outputs()
    return {name: bound.bind(scope.values) for name, bound in scope.plan.outputs.items()}

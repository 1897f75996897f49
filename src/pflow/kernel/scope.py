"""A scope: one scheduler at work. The run is one; each workflow nested in a visit is another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from pflow.errors import InternalError
from pflow.model.reason import Reason
from pflow.model.records import (
    Answer,
    Asked,
    Command,
    Ended,
    Fact,
    Failure,
    Feed,
    Finish,
    Outcome,
    Reopened,
    Say,
    Start,
    Stop,
    Visit,
)
from pflow.planning.plan import Plan, Planned, Values
from pflow.reuse.policy import Call
from pflow.schedulers.protocol import Scheduler
from pflow.schedulers.topological import Topological

if TYPE_CHECKING:
    from pflow.kernel.streams import Streams

SPIN = 1000  # how often a graph may come back to its nodes without waiting for anybody


class Ready(msgspec.Struct, eq=False):
    """A visit that was prepared and waits to be executed."""

    visit: Visit
    planned: Planned
    params: dict[str, Any]
    attempt: int  # the number of the attempt that comes next
    wait_until: float  # a crash during a delay waits for the rest of it
    call: Call | None = None  # what a reuse policy was asked
    why: Reason | None = None  # why nothing could be reused
    begun: bool = False  # its intent is in the journal
    seen: int = 0  # feeds that had arrived when it returned
    used: dict[str, Any] = {}
    writes: dict[str, Any] = {}  # what its attempts stored


class Scope:
    """A scheduler with the values it has led to and the work it has under way."""

    def __init__(
        self, plan: Plan, values: Values, prefix: str, label: str, width: int, depth: int = 0, spin: int = SPIN
    ) -> None:
        self.plan = plan
        self.values = values
        self.width = width
        self.depth = depth  # of workflows around this one
        self.prefix = prefix  # of the visit ids in it: "" or "sub#1/"
        self.label = label  # of the tasks in it, for events: "" or "sub/"
        self.scheduler: Scheduler = scheduler_for(plan, values, prefix, width, spin)
        self.streams = streams_for(plan)
        self.lineages: dict[str, str] = {}
        self.base = ""  # the lineage of what this scope was given
        self.outer: Scope | None = None  # the scope whose values this one sees
        self.started: dict[str, Visit] = {}  # visits that have not ended
        self.ready: list[Ready] = []  # prepared, not yet launched
        self.tasks: dict[str, asyncio.Task[None]] = {}  # who works on a visit
        self.stopping: dict[str, str] = {}  # visits that are being stopped → why
        self.awake = False  # the scheduler has been started
        self.finish: Finish | None = None
        self.done: asyncio.Future[None] | None = None

    # The one road: a live run and a replay both take facts in with ``take``, and note the commands that follow with
    # ``note``. A live run does beside what a command says; a replay leaves it undone.

    def wake(self) -> list[Command]:
        """Start the scheduler."""
        self.awake = True
        return self.scheduler.start()

    def take(self, fact: Fact) -> list[Command]:
        """Take a fact in, and return what the scheduler makes of it."""
        if type(fact) is Ended:
            self._fold(fact.visit, fact.outcome)
        elif type(fact) is Asked:
            if self.streams is not None:
                self.streams.ask(fact)
        elif type(fact) is Reopened:
            self.finish = None
        return self.scheduler.on(fact)

    def note(self, command: Command) -> bool:
        """Note what a command means for this scope; False when that was known already."""
        if isinstance(command, Start):  # no ``match``: every visit comes through here
            self.started[command.visit.id] = command.visit
        elif isinstance(command, Stop):
            if command.visit in self.stopping:
                return False
            self.stopping[command.visit] = command.why
        elif isinstance(command, Finish):
            self.finish = command
        elif isinstance(command, (Feed, Answer)):
            if self.streams is None:
                raise InternalError(f"the scheduler of {self.plan.workflow.name!r} cannot command: {command}")
            self.streams.take(command)
        elif not isinstance(command, Say):
            assert_never(command)
        return True

    def replay(self, fact: Fact) -> None:
        """Take in a fact of which all consequences are recorded, or are to come when the scope is entered."""
        commands = [] if self.awake else self.wake()
        for command in commands:
            self.note(command)
        for command in self.take(fact):
            self.note(command)

    def _fold(self, visit: str, outcome: Outcome) -> None:
        """Make an ended visit's outputs visible to those after it."""
        node = self.started.pop(visit).node
        self.stopping.pop(visit, None)
        leave(self.values, node, outcome, self.plan.workflow.flat)
        self.lineages[node] = outcome.lineage
        if self.streams is not None:
            self.streams.ended(visit, outcome)

    def route(self, visit: Visit, outcome: Outcome) -> Outcome:
        """The outcome with where it leads to, for a scheduler that goes by routes."""
        router = self.plan.nodes[visit.node].router
        if router is None:
            return outcome
        made = outputs_of(outcome)
        return router.route(outcome, Values({**made, visit.node: made}, self.values))

    def upstream(self, planned: Planned) -> dict[str, str]:
        """The lineages of what a node comes after or reads; those of a nested scope's surroundings are under ``..``."""
        found: dict[str, str] = {"..": self.base} if self.base else {}
        for node in planned.upstream:
            scope: Scope | None = self
            while scope is not None and node not in scope.lineages:
                scope = scope.outer
            if scope is not None:
                found[node] = scope.lineages[node]
        return found

    def outputs(self) -> dict[str, dict[str, Any]]:
        """What each node of this scope left behind."""
        return {node_id: self.values[node_id] for node_id in self.plan.graph.ids if node_id in self.values}


def streams_for(plan: Plan) -> Streams | None:
    """What a scope needs in which values flow into visits under way."""
    if plan.workflow.scheduler != "reactive":
        return None
    from pflow.kernel.streams import Streams

    return Streams()


def scheduler_for(plan: Plan, values: Values, prefix: str, width: int, spin: int) -> Scheduler:
    """The scheduler that a plan asks for."""
    if plan.workflow.scheduler == "reactive":
        from pflow.schedulers.reactive import Reactive

        return Reactive(plan.graph, prefix, spin)
    if plan.workflow.scheduler == "routed":
        from pflow.schedulers.routed import Routing

        return Routing(plan.graph, prefix)
    return Topological(plan.graph, values, prefix, width)


def cancelled(why: str, attempt: int) -> Outcome:
    """How a visit ends that was stopped."""
    return Outcome("cancelled", failure=Failure("cancelled", f"stopped: {why}"), attempts=attempt)


def leave(values: Values, node: str, outcome: Outcome, flat: bool) -> None:
    """Make what a visit left behind visible to those after it; where names are flat, also each output by its own."""
    made = outputs_of(outcome)
    if flat and outcome.status == "completed":
        values.update(made)
    values[node] = made


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
        flat = {name: value for made in scope.outputs().values() for name, value in made.items()}
        return flat if scope.plan.workflow.flat and scope.prefix else scope.outputs()
    return {name: bound.bind(scope.values) for name, bound in scope.plan.outputs.items()}

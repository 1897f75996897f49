"""The topological scheduler: every node once, after all that leads to it (Kahn, first in, first out).

A node starts when all its incoming edges are resolved and at least one fired. One that no edge reached fires none of
its own. A skipped node fires its unconditional edges. A failure that nobody tolerates or handles stops the run: what is
running is stopped and drained, nothing else starts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec

from pflow.model.graph import Graph, PlannedEdge
from pflow.model.records import (
    Asked,
    Command,
    Ended,
    Fact,
    Failure,
    Finish,
    Outcome,
    Reopened,
    RunStatus,
    Start,
    Stop,
    Visit,
)
from pflow.model.visit import visit_id
from pflow.model.workflow import ANY, DEFAULT, ERROR
from pflow.schedulers.protocol import located


class Topological:
    """Decides over one plan; ``values`` is read by edge guards only."""

    def __init__(self, graph: Graph, values: Mapping[str, Any], prefix: str = "", width: int = 1) -> None:
        self._graph = graph
        self._values = values
        self._prefix = prefix
        self._width = width
        self._unresolved = list(graph.incoming)
        self._fired = bytearray(len(graph.ids))
        self._ready = deque(i for i, count in enumerate(graph.incoming) if count == 0)
        self._running: dict[str, int] = {}
        self._bad: dict[int, Failure | None] = {}  # ended badly, not tolerated: what a reopened run starts again
        self._resolved: set[int] = set()  # of those, the ones whose edges fired all the same
        self._stopping = ""  # "", "failed" or "cancelled"

    def start(self) -> list[Command]:
        """The first commands."""
        return self._next()

    def on(self, fact: Fact) -> list[Command]:
        """The commands that follow from a fact."""
        if type(fact) is Ended:
            return self._ended(fact.visit, fact.outcome)
        if type(fact) is Asked:
            return []
        if type(fact) is Reopened:
            return self._reopen()
        return self._stop("cancelled")

    def dump(self) -> dict[str, Any]:
        """The state, as plain data."""
        return {
            "unresolved": list(self._unresolved),
            "fired": list(self._fired),
            "ready": list(self._ready),
            "running": dict(self._running),
            "bad": [[i, msgspec.to_builtins(failure)] for i, failure in self._bad.items()],
            "resolved": sorted(self._resolved),
            "stopping": self._stopping,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over a dumped state."""
        self._unresolved = list(state["unresolved"])
        self._fired = bytearray(state["fired"])
        self._ready = deque(state["ready"])
        self._running = dict(state["running"])
        self._bad = {i: msgspec.convert(failure, Failure | None) for i, failure in state["bad"]}
        self._resolved = set(state["resolved"])
        self._stopping = state["stopping"]

    def _ended(self, visit: str, outcome: Outcome) -> list[Command]:
        i = self._running.pop(visit)
        status = outcome.status
        if status == "completed" or status == "skipped":
            self._resolve(i, outcome)
        elif status == "cancelled":
            self._bad[i] = located(visit, outcome)
            return self._stop("cancelled")
        elif self._graph.tolerate[i] or self._handled(i):
            self._resolve(i, outcome)
        else:
            self._bad[i] = located(visit, outcome)
            if self._graph.fail_fast:
                return self._stop("failed")
            self._resolve(i, outcome)
            self._resolved.add(i)
        return self._next()

    def _handled(self, i: int) -> bool:
        return any(edge.on == ERROR for edge in self._graph.outgoing[i])

    def _resolve(self, i: int, outcome: Outcome) -> None:
        """Resolve the edges of an ended node; of nodes that nothing reached, in turn."""
        if i in self._resolved:  # run again after its edges had fired
            self._resolved.discard(i)
            return
        unresolved, fired, ready = self._unresolved, self._fired, self._ready
        edges = self._graph.outgoing[i]
        labels = {edge.on for edge in edges} if outcome.route is not None or outcome.status == "failed" else None
        unreached: list[int] = []
        for edge in edges:
            target = edge.target
            if (edge.on == ANY and edge.guard is None) or self._fires(edge, outcome, labels):
                fired[target] = 1
            unresolved[target] -= 1
            if not unresolved[target]:
                if fired[target]:
                    ready.append(target)
                else:
                    unreached.append(target)
        while unreached:
            for edge in self._graph.outgoing[unreached.pop(0)]:
                unresolved[edge.target] -= 1
                if not unresolved[edge.target]:
                    (ready if fired[edge.target] else unreached).append(edge.target)

    def _fires(self, edge: PlannedEdge, outcome: Outcome, labels: set[str] | None) -> bool:
        if edge.guard is not None:
            return outcome.status != "skipped" and edge.guard.test(self._values)
        if edge.on == ANY:
            return True
        if outcome.status == "failed" and labels is not None and ERROR in labels:
            return edge.on == ERROR
        if outcome.route is None or labels is None or outcome.route not in labels:
            return edge.on == DEFAULT
        return edge.on == outcome.route

    def _stop(self, why: str) -> list[Command]:
        first = not self._stopping
        if first or why == "failed":
            self._stopping = why
        if not self._running:
            return [self._finish()]
        return [Stop(visit, why) for visit in self._running] if first else []

    def _reopen(self) -> list[Command]:
        self._stopping = ""
        self._ready.extendleft(reversed(self._bad))
        self._bad = {}
        return self._next()

    def _next(self) -> list[Command]:
        running, ready = self._running, self._ready
        if self._stopping:
            return [] if running else [self._finish()]
        commands: list[Command] = []
        while ready and len(running) < self._width:
            i = ready.popleft()
            node = self._graph.ids[i]
            visit = Visit(visit_id(self._prefix, node), node)
            running[visit.id] = i
            commands.append(Start(visit))
        if not running:
            commands.append(self._finish())
        return commands

    def _finish(self) -> Finish:
        failures = [failure for failure in self._bad.values() if failure is not None]
        failure = min(failures, key=lambda one: one.kind == "cancelled", default=None)  # the first that is a cause
        status: RunStatus = "completed"
        if self._stopping == "cancelled":
            status = "cancelled"
        elif self._bad:
            status = "failed"
        return Finish(status, failure)

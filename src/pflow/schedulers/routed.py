"""The routed scheduler: one visit at a time, and its outcome says where to go next.

A node may be visited again, up to a limit. A failure with a route goes on there; one without ends the run, unless its
node is one that may fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pflow.model.graph import Graph
from pflow.model.records import (
    Cancelled,
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
from pflow.model.visit import node_of, number_of, visit_id
from pflow.schedulers.protocol import located

_SHOWN = 12  # steps of the path that a failure shows


class Routing:
    """Decides over one plan: where the last visit led to, and when that is the end."""

    def __init__(self, graph: Graph, prefix: str = "") -> None:
        self._graph = graph
        self._prefix = prefix
        self._index = {node: i for i, node in enumerate(graph.ids)}
        self._visits: dict[str, int] = {}  # node → how often it was visited
        self._running = ""  # the visit under way
        self._path: list[str] = []
        self._bad: list[Any] = []  # what ended the run badly: [visit, node, failure]
        self._stopping = ""
        self._grace = 0  # visits that a reopening allows on top of a limit

    def start(self) -> list[Command]:
        """The first commands."""
        return self._go(self._graph.ids[0], "")

    def on(self, fact: Fact) -> list[Command]:
        """The commands that follow from a fact."""
        if type(fact) is Ended:
            return self._ended(fact.visit, fact.outcome)
        if type(fact) is Reopened:
            return self._reopen()
        if type(fact) is Cancelled:
            self._stopping = "cancelled"
            return [Stop(self._running, "cancelled")] if self._running else [Finish("cancelled")]
        return []

    def dump(self) -> dict[str, Any]:
        """The state, as plain data."""
        return {
            "visits": dict(self._visits),
            "running": self._running,
            "path": list(self._path),
            "bad": msgspec.to_builtins(self._bad),
            "stopping": self._stopping,
            "grace": self._grace,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over a dumped state."""
        self._visits = dict(state["visits"])
        self._running = state["running"]
        self._path = list(state["path"])
        bad = state["bad"]
        self._bad = [*bad[:2], msgspec.convert(bad[2], Failure | None)] if bad else []
        self._stopping = state["stopping"]
        self._grace = state["grace"]

    def _ended(self, visit: str, outcome: Outcome) -> list[Command]:
        node = node_of(visit)
        self._running = ""
        if self._stopping or outcome.status == "cancelled":
            if outcome.status not in ("completed", "skipped"):
                self._bad = [visit, node, located(visit, outcome)]
            else:
                self._path.append(outcome.route or "")
            self._stopping = "cancelled"
            return [Finish("cancelled", self._bad[2] if self._bad else None)]
        if outcome.route is not None:
            return self._go(outcome.route, node)
        status: RunStatus = "completed"
        failure = None
        if outcome.status == "failed" and not self._graph.tolerate[self._index[node]]:
            status, failure = "failed", located(visit, outcome)
            self._bad = [visit, node, failure]
        return [Finish(status, failure)]

    def _go(self, node: str, before: str) -> list[Command]:
        n = self._visits.get(node, 0) + 1
        limit = self._graph.limits[self._index[node]] + self._grace
        if n > limit:
            path = " → ".join([*self._path[-_SHOWN:], node])
            hint = "give the loop a way out, or raise max_visits"
            failure = Failure("routing", f'"{node}" was visited {limit} times, its limit; the path: {path}', hint)
            self._bad = ["", node, failure]
            return [Finish("failed", failure)]
        self._visits[node] = n
        self._path = [*self._path[-100:], node]
        self._running = visit_id(self._prefix, node, n)
        after = (visit_id(self._prefix, before, self._visits[before]),) if before else ()
        return [Start(Visit(self._running, node, n, after=after))]

    def _reopen(self) -> list[Command]:
        was_stopped, self._stopping = self._stopping, ""
        if not self._bad:
            if self._running or not was_stopped:
                return []
            ahead = self._path.pop()  # the visit that was stopped completed all the same
            return self._go(ahead, "") if ahead else [Finish("completed")]
        visit, node, _ = self._bad
        self._bad = []
        if not visit:  # it was the limit
            self._grace += max(self._graph.limits)
            return self._go(node, "")
        self._running = visit
        return [Start(Visit(visit, node, number_of(visit)))]

"""The reactive scheduler: nodes push what they made to their successors, and pull what they need from their sources.

    push   a visit that was pushed to hands its outputs on when it ends. A successor that rests is started, one that is
           in flight is fed; what a visit had not seen when it returned stays pending, and starts the next.
    pull   an ask joins the source's visit in flight, or starts one. A pulled visit looks at what is pending and leaves
           it there, and does not push. A ring of visits that wait for each other is answered with a failure.

An input with several edges gates the start of its node until it was pushed, and cannot be pulled. What flows through
``tools`` is only ever pulled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pflow.model.graph import CONTEXT, TOOLS, Graph
from pflow.model.records import (
    PULL,
    Answer,
    Asked,
    Cancelled,
    Command,
    Ended,
    Fact,
    Failure,
    Feed,
    Finish,
    Outcome,
    Reopened,
    RunStatus,
    Say,
    Start,
    Stop,
    Visit,
)
from pflow.model.visit import visit_id
from pflow.schedulers.protocol import located

_SHOWN = 12  # steps of the path that a failure shows


class Flight(msgspec.Struct):
    """A visit under way."""

    node: int
    n: int
    inputs: dict[str, Any]
    pulled: bool
    fed: list[dict[str, Any]] = []
    waits: list[str] = []  # the visits that it pulls from
    asks: list[Asked] = []  # who pulls from it
    outs: list[str] = []  # and which of its outputs


class Reactive:
    """Decides over one graph of ports."""

    def __init__(self, graph: Graph, prefix: str = "", spin: int = 1000) -> None:
        self._ids = graph.ids
        self._entry = graph.entry
        self._prefix = prefix
        self._limit = spin  # visits to the same nodes again, without waiting for anybody
        self._index = {node: i for i, node in enumerate(graph.ids)}
        self._into: list[dict[str, list[tuple[int, str]]]] = [{} for _ in graph.ids]
        self._out: list[dict[int, list[tuple[str, str]]]] = [{} for _ in graph.ids]
        for wire in graph.wires:
            self._into[wire.target].setdefault(wire.port, []).append((wire.source, wire.out))
            if TOOLS not in (wire.out, wire.port):
                self._out[wire.source].setdefault(wire.target, []).append((wire.out, wire.port))
        self._gates = [
            tuple(port for port, ways in into.items() if len(ways) > 1 and port != TOOLS) for into in self._into
        ]
        self._visits: dict[str, int] = {}  # node → how often it was visited
        self._flying: dict[str, Flight] = {}
        self._current: dict[int, str] = {}  # node → its visit in flight
        self._pending: dict[int, dict[str, Any]] = {}  # node → what was pushed and is not yet consumed
        self._bad: dict[str, Flight] = {}  # visits that ended badly
        self._failure: Failure | None = None  # the first, or what ends the run
        self._stopping: RunStatus | None = None
        self._since: dict[str, int] = {}  # node → visits since the last wait for a person
        self._again = 0  # visits to the same nodes since then
        self._path: list[str] = []

    def start(self) -> list[Command]:
        """The first commands."""
        return [self._fly(self._entry, {}, False, ())]

    def on(self, fact: Fact) -> list[Command]:
        """The commands that follow from a fact."""
        if type(fact) is Ended:
            return self._ended(fact)
        if type(fact) is Asked:
            return self._asked(fact)
        if type(fact) is Cancelled:
            return self._stop("cancelled", None, fact.why or "cancelled") + self._finish()
        return self._reopen() if type(fact) is Reopened else []

    # ── ends and pushes ──

    def _ended(self, fact: Ended) -> list[Command]:
        visit, outcome = fact.visit, fact.outcome
        flight = self._flying.pop(visit)
        del self._current[flight.node]
        if not flight.pulled:
            for values in flight.fed[fact.seen :]:
                self._pending.setdefault(flight.node, {}).update(values)
        self._leave(visit, flight)
        commands = self._answers(flight, outcome)
        if outcome.status == "completed":
            self._bad.pop(visit, None)
            if not flight.pulled and outcome.outputs.get("status") != "skipped":
                commands += self._push(visit, flight.node, outcome.outputs)
        elif outcome.status != "skipped":
            self._badly(visit, flight, fact)
        commands += self._try_start(flight.node, visit)
        return commands + self._finish()

    def _leave(self, visit: str, flight: Flight) -> None:
        """A visit that ended has nothing more to ask."""
        for source in flight.waits:
            other = self._flying.get(source)
            if other is not None:
                kept = [i for i, ask in enumerate(other.asks) if ask.visit != visit]
                other.asks, other.outs = [other.asks[i] for i in kept], [other.outs[i] for i in kept]

    def _answers(self, flight: Flight, outcome: Outcome) -> list[Command]:
        made: list[Command] = []
        for ask, out in zip(flight.asks, flight.outs, strict=True):
            asker = self._flying[ask.visit]
            asker.waits.remove(self._name(flight))
            failure = None
            if outcome.status in ("failed", "cancelled"):
                failure = outcome.failure or Failure("node", f'"{self._ids[flight.node]}" {outcome.status}')
            made.append(Answer(ask.visit, ask.attempt, ask.port, ask.n, outcome.outputs.get(out), failure))
        return made

    def _badly(self, visit: str, flight: Flight, fact: Ended) -> None:
        """Keep what a reopened run tries again; what a failed pull means is for the puller to say."""
        outcome = fact.outcome
        if flight.pulled and outcome.status == "failed":
            return
        seen = dict(flight.inputs)
        for values in flight.fed[: fact.seen]:
            seen |= values
        self._bad[visit] = Flight(flight.node, flight.n, seen, flight.pulled)
        if self._failure is None and not self._stopping:
            self._failure = located(visit, outcome)

    def _push(self, visit: str, source: int, outputs: Mapping[str, Any]) -> list[Command]:
        """Hand outputs on: successors that get a context first, and none that gets nothing."""
        collected: list[tuple[int, dict[str, Any]]] = []
        for target, ways in self._out[source].items():
            values = {port: outputs[out] for out, port in ways if outputs.get(out) is not None}
            if values:
                collected.append((target, values))
        if not collected:
            return []
        collected.sort(key=lambda one: CONTEXT not in one[1])
        commands: list[Command] = [Say("flow:push", self._ids[source], self._told(source, collected))]
        for target, values in collected:
            commands += self._deliver(target, values, visit)
        return commands

    def _told(self, source: int, collected: list[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
        """The edges of a push, and the inputs that each successor gets."""
        ways = {self._ids[target]: self._out[source][target] for target, _ in collected}
        edges = [f"{out} → {name}.{port}" for name, pairs in ways.items() for out, port in pairs]
        return {"edges": edges, "inputs": {self._ids[target]: list(values) for target, values in collected}}

    def _deliver(self, target: int, values: dict[str, Any], by: str) -> list[Command]:
        visit = self._current.get(target)
        if visit is None:
            self._pending.setdefault(target, {}).update(values)
            return self._try_start(target, by)
        flight = self._flying[visit]
        flight.fed.append(values)
        if flight.pulled:  # it may look, but it will not push
            self._pending.setdefault(target, {}).update(values)
        return [Say("flow:feed", self._ids[target], {"visit": visit, "keys": list(values)}), Feed(visit, values)]

    def _try_start(self, node: int, by: str) -> list[Command]:
        """Start a node that has something pending, if its gates are open."""
        pending = self._pending.get(node)
        if not pending or node in self._current or self._stopping:
            return []
        missing = [port for port in self._gates[node] if port not in pending]
        if missing:
            return [Say("flow:defer", self._ids[node], {"missing": missing, "has": list(pending)})]
        if self._spins(node):
            return self._stop("failed", self._spinning(node), "spinning")
        return [self._fly(node, self._pending.pop(node), False, (by,))]

    def _fly(self, node: int, inputs: dict[str, Any], pulled: bool, after: tuple[str, ...]) -> Command:
        name = self._ids[node]
        n = self._visits[name] = self._visits.get(name, 0) + 1
        self._since[name] = self._since.get(name, 0) + 1
        self._again += self._since[name] > 1
        self._path = [*self._path[1 - _SHOWN :], name]
        return self._launch(Flight(node, n, inputs, pulled), after)

    def _launch(self, flight: Flight, after: tuple[str, ...]) -> Command:
        visit = self._name(flight)
        self._flying[visit] = flight
        self._current[flight.node] = visit
        return Start(Visit(visit, self._ids[flight.node], flight.n, flight.inputs, after, flight.pulled))

    def _name(self, flight: Flight) -> str:
        return visit_id(self._prefix, self._ids[flight.node], flight.n)

    # ── pulls ──

    def _asked(self, ask: Asked) -> list[Command]:
        if not ask.port.startswith(PULL):
            self._since, self._again = {}, 0  # it waits for a person: it does not spin
            return []
        flight = self._flying[ask.visit]
        port = ask.port.removeprefix(PULL)
        ways = self._into[flight.node].get(port, ())
        if len(ways) != 1:
            text = f'"{port}" of "{self._ids[flight.node]}" has {len(ways)} edges, so it cannot be pulled'
            return [_refused(ask, Failure("pull", text, "pull an input with exactly one edge"))]
        (source, out) = ways[0]
        visit = self._current.get(source)
        if visit is not None:
            ring = self._ring(visit, ask.visit)
            if ring:
                names = " → ".join(self._ids[self._flying[one].node] for one in (*ring, ring[0]))
                text = f"these nodes wait for each other: {names}"
                return [_refused(ask, Failure("deadlock", text, "let one of them be pushed to instead"))]
            return self._join(visit, ask, out)
        if self._stopping:
            return [_refused(ask, Failure("cancelled", "the run is being stopped"))]
        if self._spins(source):
            return self._stop("failed", self._spinning(source), "spinning")
        command = self._fly(source, dict(self._pending.get(source, {})), True, (ask.visit,))
        return [command, *self._join(self._current[source], ask, out)]

    def _join(self, visit: str, ask: Asked, out: str) -> list[Command]:
        source = self._flying[visit]
        source.asks.append(ask)
        source.outs.append(out)
        self._flying[ask.visit].waits.append(visit)
        return []

    def _ring(self, start: str, asker: str) -> list[str]:
        """The visits, from the asker on, of which each waits for the next and the last for the asker."""
        trail: dict[str, str] = {start: asker}
        rest = [start]
        while rest:
            visit = rest.pop()
            if visit == asker:
                ring = [visit]
                while trail[ring[-1]] != asker:
                    ring.append(trail[ring[-1]])
                return ring[:1] + ring[:0:-1]
            for after in self._flying[visit].waits:
                if after not in trail:
                    trail[after] = visit
                    rest.append(after)
        return []

    # ── ending ──

    def _spins(self, node: int) -> bool:
        return self._again >= self._limit and self._since.get(self._ids[node], 0) > 0

    def _spinning(self, node: int) -> Failure:
        path = " → ".join([*self._path, self._ids[node]])
        text = f"the graph came back to its nodes {self._again} times without waiting for anybody; the path: {path}"
        return Failure("spinning", text, "let the loop wait for its user, or give it a way out")

    def _stop(self, status: RunStatus, failure: Failure | None, why: str) -> list[Command]:
        self._stopping = status
        if failure is not None:
            self._failure = failure
        return [Stop(visit, why) for visit in self._flying]

    def _finish(self) -> list[Command]:
        if self._flying:
            return []
        status = self._stopping or ("failed" if self._bad else "completed")
        return [Finish(status, self._failure if status != "completed" else None)]

    def _reopen(self) -> list[Command]:
        if not self._stopping and not self._bad:
            return []
        self._stopping, self._failure = None, None
        self._since, self._again = {}, 0
        commands: list[Command] = []
        bad, self._bad = self._bad, {}
        for flight in reversed(bad.values()):  # of two visits of a node, the later one counts
            if flight.node not in self._current:
                commands.append(self._launch(flight, ()))
        for node in list(self._pending):
            commands += self._try_start(node, "")
        return commands + self._finish()

    # ── state ──

    def dump(self) -> dict[str, Any]:
        """The state, as plain data."""
        return {
            "visits": dict(self._visits),
            "flying": {visit: _dumped(flight) for visit, flight in self._flying.items()},
            "pending": {self._ids[node]: dict(values) for node, values in self._pending.items()},
            "bad": {visit: _dumped(flight) for visit, flight in self._bad.items()},
            "failure": msgspec.to_builtins(self._failure),
            "stopping": self._stopping,
            "since": dict(self._since),
            "again": self._again,
            "path": list(self._path),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over a dumped state."""
        self._visits = dict(state["visits"])
        self._flying = {visit: _loaded(flight) for visit, flight in state["flying"].items()}
        self._current = {flight.node: visit for visit, flight in self._flying.items()}
        self._pending = {self._index[node]: dict(values) for node, values in state["pending"].items()}
        self._bad = {visit: _loaded(flight) for visit, flight in state["bad"].items()}
        self._failure = msgspec.convert(state["failure"], Failure | None)
        self._stopping = state["stopping"]
        self._since = dict(state["since"])
        self._again = state["again"]
        self._path = list(state["path"])


def _refused(ask: Asked, failure: Failure) -> Command:
    return Answer(ask.visit, ask.attempt, ask.port, ask.n, None, failure)


def _dumped(flight: Flight) -> dict[str, Any]:
    lists = {"fed": list(flight.fed), "waits": list(flight.waits), "outs": list(flight.outs)}
    asks = [msgspec.to_builtins(ask) for ask in flight.asks]
    one = {"node": flight.node, "n": flight.n, "inputs": dict(flight.inputs), "pulled": flight.pulled}
    return {**one, **lists, "asks": asks}


def _loaded(made: Mapping[str, Any]) -> Flight:
    return Flight(**{**made, "asks": [msgspec.convert(ask, Asked) for ask in made["asks"]]})

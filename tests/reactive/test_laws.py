"""Law 7: at most one visit of a node in flight; no pushed value is lost; a pull never duplicates a run in flight.

Random graphs, random orders of ends, pulls at random times, visits that miss what was pushed to them last. After every
fact the scheduler equals one that was fed the same facts, and one that was loaded from its dump.
"""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pflow.model.graph import Graph, Wire
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
    Start,
    Visit,
)
from pflow.schedulers.reactive import Reactive
from pflow.testing import Conformance

PORTS = ("context", "data", "tools", "x")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    size = draw(st.integers(2, 6))
    ends = st.tuples(st.integers(0, size - 1), st.sampled_from(PORTS), st.integers(0, size - 1), st.sampled_from(PORTS))
    wires = draw(st.lists(ends, min_size=1, max_size=12, unique=True))
    ids = tuple(f"n{i}" for i in range(size))
    made = tuple(Wire(*wire) for wire in wires)
    return Graph(ids, (0,) * size, ((),) * size, (False,) * size, wires=made)


class World:
    """The kernel's part, in the simplest words, and what must hold."""

    def __init__(self, graph: Graph, data: st.DataObject) -> None:
        self.graph = graph
        self.data = data
        self.scheduler = Reactive(graph, spin=40)
        self.facts: list[Fact] = []
        self.flying: dict[str, Start] = {}
        self.fed: dict[str, list[dict[str, Any]]] = {}
        self.waiting: dict[str, set[tuple[str, int]]] = {}
        self.asked: dict[str, int] = {}
        self.latest: dict[tuple[str, str], int] = {}  # (node, port) → the newest value that was pushed there
        self.consumed: set[tuple[str, str, int]] = set()
        self.value = 0
        self.finish: Finish | None = None
        self.ids: set[str] = set()
        self.reopened = 0
        self.take(self.scheduler.start())

    def node(self, visit: str) -> str:
        return visit.rpartition("#")[0]

    def post(self, fact: Fact) -> None:
        self.facts.append(fact)
        loaded = Reactive(self.graph, spin=40)
        loaded.load(msgspec.json.decode(msgspec.json.encode(self.scheduler.dump())))
        commands = self.scheduler.on(fact)
        assert loaded.on(fact) == commands
        assert loaded.dump() == self.scheduler.dump()
        self.take(commands)

    def take(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Start):
                visit = command.visit
                assert self.finish is None
                assert self.node(visit.id) not in {self.node(other) for other in self.flying}, "two in flight"
                assert visit.id not in self.ids or self.reopened, "an id was given twice"
                self.ids.add(visit.id)
                self.flying[visit.id] = command
                self.fed[visit.id] = []
                self.waiting[visit.id] = set()
            elif isinstance(command, Feed):
                self.fed[command.visit].append(command.values)
            elif isinstance(command, Answer):
                if command.visit in self.waiting:
                    self.waiting[command.visit].discard((command.port, command.n))
            elif isinstance(command, Finish):
                assert not self.flying, "finished while something is in flight"
                self.finish = command

    def step(self) -> None:
        free = [visit for visit in self.flying if not self.waiting[visit]]
        assert free, "everything waits for something else, and nobody was told of the ring"
        visit = self.data.draw(st.sampled_from(free))
        single = self.pullable(self.node(visit))
        action = self.data.draw(st.sampled_from(["end", "end", "pull", "fail"]))
        if action == "pull" and single and self.asked.get(visit, 0) < 3:
            port = self.data.draw(st.sampled_from(single))
            n = self.asked[visit] = self.asked.get(visit, 0) + 1
            self.waiting[visit].add((PULL + port, n))
            self.post(Asked(0.0, visit, 1, PULL + port, n))
        else:
            self.end(visit, "failed" if action == "fail" else "completed")

    def pullable(self, node: str) -> list[str]:
        i = self.graph.ids.index(node)
        into = [wire.port for wire in self.graph.wires if wire.target == i]
        return sorted({port for port in into if into.count(port) == 1})

    def end(self, visit: str, status: Any) -> None:
        start = self.flying.pop(visit)
        seen = self.data.draw(st.integers(0, len(self.fed[visit])))
        outputs: dict[str, Any] = {}
        for port in PORTS:
            if self.data.draw(st.booleans()):
                self.value += 1
                outputs[port] = self.value
        node = self.node(visit)
        if not start.visit.pulled:
            for values in [start.visit.inputs, *self.fed[visit][:seen]]:
                self.consumed |= {(node, port, value) for port, value in values.items()}
        self.expect(visit, start, status, outputs)
        self.post(Ended(0.0, visit, Outcome(status, outputs), seen))

    def expect(self, visit: str, start: Start, status: str, outputs: dict[str, Any]) -> None:
        """What this end pushes, by the rules."""
        if start.visit.pulled or status != "completed":
            return
        i = self.graph.ids.index(self.node(visit))
        for wire in self.graph.wires:
            if wire.source == i and "tools" not in (wire.out, wire.port) and wire.out in outputs:
                self.latest[self.graph.ids[wire.target], wire.port] = outputs[wire.out]

    def check(self) -> None:
        """The newest value of every port was seen by a pushing visit, is in flight to one, or is pending."""
        pending = self.scheduler.dump()["pending"]
        flying = {(self.node(visit), port, value)
                  for visit, start in self.flying.items() if not start.visit.pulled
                  for values in [start.visit.inputs, *self.fed[visit]]
                  for port, value in values.items()}  # fmt: skip
        for (node, port), value in self.latest.items():
            kept = (node, port, value) in self.consumed or (node, port, value) in flying
            assert kept or pending.get(node, {}).get(port) == value, f"{value}, pushed to {node}.{port}, is lost"


@settings(max_examples=1500, deadline=None)
@given(st.data())
def test_nothing_is_lost_and_nothing_runs_twice(data: st.DataObject) -> None:
    world = World(data.draw(graphs()), data)
    for _ in range(40):
        if world.finish is not None:
            break
        world.step()
        world.check()
    replayed = Reactive(world.graph, spin=40)
    replayed.start()
    for fact in world.facts:
        replayed.on(fact)
    assert replayed.dump() == world.scheduler.dump()


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_a_cancelled_run_that_is_reopened_has_lost_nothing(data: st.DataObject) -> None:
    world = World(data.draw(graphs()), data)
    for _ in range(data.draw(st.integers(0, 12))):
        if world.finish is None:
            world.step()
    if world.finish is None:
        world.post(Cancelled(0.0, "run"))
    for visit in list(world.flying):
        if visit in world.flying:
            world.waiting[visit] = set()
            world.end(visit, data.draw(st.sampled_from(["completed", "cancelled"])))
    world.check()
    assert world.finish is not None
    if world.finish.status == "cancelled":
        world.finish, world.reopened = None, 1
        world.post(Reopened(0.0, "run"))
        world.check()
        assert world.finish is not None or world.flying


@settings(max_examples=500, deadline=None)
@given(graphs(), st.randoms(use_true_random=False), st.integers(-1, 12))
def test_it_conforms_to_what_every_scheduler_must_hold_to(graph: Graph, chance: Any, cancel_at: int) -> None:
    def end(visit: Visit) -> Outcome:
        if chance.random() < 0.2:
            return Outcome("failed", failure=Failure("node", "bad luck"))
        return Outcome("completed", {port: chance.randrange(9) for port in PORTS if chance.random() < 0.6})

    finish = Conformance(lambda: Reactive(graph, spin=10), end).check(chance.randrange, cancel_at)
    assert finish.status in ("completed", "failed", "cancelled")

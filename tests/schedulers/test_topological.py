from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.model.graph import Graph, PlannedEdge
from pflow.model.records import Cancelled, Ended, Failure, Finish, Outcome, Reopened, Start, Stop, Visit
from pflow.model.value import digest
from pflow.schedulers.topological import Topological
from pflow.testing import Conformance

OK = Outcome("completed")
BAD = Outcome("failed", failure=Failure("node", "broken"))
SKIP = Outcome("skipped")


def graph(*edges: str, fail_fast: bool = True, tolerate: str = "", ids: str = "") -> Graph:
    """``graph("a>b", "b>c:left")``: edges by letters, with the label they fire on."""
    names = sorted({letter for edge in edges for letter in edge[:3:2]} | set(ids))
    index = {name: i for i, name in enumerate(names)}
    outgoing: list[list[PlannedEdge]] = [[] for _ in names]
    incoming = [0] * len(names)
    for edge in edges:
        ends, _, on = edge.partition(":")
        outgoing[index[ends[0]]].append(PlannedEdge(index[ends[2]], on or "*"))
        incoming[index[ends[2]]] += 1
    tolerates = tuple(name in tolerate for name in names)
    return Graph(tuple(names), tuple(incoming), tuple(map(tuple, outgoing)), tolerates, fail_fast)


def play(scheduler: Topological, outcomes: dict[str, Outcome]) -> tuple[list[str], Finish | None]:
    """Run one visit after the other; the order of starts, and the end."""
    order: list[str] = []
    queue = list(scheduler.start())
    finish = None
    while queue:
        command = queue.pop(0)
        if isinstance(command, Start):
            order.append(command.visit.node)
            queue += scheduler.on(Ended(0.0, command.visit.id, outcomes.get(command.visit.node, OK)))
        elif isinstance(command, Finish):
            finish = command
    return order, finish


@pytest.mark.parametrize(
    ("edges", "outcomes", "order", "status"),
    [
        (["a>b", "b>c"], {}, "abc", "completed"),
        (["a>c", "b>c"], {}, "abc", "completed"),
        (["b>c", "a>c", "c>d"], {}, "abcd", "completed"),
        (["a>b", "b>c"], {"a": SKIP}, "abc", "completed"),  # a skipped node fires its unconditional edges
        (["a>b:left", "b>c"], {"a": SKIP}, "a", "completed"),  # and no other; what nothing reached fires nothing
        (["a>b:left", "a>c:right", "b>d", "c>d"], {"a": Outcome("completed", route="left")}, "abd", "completed"),
        (["a>b:left", "a>c:default"], {"a": Outcome("completed", route="other")}, "ac", "completed"),
        (["a>b:left", "a>c:default"], {"a": Outcome("completed", route="left")}, "ab", "completed"),
        (["a>b", "b>c"], {"a": BAD}, "a", "failed"),
        (["a>b", "a>c:error"], {"a": BAD}, "abc", "completed"),
        (["a>b:default", "a>c:error"], {"a": BAD}, "ac", "completed"),
        (["a>b:default", "a>c:error"], {}, "ab", "completed"),
    ],
)
def test_order_and_end(edges: list[str], outcomes: dict[str, Outcome], order: str, status: str) -> None:
    started, finish = play(Topological(graph(*edges), {}), outcomes)
    assert "".join(started) == order
    assert finish is not None and finish.status == status


def test_a_tolerated_failure_completes_and_a_merely_survived_one_does_not() -> None:
    order, finish = play(Topological(graph("a>b", tolerate="a"), {}), {"a": BAD})
    assert order == ["a", "b"] and finish == Finish("completed")
    order, finish = play(Topological(graph("a>b", fail_fast=False), {}), {"a": BAD})
    assert order == ["a", "b"] and finish is not None and finish.status == "failed"
    assert finish.failure is not None and finish.failure.chain == ("a#1",)


def test_after_a_failure_siblings_are_stopped_and_drained_before_the_end() -> None:
    scheduler = Topological(graph(ids="abc"), {}, width=2)
    assert scheduler.start() == [Start(Visit("a#1", "a")), Start(Visit("b#1", "b"))]
    assert scheduler.on(Ended(0, "a#1", BAD)) == [Stop("b#1", "failed")]
    (finish,) = scheduler.on(Ended(0, "b#1", Outcome("cancelled", failure=Failure("cancelled", "stopped"))))
    assert isinstance(finish, Finish) and finish.status == "failed"
    assert finish.failure is not None and finish.failure.kind == "node"


def test_a_reopened_run_starts_what_ended_badly_under_the_same_ids() -> None:
    scheduler = Topological(graph("a>b", ids="c"), {}, width=2)
    scheduler.start()
    scheduler.on(Ended(0, "c#1", OK))
    scheduler.on(Ended(0, "a#1", BAD))
    assert scheduler.on(Reopened(0, "r")) == [Start(Visit("a#1", "a"))]
    assert scheduler.on(Ended(0, "a#1", OK)) == [Start(Visit("b#1", "b"))]
    assert scheduler.on(Ended(0, "b#1", OK)) == [Finish("completed")]


def test_a_reopened_run_does_not_fire_edges_twice() -> None:
    scheduler = Topological(graph("a>b", fail_fast=False), {})
    play(scheduler, {"a": BAD})
    assert scheduler.on(Reopened(0, "r")) == [Start(Visit("a#1", "a"))]
    assert scheduler.on(Ended(0, "a#1", OK)) == [Finish("completed")]


def test_cancel_stops_what_runs_and_starts_nothing_else() -> None:
    scheduler = Topological(graph("a>b"), {})
    scheduler.start()
    assert scheduler.on(Cancelled(0, "r")) == [Stop("a#1", "cancelled")]
    (finish,) = scheduler.on(Ended(0, "a#1", Outcome("completed")))
    assert isinstance(finish, Finish) and finish.status == "cancelled"


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 9))
    labels = ["*", "*", "*", "left", "right", "default", "error"]
    outgoing: list[list[PlannedEdge]] = [[] for _ in range(count)]
    incoming = [0] * count
    for target in range(1, count):
        for source in sorted(draw(st.sets(st.integers(0, target - 1), max_size=3))):
            outgoing[source].append(PlannedEdge(target, draw(st.sampled_from(labels))))
            incoming[target] += 1
    ids = tuple(f"n{i}" for i in range(count))
    tolerate = tuple(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    return Graph(ids, tuple(incoming), tuple(map(tuple, outgoing)), tolerate, draw(st.booleans()))


OUTCOMES = st.sampled_from([OK, OK, Outcome("completed", route="left"), Outcome("completed", route="x"), SKIP, BAD])


@given(graphs(), st.integers(1, 4), st.data())
def test_it_conforms(shape: Graph, width: int, data: st.DataObject) -> None:
    ends = {name: data.draw(OUTCOMES, label=name) for name in shape.ids}
    suite = Conformance(lambda: Topological(shape, {}, width=width), lambda visit: ends[visit.node])
    cancel_at = data.draw(st.integers(-1, 4))
    suite.check(lambda count: data.draw(st.integers(0, count - 1)), cancel_at)


@given(graphs(), st.integers(2, 6), st.data())
def test_the_order_of_completions_does_not_change_what_comes_out(shape: Graph, width: int, data: st.DataObject) -> None:
    """Law 6: N workers give the outputs of one, without failures or with failFast off."""
    shape = Graph(shape.ids, shape.incoming, shape.outgoing, shape.tolerate, False)
    ends = {name: data.draw(OUTCOMES, label=name) for name in shape.ids}
    above: dict[str, list[str]] = {name: [] for name in shape.ids}
    for source, edges in zip(shape.ids, shape.outgoing, strict=True):
        for edge in edges:
            above[shape.ids[edge.target]].append(source)

    def run(width: int, choose: Any) -> tuple[dict[str, str], Finish]:
        made: dict[str, str] = {}

        def end(visit: Visit) -> Outcome:
            made[visit.node] = digest([visit.node, [made.get(source) for source in above[visit.node]]])
            return ends[visit.node]

        finish = Conformance(lambda: Topological(shape, {}, width=width), end).check(choose)
        return made, finish

    one, first = run(1, lambda count: 0)
    many, second = run(width, lambda count: data.draw(st.integers(0, count - 1)))
    assert one == many
    assert first.status == second.status

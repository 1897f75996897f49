from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.model.graph import Graph
from pflow.model.records import Cancelled, Ended, Failure, Finish, Outcome, Reopened, Start, Stop, Visit
from pflow.schedulers.routed import Routing
from pflow.testing import Conformance


def graph(ids: str, tolerate: str = "", limit: int = 100) -> Graph:
    count = len(ids)
    return Graph(
        tuple(ids), (0,) * count, ((),) * count, tuple(name in tolerate for name in ids), True, (limit,) * count
    )


def to(target: str | None) -> Outcome:
    return Outcome("completed", route=target)


BAD = Outcome("failed", failure=Failure("node", "broken"))


def test_an_outcome_says_where_to_go_and_nodes_are_visited_again() -> None:
    scheduler = Routing(graph("ab"), "s#1/")
    assert scheduler.start() == [Start(Visit("s#1/a#1", "a"))]
    assert scheduler.on(Ended(0, "s#1/a#1", to("b"))) == [Start(Visit("s#1/b#1", "b", after=("s#1/a#1",)))]
    assert scheduler.on(Ended(0, "s#1/b#1", to("a"))) == [Start(Visit("s#1/a#2", "a", 2, after=("s#1/b#1",)))]
    assert scheduler.on(Ended(0, "s#1/a#2", to(None))) == [Finish("completed")]


def test_a_failure_goes_where_it_is_routed_to_and_else_ends_the_run() -> None:
    scheduler = Routing(graph("ab"))
    scheduler.start()
    handled = Outcome("failed", failure=Failure("node", "broken"), route="b")
    assert scheduler.on(Ended(0, "a#1", handled)) == [Start(Visit("b#1", "b", after=("a#1",)))]
    (finish,) = scheduler.on(Ended(0, "b#1", BAD))
    assert isinstance(finish, Finish) and finish.status == "failed"
    assert finish.failure is not None and finish.failure.chain == ("b#1",)
    assert scheduler.on(Reopened(0, "r")) == [Start(Visit("b#1", "b"))]


def test_a_node_that_may_fail_does_not_fail_the_run() -> None:
    scheduler = Routing(graph("a", tolerate="a"))
    scheduler.start()
    assert scheduler.on(Ended(0, "a#1", BAD)) == [Finish("completed")]


def test_a_loop_ends_at_its_limit_with_the_path_and_a_reopening_allows_more() -> None:
    scheduler = Routing(graph("ab", limit=2))
    scheduler.start()
    for visit, target in (("a#1", "b"), ("b#1", "a"), ("a#2", "b"), ("b#2", "a")):
        (command,) = scheduler.on(Ended(0, visit, to(target)))
    assert isinstance(command, Finish) and command.failure is not None
    assert "a → b → a → b → a" in command.failure.message
    assert scheduler.on(Reopened(0, "r")) == [Start(Visit("a#3", "a", 3))]


@pytest.mark.parametrize(("outcome", "again"), [(Outcome("cancelled"), ["a#1"]), (to("b"), ["b#1"]), (to(None), [])])
def test_cancelled_and_reopened_it_goes_on(outcome: Outcome, again: list[str]) -> None:
    scheduler = Routing(graph("ab"))
    scheduler.start()
    assert scheduler.on(Cancelled(0, "r")) == [Stop("a#1", "cancelled")]
    (finish,) = scheduler.on(Ended(0, "a#1", outcome))
    assert isinstance(finish, Finish) and finish.status == "cancelled"
    commands = scheduler.on(Reopened(0, "r"))
    assert [command.visit.id for command in commands if isinstance(command, Start)] == again


@given(
    st.lists(st.sampled_from([*"abc", None, "bad", "handled"]), min_size=1, max_size=12), st.integers(1, 4), st.data()
)
def test_it_conforms(script: list[Any], limit: int, data: st.DataObject) -> None:
    steps = iter(script)

    def end(visit: Visit) -> Outcome:
        step = next(steps, None)
        if step == "bad":
            return BAD
        return Outcome("failed", failure=Failure("node", "x"), route="a") if step == "handled" else to(step)

    Conformance(lambda: Routing(graph("abc", limit=limit)), end).check(lambda count: 0, data.draw(st.integers(-1, 5)))

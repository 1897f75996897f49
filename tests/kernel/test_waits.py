"""Who is at work, and when a run can only pause."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.kernel.waits import Waits
from pflow.model.records import PULL
from pflow.model.workflow import Node
from pflow.nodes import StepContext, node
from tests.kernel.driving import Driven, workflow


@node("t/both", effect="quiet")
async def both(step: StepContext) -> dict[str, Any]:
    left, right = await asyncio.gather(step.ask("left?"), step.ask("right?"))
    return {"said": [left, right]}


@node("t/ask", effect="quiet")
async def ask(step: StepContext) -> dict[str, Any]:
    return {"said": await step.ask("well?")}


@node("t/count", effect="quiet")
async def count(step: StepContext, n: int = 0) -> dict[str, int]:
    return {"n": n + 1}


def test_a_node_that_asks_two_things_at_once_pauses_and_hears_both() -> None:
    paused = Driven(workflow(Node("a", "t/both")), [both]).drive()
    assert paused.status == "paused"
    assert [asked.question for asked in paused.run.memory.asked.values()] == ["left?", "right?"]

    async def answer(asked: Any) -> str:
        return str(asked.question).upper()

    done = paused.again(answer=answer).drive()
    assert done.outputs == {"a": {"said": ["LEFT?", "RIGHT?"]}}


@pytest.mark.parametrize("turn", [1, 2, 1000])
def test_a_run_does_not_pause_while_a_branch_goes_on(turn: int) -> None:
    """A worker that lets others have the loop between two visits has not come to an end."""
    names = [f"n{i}" for i in range(10)]
    edges = " ".join(f"{a}>{b}" for a, b in itertools.pairwise(names))
    flow = workflow(Node("q", "t/ask"), *(Node(name, "t/count") for name in names), edges=edges, width=2)
    paused = Driven(flow, [ask, count], turn=turn).drive()
    assert paused.status == "paused" and list(paused.ended) == [f"{name}#1" for name in names]


@given(st.integers(1, 5))
def test_the_order_of_the_journal_follows_from_the_turns_alone(turn: int) -> None:
    nodes = [Node(f"{branch}{i}", "t/count") for branch in "ab" for i in range(6)]
    edges = " ".join(f"{branch}{i}>{branch}{i + 1}" for branch in "ab" for i in range(5))
    flow = workflow(*nodes, edges=edges, width=2)
    first, second = (Driven(flow, [count], turn=turn).drive() for _ in range(2))
    assert list(first.ended) == list(second.ended)


def test_who_is_answered_counts_as_at_work_before_it_wakes_up() -> None:
    async def story() -> None:
        waits = Waits(lambda: None)
        waits.begin("a#1")
        waiting = asyncio.ensure_future(waits.wait(("a#1", "user", 0)))
        await asyncio.sleep(0)
        assert waits.only_pause()
        assert waits.answer(("a#1", "user", 0), "yes")
        assert not waits.only_pause() and not waiting.done()
        assert not waits.answer(("a#1", "user", 0), "no"), "an answer is given once"
        assert await waiting == "yes"

    asyncio.run(story())


def test_who_is_cancelled_while_it_waits_is_at_work_again() -> None:
    async def story() -> None:
        waits = Waits(lambda: None)
        waits.begin("a#1")
        waits.begin("b#1")
        others = asyncio.ensure_future(waits.wait(("b#1", "user", 0)))
        waiting = asyncio.ensure_future(waits.wait(("a#1", "user", 0)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        assert not waits.only_pause(), "it may have something left to do"
        waits.end("a#1")
        assert waits.only_pause()
        waits.answer(("b#1", "user", 0))
        await others

    asyncio.run(story())


def test_a_pull_is_not_waited_for_from_outside() -> None:
    async def story() -> None:
        waits = Waits(lambda: None)
        waits.begin("a#1")
        waiting = asyncio.ensure_future(waits.wait(("a#1", f"{PULL}data", 0)))
        await asyncio.sleep(0)
        assert not waits.only_pause()
        waits.answer(("a#1", f"{PULL}data", 0))
        await waiting

    asyncio.run(story())


def test_who_has_others_work_for_it_is_not_at_work_itself() -> None:
    async def story() -> None:
        stuck: list[bool] = []
        waits = Waits(lambda: stuck.append(waits.only_pause()))
        waits.begin("s#1")
        with waits.aside("s#1"), waits.aside("s#1"):
            waits.begin("s#1/i#1")
            waiting = asyncio.ensure_future(waits.wait(("s#1/i#1", "user", 0)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert stuck == [True]
            waits.answer(("s#1/i#1", "user", 0))
            await waiting
            waits.end("s#1/i#1")
        assert not waits.only_pause()

    asyncio.run(story())

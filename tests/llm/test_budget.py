"""A budget refuses the call that would pass it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pflow.errors import NodeError
from pflow.llm.budget import Budget, Means, dollars, means, using
from pflow.llm.call import call
from pflow.llm.prices import expected
from tests.llm.serving import question


def test_calls_are_added_up_until_nothing_is_left() -> None:
    budget = Budget(0.8)
    Path("paid.yaml").write_text(str([{"text": "hi", "usage": {"cost_usd": 0.4}}] * 4))
    made = Means(default="script:paid.yaml", budget=budget)
    replies = [asyncio.run(call("", question(), made)) for _ in range(2)]
    assert [reply.usage.cost_usd for reply in replies] == [0.4, 0.4] and budget.spent == 0.8
    with pytest.raises(NodeError) as caught:
        asyncio.run(call("", question(), made))
    assert caught.value.kind == "budget" and "$0.80 is spent" in caught.value.message
    assert "--budget" in caught.value.hint and budget.spent == 0.8


def test_a_call_that_may_cost_too_much_is_not_made() -> None:
    budget = Budget(1.0, spent=0.7)
    with pytest.raises(NodeError, match=r"would be passed: \$0\.70 is spent, and this call may cost \$0\.40"):
        budget.hold(0.4).__enter__()
    with budget.hold(0.2) as charge:
        charge(0.25)
    assert budget.spent == 0.95


def test_what_is_held_for_calls_under_way_counts() -> None:
    budget = Budget(1.0)
    with budget.hold(0.6), pytest.raises(NodeError, match="held for calls under way"):
        budget.hold(0.6).__enter__()
    with budget.hold(0.6):
        pass


def test_what_is_free_is_always_allowed_and_what_is_unknown_while_anything_is_left() -> None:
    with Budget(0.0).hold(0.0), Budget(1.0, spent=2.0).hold(0.0), Budget(1.0, spent=0.99).hold(None):
        pass
    with pytest.raises(NodeError, match="budget"):
        Budget(0.0).hold(None).__enter__()


def test_a_call_that_fails_gives_back_what_was_held() -> None:
    budget = Budget(1.0)
    with pytest.raises(ZeroDivisionError), budget.hold(0.9):
        raise ZeroDivisionError
    with budget.hold(0.9):
        pass
    assert budget.spent == 0.0


def test_means_reach_every_task_that_is_started_inside() -> None:
    async def inner() -> Means | None:
        return await asyncio.create_task(asyncio.to_thread(means))

    async def outer() -> Means | None:
        with using(Means("local")):
            return await inner()

    assert asyncio.run(outer()) == Means("local")
    assert means() is None


def test_a_guess_counts_the_texts_and_all_tokens_that_are_allowed() -> None:
    usage = expected(question("x" * 350, max_tokens=50))
    assert (usage.input_tokens, usage.output_tokens) == (101, 50)


@pytest.mark.parametrize(("amount", "text"), [(0.0, "$0.00"), (1.5, "$1.50"), (0.00123, "$0.0012"), (12.0, "$12.00")])
def test_amounts_are_written_as_people_do(amount: float, text: str) -> None:
    assert dollars(amount) == text

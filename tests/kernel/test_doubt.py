from __future__ import annotations

from typing import Any

import pytest

from pflow.errors import NodeError
from pflow.model.records import AnyRecord, Began, Doubt, Ended, Outcome, Tried
from pflow.model.workflow import Node, Policy, Retry
from pflow.nodes import StepContext, node
from tests.kernel.driving import Driven, workflow

CALLS: list[tuple[str, int]] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


@node("t/pay")
async def pay(step: StepContext) -> dict[str, int]:
    CALLS.append((step.visit, step.attempt))
    return {"attempt": step.attempt}


@node("t/read", effect="quiet")
async def read(step: StepContext) -> dict[str, int]:
    CALLS.append((step.visit, step.attempt))
    return {"attempt": step.attempt}


def cut_off(kind: str = "t/pay") -> Driven:
    """A run that died while its first node was at work, to be resumed."""
    whole = Driven(workflow(Node("a", kind), Node("b", "t/read"), edges="a>b"), [pay, read]).drive()
    end = next(i for i, record in enumerate(whole.log.records) if isinstance(record, Ended))
    whole.log.records = whole.log.records[:end]
    CALLS.clear()
    return whole


def test_an_effect_that_may_have_happened_is_not_repeated_unasked() -> None:
    resumed = cut_off().again().drive()
    assert resumed.status == "paused" and CALLS == []
    assert resumed.run.memory.begun == {"a#1": 1}
    assert "task:doubt" in resumed.kinds
    again = resumed.again().drive()
    assert again.status == "paused" and CALLS == []


def test_what_is_quiet_simply_runs_again() -> None:
    resumed = cut_off("t/read").again().drive()
    assert resumed.status == "completed" and CALLS == [("a#1", 1), ("b#1", 1)]


@pytest.mark.parametrize(
    ("decision", "status", "calls"),
    [
        ("retry", "completed", [("a#1", 2), ("b#1", 1)]),
        ("skip", "completed", [("b#1", 1)]),
        ("fail", "failed", []),
    ],
)
def test_the_decision_is_followed_and_written_down(decision: Any, status: str, calls: list[Any]) -> None:
    resumed = cut_off().again(on_doubt=decision).drive()
    assert resumed.status == status and calls == CALLS
    doubts = [record for record in resumed.log.records if isinstance(record, Doubt)]
    assert [(doubt.visit, doubt.attempt, doubt.decision) for doubt in doubts] == [("a#1", 1, decision)]


def test_somebody_present_is_asked() -> None:
    asked = []

    async def decide(visit: str, attempt: int) -> Any:
        asked.append((visit, attempt))
        return "retry"

    assert cut_off().again(decide=decide).drive().status == "completed"
    assert asked == [("a#1", 1)]


@pytest.mark.parametrize("decision", ["retry", "skip", "fail"])
def test_a_decision_survives_a_crash_right_after_it(decision: Any) -> None:
    resumed = cut_off().again(on_doubt=decision).drive()
    end = next(i for i, record in enumerate(resumed.log.records) if isinstance(record, Doubt)) + 1
    once_more = resumed.again(end, on_doubt=None).drive()
    assert once_more.status == resumed.status


def test_a_failed_doubt_can_be_resumed_once_it_was_looked_into() -> None:
    failed = cut_off().again(on_doubt="fail").drive()
    assert failed.status == "failed"
    assert failed.again(on_doubt=None).drive().status == "completed"
    assert CALLS == [("a#1", 2), ("b#1", 1)]


def test_a_timed_out_effect_is_in_doubt_when_the_run_is_reopened() -> None:
    import asyncio

    @node("t/slow")
    async def slow(step: StepContext) -> None:
        if step.attempt == 1:
            await asyncio.Event().wait()

    first = Driven(workflow(Node("a", "t/slow", policy=Policy(timeout=0.01))), [slow]).drive()
    assert first.status == "failed"
    assert first.again().drive().status == "paused"
    assert first.again(on_doubt="retry").drive().status == "completed"


def test_a_timeout_that_its_policy_retries_is_no_doubt() -> None:
    import asyncio

    @node("t/slow")
    async def slow(step: StepContext) -> None:
        if step.attempt == 1:
            await asyncio.Event().wait()

    driven = Driven(workflow(Node("a", "t/slow", policy=Policy(Retry(2), timeout=0.01))), [slow]).drive()
    assert driven.status == "completed"


@node("t/second")
async def second(step: StepContext) -> dict[str, int]:
    if step.attempt == 1:
        raise NodeError("once")
    return {"attempt": step.attempt}


def test_each_attempt_is_announced_and_only_when_its_delay_is_over() -> None:
    """A run that is killed in a delay, resumed, and killed again in what is left of it, is in no doubt."""
    whole = Driven(workflow(Node("a", "t/second", policy=Policy(Retry(2, 5.0)))), [second]).drive()
    assert [record.attempt for record in whole.log.records if isinstance(record, Began)] == [1, 2]
    cut = next(i for i, record in enumerate(whole.log.records) if isinstance(record, Tried)) + 1
    failed = whole.log.records[cut - 1]
    resumed = whole.again(cut).drive()
    began = [record for record in resumed.log.records[cut:] if isinstance(record, Began)]
    assert isinstance(failed, Tried) and failed.again_at == failed.t + 5.0
    assert [(record.attempt, record.t) for record in began] == [(2, failed.again_at)]


def test_the_end_of_a_visit_settles_its_doubt() -> None:
    records: list[AnyRecord] = [*cut_off().log.records]
    assert isinstance(records[-1], Began)
    records.append(Ended(1.0, "a#1", Outcome("completed", {"attempt": 1})))
    flow = workflow(Node("a", "t/pay"), Node("b", "t/read"), edges="a>b")
    assert Driven(flow, [pay, read], records=records).drive().status == "completed"
    assert CALLS == [("b#1", 1)]

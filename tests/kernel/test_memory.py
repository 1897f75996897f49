"""What each record of a journal means: records in, what is remembered out.

Laws compare a live run with a replayed one, and both fold with the same ``Memory``: a wrong fold agrees with itself.
"""

from __future__ import annotations

from typing import Any

import pytest

from pflow.kernel.memory import Memory
from pflow.model.reason import Reason
from pflow.model.records import (
    PULL,
    AnyRecord,
    Asked,
    Began,
    Cancelled,
    Doubt,
    Ended,
    Failure,
    Finished,
    Loaded,
    Opened,
    Outcome,
    Reopened,
    Replied,
    RunStatus,
    Shared,
    Stored,
    Tried,
    Used,
    VisitStatus,
)

BROKEN = Failure("node", "broken")
NO_BUDGET = Failure("budget", "there is nothing left to spend")


def after(*records: AnyRecord) -> Memory:
    memory = Memory()
    for record in records:
        memory.fold(record)
    return memory


def ended(visit: str, status: VisitStatus = "completed", kind: str = "node", t: float = 0.0, **rest: Any) -> Ended:
    failure = Failure(kind, "broken") if status in ("failed", "cancelled") else None
    return Ended(t, visit, Outcome(status, failure=failure, **rest))


def asked(visit: str, port: str = "user", n: int = 0) -> Asked:
    return Asked(0.0, visit, 1, port, n, "well?")


def tried(visit: str, attempt: int = 1, failure: Failure = BROKEN, again_at: float = 0.0) -> Tried:
    return Tried(0.0, visit, attempt, failure, again_at)


def reopened() -> Reopened:
    return Reopened(0.0, "run")


def remembered(memory: Memory) -> dict[str, Any]:
    """Everything that is remembered, but for what is empty."""
    return {name: value for name, value in vars(memory).items() if not name.startswith("_") and value}


def test_nothing_is_remembered_of_a_run_that_was_not_opened() -> None:
    assert remembered(Memory()) == {}


# Of the run.


def test_how_a_run_was_opened_is_remembered() -> None:
    record = Opened(1.0, "run", "w", "test", "digest", {"x": 1})
    assert remembered(after(record)) == {"updated": 1.0, "opened": record}


@pytest.mark.parametrize(
    "record",
    [
        Opened(7.0, "run", "w", "test", "digest"),
        Ended(7.0, "a#1", Outcome("completed")),
        Asked(7.0, "a#1", 1, "user", 0),
        Cancelled(7.0, "run", "enough"),
        Reopened(7.0, "run"),
        Began(7.0, "a#1", 1),
        Tried(7.0, "a#1", 1, BROKEN),
        Replied(7.0, "a#1", "user", 0, "fine"),
        Doubt(7.0, "a#1", 1, "retry"),
        Shared(7.0, "x", 1),
        Stored(7.0, "values", "x", 1),
        Loaded(7.0, "/w/part.yaml", "documents/1-part.yaml"),
        Used(7.0, "a#1", {"tokens": 1}),
        Finished(7.0, "run", "completed"),
    ],
    ids=lambda record: type(record).__name__,
)
def test_the_time_of_the_last_record_whatever_it_says(record: AnyRecord) -> None:
    assert after(Opened(1.0, "run", "w", "test", "digest"), record).updated == 7.0


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_run_is_finished_until_it_is_reopened(status: RunStatus) -> None:
    record = Finished(2.0, "run", status, BROKEN if status == "failed" else None)
    assert after(record).finished == record
    assert after(record, reopened()).finished is None
    assert after(record, reopened(), record).finished == record


def test_a_cancel_leaves_nothing_but_its_time_until_visits_tell_how_they_ended() -> None:
    before: list[AnyRecord] = [Began(1.0, "a#1", 1), asked("b#1"), tried("c#1")]
    with_cancel = remembered(after(*before, Cancelled(2.0, "run", "enough")))
    assert with_cancel == remembered(after(*before)) | {"updated": 2.0}


def test_a_shared_value_is_the_last_that_was_put_there() -> None:
    memory = after(Shared(0.0, "x", 1), Shared(0.0, "y", None), Shared(0.0, "x", [2]))
    assert memory.shared == {"x": [2], "y": None}


def test_a_store_has_a_place_for_each_kind_of_value_and_none_for_nothing() -> None:
    memory = after(
        Stored(0.0, "values", "x", 1),
        Stored(0.0, "cache", "x", 2),
        Stored(0.0, "values", "y", 3),
        Stored(0.0, "values", "y", None),
    )
    assert memory.stored == {"values": {"x": 1}, "cache": {"x": 2}}
    assert memory.shared == {}


def test_what_was_shared_and_stored_outlives_the_failure_of_whoever_put_it_there() -> None:
    memory = after(Shared(0.0, "x", 1), Stored(0.0, "values", "y", 2), ended("a#1", "failed"), reopened())
    assert (memory.shared, memory.stored) == ({"x": 1}, {"values": {"y": 2}})


def test_a_document_that_was_loaded_is_known_by_its_path() -> None:
    assert after(Loaded(0.0, "/w/part.yaml", "documents/1-part.yaml")).loaded == {
        "/w/part.yaml": "documents/1-part.yaml"
    }


# How visits ended.


def test_outcomes_are_kept_by_visit_in_the_order_in_which_they_ended() -> None:
    memory = after(ended("b#1"), ended("a#1", "skipped", reason=Reason("end")), ended("s#1/i#1"))
    assert list(memory.ended) == ["b#1", "a#1", "s#1/i#1"]
    assert memory.ended["a#1"] == Outcome("skipped", reason=Reason("end"))


def test_a_visit_that_ended_twice_ended_the_second_way_and_at_the_second_time() -> None:
    memory = after(ended("a#1", "failed"), ended("b#1"), reopened(), ended("a#1", attempts=2))
    assert list(memory.ended) == ["b#1", "a#1"] and memory.ended["a#1"].status == "completed"


# Intents, and doubts.


def test_an_intent_stands_until_there_is_word_of_how_it_went() -> None:
    assert after(Began(0.0, "a#1", 2), Began(0.0, "b#1", 1)).begun == {"a#1": 2, "b#1": 1}


@pytest.mark.parametrize("status", ["completed", "skipped", "failed"])
def test_the_end_of_a_visit_is_word_of_how_it_went(status: VisitStatus) -> None:
    assert after(Began(0.0, "a#1", 1), Began(0.0, "b#1", 1), ended("a#1", status)).begun == {"b#1": 1}


@pytest.mark.parametrize(("status", "kind"), [("cancelled", "cancelled"), ("failed", "timeout"), ("failed", "lost")])
def test_an_end_that_came_from_outside_says_nothing_about_the_effect(status: VisitStatus, kind: str) -> None:
    memory = after(Began(0.0, "a#1", 1), ended("a#1", status, kind))
    assert memory.begun == {"a#1": 1}
    assert after(Began(0.0, "a#1", 1), ended("a#1", status, kind), reopened()).begun == {"a#1": 1}


def test_an_attempt_that_failed_is_word_of_how_it_went_and_the_next_is_a_new_intent() -> None:
    assert after(Began(0.0, "a#1", 1), tried("a#1")).begun == {}
    assert after(Began(0.0, "a#1", 1), tried("a#1"), Began(0.0, "a#1", 2)).begun == {"a#1": 2}


def test_a_doubt_that_was_settled_by_trying_again_stands_no_more_and_the_attempt_counts() -> None:
    """Killed right here, the run goes on with the next attempt and is in no doubt."""
    memory = after(Began(0.0, "a#1", 3), Doubt(0.0, "a#1", 3, "retry"))
    assert memory.begun == {}
    assert memory.next_attempt("a#1") == 4


@pytest.mark.parametrize("decision", ["skip", "fail"])
def test_a_doubt_that_was_settled_otherwise_stands_until_the_visit_ends(decision: Any) -> None:
    records: list[AnyRecord] = [Began(0.0, "a#1", 1), Doubt(0.0, "a#1", 1, decision)]
    memory = after(*records)
    assert memory.begun == {"a#1": 1} and memory.decided == {"a#1": decision}
    assert memory.next_attempt("a#1") == 1
    end = ended("a#1", "skipped") if decision == "skip" else ended("a#1", "failed", "doubt")
    assert after(*records, end).begun == {}


def test_a_decision_is_good_for_one_attempt() -> None:
    records: list[AnyRecord] = [Began(0.0, "a#1", 1), Doubt(0.0, "a#1", 1, "retry")]
    assert after(*records).decided == {"a#1": "retry"}
    assert after(*records, Began(0.0, "b#1", 1)).decided == {"a#1": "retry"}
    assert after(*records, Began(0.0, "a#1", 2)).decided == {}


def test_a_decision_is_no_answer_to_the_doubt_of_a_later_failure() -> None:
    records: list[AnyRecord] = [Began(0.0, "a#1", 1), Doubt(0.0, "a#1", 1, "fail"), ended("a#1", "failed", "doubt")]
    assert after(*records).decided == {}
    assert after(Began(0.0, "a#1", 1), Doubt(0.0, "a#1", 1, "skip"), ended("a#1", "cancelled")).decided == {}


# Attempts.


def test_attempts_are_counted_from_one() -> None:
    assert Memory().next_attempt("a#1") == 1
    assert after(tried("a#1")).next_attempt("a#1") == 2
    assert after(tried("a#1"), tried("a#1", 2)).next_attempt("a#1") == 3
    assert after(tried("a#1")).next_attempt("b#1") == 1


def test_attempts_of_a_visit_that_failed_count_on() -> None:
    memory = after(tried("a#1"), ended("a#1", "failed", attempts=2))
    assert memory.tried == {"a#1": 2} and memory.next_attempt("a#1") == 3


@pytest.mark.parametrize("status", ["completed", "skipped"])
def test_attempts_of_a_visit_that_is_done_are_forgotten(status: VisitStatus) -> None:
    assert after(tried("a#1"), tried("b#1"), ended("a#1", status)).tried == {"b#1": 1}


def test_attempts_of_a_visit_that_was_stopped_count_on() -> None:
    assert after(tried("a#1", 2), ended("a#1", "cancelled", attempts=3)).tried == {"a#1": 2}


def test_attempts_before_a_reopening_do_not_count_against_the_policy() -> None:
    memory = after(tried("a#1"), ended("a#1", "failed", attempts=2), tried("b#1"), reopened())
    assert memory.failed_before == {"a#1": 2, "b#1": 1}
    assert memory.tried == {"a#1": 2, "b#1": 1}


def test_attempts_after_a_reopening_count_against_the_policy_until_the_next() -> None:
    once: list[AnyRecord] = [ended("a#1", "failed", attempts=2), reopened(), tried("a#1", 3)]
    assert after(*once).failed_before == {"a#1": 2}
    assert after(*once, ended("a#1", "failed", attempts=4), reopened()).failed_before == {"a#1": 4}


def test_when_the_next_attempt_is_due_is_remembered_until_the_visit_ends() -> None:
    memory = after(tried("a#1", again_at=5.0), tried("b#1", again_at=6.0), tried("a#1", 2, again_at=9.0))
    assert memory.wait_until == {"a#1": 9.0, "b#1": 6.0}
    for status in ("completed", "skipped", "failed", "cancelled"):
        assert after(tried("a#1", again_at=5.0), tried("b#1", again_at=6.0), ended("a#1", status)).wait_until == {
            "b#1": 6.0
        }


# Visits that are held.


def test_a_visit_that_was_refused_money_is_held_and_was_not_even_tried() -> None:
    memory = after(tried("a#1", 1, NO_BUDGET), tried("b#1", 2))
    assert memory.held == {"a#1": NO_BUDGET}
    assert memory.failed_before == {"a#1": 1}
    assert memory.next_attempt("a#1") == 2


@pytest.mark.parametrize("status", ["completed", "skipped", "failed", "cancelled"])
def test_a_visit_that_ended_is_held_no_more(status: VisitStatus) -> None:
    memory = after(tried("a#1", 1, NO_BUDGET), tried("b#1", 1, NO_BUDGET), ended("a#1", status))
    assert memory.held == {"b#1": NO_BUDGET}


# Usage.


def test_what_failed_attempts_used_is_the_sum_that_was_written_last() -> None:
    memory = after(Used(0.0, "a#1", {"tokens": 1}), Used(0.0, "b#1", {"tokens": 9}), Used(0.0, "a#1", {"tokens": 3}))
    assert memory.used == {"a#1": {"tokens": 3}, "b#1": {"tokens": 9}}


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_what_a_visit_used_that_did_not_succeed_counts_with_its_next_attempts(status: VisitStatus) -> None:
    assert after(Used(0.0, "a#1", {"tokens": 1}), ended("a#1", status, usage={"tokens": 2})).used == {
        "a#1": {"tokens": 2}
    }
    assert after(Used(0.0, "a#1", {"tokens": 1}), ended("a#1", status)).used == {"a#1": {"tokens": 1}}


@pytest.mark.parametrize("status", ["completed", "skipped"])
def test_what_a_visit_used_that_is_done_goes_with_its_outcome(status: VisitStatus) -> None:
    memory = after(Used(0.0, "a#1", {"tokens": 1}), Used(0.0, "b#1", {"tokens": 9}), ended("a#1", status))
    assert memory.used == {"b#1": {"tokens": 9}}


# Questions and replies.


def test_a_question_is_open_until_somebody_answers_it() -> None:
    first, second = asked("a#1"), asked("a#1", n=1)
    assert after(first, second).asked == {("a#1", "user", 0): first, ("a#1", "user", 1): second}
    memory = after(first, second, Replied(0.0, "a#1", "user", 0, "fine"))
    assert memory.asked == {("a#1", "user", 1): second}
    assert memory.replies == {("a#1", "user", 0): "fine"}


@pytest.mark.parametrize("status", ["completed", "skipped", "failed", "cancelled"])
def test_a_visit_that_ended_has_no_open_question(status: VisitStatus) -> None:
    memory = after(asked("a#1"), asked("a#1", n=1), asked("b#1"), ended("a#1", status))
    assert list(memory.asked) == [("b#1", "user", 0)]


def test_a_reply_outlives_the_visit_so_that_another_attempt_hears_it_again() -> None:
    said: list[AnyRecord] = [asked("a#1"), Replied(0.0, "a#1", "user", 0, None)]
    later: list[list[AnyRecord]] = [[tried("a#1")], [ended("a#1", "failed"), reopened()], [ended("a#1")]]
    for more in later:
        assert after(*said, *more).replies == {("a#1", "user", 0): None}


def test_what_a_node_pulls_from_another_is_no_question_to_a_person() -> None:
    assert after(asked("a#1", PULL + "data")).asked == {}


# Composite visits: the facts below them.


def test_the_facts_below_a_composite_visit_are_kept_by_scope_in_their_order() -> None:
    one, ask, two = ended("s#1/i#1"), asked("s#1/j#1", PULL + "data"), ended("s#1/~1/i#1")
    deep = ended("s#1/j#1/0/b#1")
    memory = after(one, ask, deep, two)
    assert memory.below("s#1", "s#1/") == [one, ask]
    assert memory.below("s#1", "s#1/~1/") == [two]
    assert memory.below("s#1/j#1", "s#1/j#1/0/") == [deep]
    assert memory.below("s#1", "s#1/~2/") == [] and memory.below("t#1", "t#1/") == []


def test_facts_of_the_outermost_scope_are_below_nothing() -> None:
    assert after(ended("a#1"), asked("b#1")).nested == {}


@pytest.mark.parametrize("status", ["completed", "skipped"])
def test_what_happened_below_a_visit_that_is_done_is_forgotten_all_the_way_down(status: VisitStatus) -> None:
    kept = ended("t#1/i#1")
    memory = after(ended("s#1/j#1/i#1"), ended("s#1/j#1", "failed"), kept, ended("s#1", status))
    assert memory.nested == {"t#1": {"t#1/": [kept]}}


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_what_happened_below_a_visit_that_may_be_tried_again_is_kept(status: VisitStatus) -> None:
    child = ended("s#1/i#1")
    assert after(child, ended("s#1", status)).below("s#1", "s#1/") == [child]


def test_a_reopening_reaches_every_scope_that_is_open() -> None:
    child, deep, again = ended("s#1/t#1", "failed"), ended("s#1/t#1/i#1", "failed"), reopened()
    memory = after(deep, child, ended("s#1", "failed"), again)
    assert memory.below("s#1", "s#1/") == [child, again]
    assert memory.below("s#1/t#1", "s#1/t#1/") == [deep, again]


def test_a_composite_that_is_tried_again_reopens_what_is_below_it_and_nothing_else() -> None:
    child, deep, other = ended("s#1/t#1", "failed"), ended("s#1/t#1/i#1", "failed"), ended("u#1/i#1", "failed")
    memory = after(deep, child, other, Tried(4.0, "s#1", 1, BROKEN))
    assert memory.below("s#1", "s#1/") == [child, Reopened(4.0, "")]
    assert memory.below("s#1/t#1", "s#1/t#1/") == [deep, Reopened(4.0, "")]
    assert memory.below("u#1", "u#1/") == [other]


def test_a_child_that_completed_is_not_reopened_with_its_composite() -> None:
    deep, done = ended("s#1/t#1/i#1", "failed"), ended("s#1/t#1")
    memory = after(deep, done, ended("s#1/j#1", "failed"), tried("s#1"))
    assert memory.below("s#1/t#1", "s#1/t#1/") == []


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_the_attempts_of_children_start_anew_with_each_attempt_of_their_composite(status: VisitStatus) -> None:
    """A child that was stopped between two attempts has all of its attempts again, as one that failed has."""
    memory = after(tried("s#1/i#1"), tried("s#1/i#1", 2), ended("s#1/i#1", status, attempts=2), tried("s#1"))
    assert memory.failed_before == {"s#1/i#1": 2}
    assert memory.next_attempt("s#1/i#1") == 3


def test_the_attempts_of_children_far_below_start_anew_too() -> None:
    deep: list[AnyRecord] = [
        tried("s#1/t#1/i#1"),
        ended("s#1/t#1/i#1", "failed", attempts=2),
        ended("s#1/t#1", "failed", attempts=1),
    ]
    assert after(*deep, tried("s#1")).failed_before == {"s#1/t#1": 1, "s#1/t#1/i#1": 2}

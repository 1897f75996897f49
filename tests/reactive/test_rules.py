"""Each rule of push and pull, by its words."""

from __future__ import annotations

from pflow.model.records import Cancelled, Ended, Feed, Outcome, Reopened, Start, Stop
from tests.reactive.wires import Play


def test_exactly_one_entry_is_executed_and_nodes_without_edges_only_when_pulled() -> None:
    play = Play("start > use", "manual > use.extra")
    assert play.running == ["start#1"]
    play.end("start#1", data=1)
    assert play.running == ["use#1"]
    play.pull("use#1", "extra")
    assert play.running == ["use#1", "manual#1"]


# Push.


def test_no_empty_pushes() -> None:
    play = Play("start.data > a", "start.context > b.context", "start.data > b")
    play.end("start#1", context={"n": 1})
    assert play.running == ["b#1"] and play.inputs("b#1") == {"context": {"n": 1}}


def test_a_value_that_is_none_is_no_value() -> None:
    play = Play("start > a")
    play.end("start#1", data=None)
    assert play.finish is not None and play.finish.status == "completed" and "a#1" not in play.started


def test_successors_are_started_in_parallel_those_with_a_context_first() -> None:
    play = Play("start.data > a", "start.data > b", "start.context > c.context")
    play.end("start#1", data=1, context={})
    assert play.running == ["c#1", "a#1", "b#1"]


def test_what_one_node_pushes_to_one_successor_is_coalesced() -> None:
    play = Play("start.data > a.data", "start.context > a.context", "start.data > a.copy")
    play.end("start#1", data=1, context={})
    assert play.running == ["a#1"] and play.inputs("a#1") == {"data": 1, "context": {}, "copy": 1}


def test_the_push_phase_tells_its_edges_and_inputs() -> None:
    play = Play("start.data > a.data", "start.context > b.context")
    play.end("start#1", data=1, context={})
    (told,) = play.said("flow:push")
    assert told["inputs"] == {"b": ["context"], "a": ["data"]}
    assert told["edges"] == ["context → b.context", "data → a.data"]


def test_tools_are_pull_only() -> None:
    play = Play("start.tools > a.tools", "start.data > a.tools", "start.tools > a.data")
    play.end("start#1", tools=[1], data=2)
    assert play.started.keys() == {"start#1"} and play.finish is not None


def test_a_skipped_node_pushes_nothing() -> None:
    play = Play("start > a")
    play.running.remove("start#1")
    play.post(Ended(1.0, "start#1", Outcome("completed", {"status": "skipped", "data": 1})))
    assert "a#1" not in play.started and play.finish is not None and play.finish.status == "completed"


# Ambiguity.


def test_an_input_with_several_edges_defers_the_start_until_it_is_pushed() -> None:
    play = Play("start.context > a.context", "start > b", "b > a.data", "c > a.data")
    play.end("start#1", context={}, data=1)
    assert play.running == ["b#1"]
    assert play.said("flow:defer") == [{"node": "a", "missing": ["data"], "has": ["context"]}]
    play.end("b#1", data=2)
    assert play.inputs("a#1") == {"context": {}, "data": 2}


def test_several_predecessors_may_push_to_the_same_input() -> None:
    play = Play("start > b", "start > c", "b > a", "c > a")
    play.end("start#1", data=0)
    play.end("b#1", data=1)
    play.end("c#1", data=2)
    assert play.inputs("a#1") == {"data": 1}
    assert play.last[-1] == Feed("a#1", {"data": 2})


def test_an_ambiguous_input_cannot_be_pulled() -> None:
    play = Play("start.context > a.context", "b > a", "c > a", "start > a")
    play.end("start#1", context={}, data=1)
    play.pull("a#1")
    (answer,) = play.answers()
    assert answer.failure is not None and answer.failure.kind == "pull" and "3 edges" in answer.failure.message
    assert play.running == ["a#1"]


# In flight.


def test_a_push_to_a_node_in_flight_feeds_it() -> None:
    play = Play("start.context > a.context", "start > b", "b > a")
    play.end("start#1", context={}, data=1)
    play.end("b#1", data=2)
    assert Feed("a#1", {"data": 2}) in play.last and play.running == ["a#1"]
    assert play.said("flow:feed") == [{"node": "a", "visit": "a#1", "keys": ["data"]}]


def test_a_push_after_the_end_starts_a_new_visit() -> None:
    play = Play("start.context > a.context", "start > b", "b > a")
    play.end("start#1", context={}, data=1)
    play.end("a#1")
    play.end("b#1", data=2)
    assert play.running == ["a#2"] and play.inputs("a#2") == {"data": 2}


def test_what_a_visit_had_not_seen_when_it_returned_starts_the_next() -> None:
    play = Play("start.context > a.context", "start > b", "b > a")
    play.end("start#1", context={}, data=1)
    play.end("b#1", data=2)
    play.end("a#1", seen=0)
    assert play.running == ["a#2"] and play.inputs("a#2") == {"data": 2}


def test_what_a_visit_had_seen_is_consumed() -> None:
    play = Play("start.context > a.context", "start > b", "b > a")
    play.end("start#1", context={}, data=1)
    play.end("b#1", data=2)
    play.end("a#1", seen=1)
    assert play.finish is not None and play.finish.status == "completed"


# Pull.


def test_a_pull_executes_the_source_which_does_not_push() -> None:
    play = Play("start > a", "s > a.extra", "s > other")
    play.end("start#1", data=1)
    play.pull("a#1", "extra")
    assert play.started["s#1"].visit.pulled
    play.end("s#1", data=7)
    (answer,) = play.answers()
    assert (answer.visit, answer.port, answer.n, answer.value, answer.failure) == ("a#1", "pull:extra", 0, 7, None)
    assert "other#1" not in play.started


def test_a_pull_joins_a_run_in_flight() -> None:
    play = Play("start > a", "start > s", "s > a.extra", "s > b")
    play.end("start#1", data=1)
    play.pull("a#1", "extra")
    assert play.running == ["a#1", "s#1"]
    play.end("s#1", data=7)
    assert [answer.value for answer in play.answers()] == [7]
    assert "b#1" in play.started, "it was pushed to, so it pushes"


def test_each_pull_after_the_other_executes_the_source_again() -> None:
    play = Play("start > a", "s > a.extra")
    play.end("start#1", data=1)
    for n in (1, 2):
        play.pull("a#1", "extra", n)
        play.end(f"s#{n}", data=n)
        assert [answer.value for answer in play.answers()] == [n]


def test_a_failure_inside_a_pull_is_the_pullers_to_handle() -> None:
    play = Play("start > a", "s > a.extra")
    play.end("start#1", data=1)
    play.pull("a#1", "extra")
    play.end("s#1", "failed")
    (answer,) = play.answers()
    assert answer.failure is not None
    play.end("a#1")
    assert play.finish is not None and play.finish.status == "completed"


def test_a_pulled_visit_looks_at_pending_pushes_and_leaves_them() -> None:
    play = Play("start > p", "start.late > gate.late", "x > gate.data", "y > gate.data", "gate > p.extra")
    play.end("start#1", data=1, late=5)
    assert play.said("flow:defer")
    play.pull("p#1", "extra")
    assert play.inputs("gate#1") == {"late": 5}
    play.end("gate#1", data=3)
    assert play.scheduler.dump()["pending"] == {"gate": {"late": 5}}


def test_a_push_during_a_pulled_visit_is_fed_to_it_and_starts_a_pushed_one_after() -> None:
    play = Play("start > p", "start > q", "q > s", "s > p.extra", "s > sink")
    play.end("start#1", data=1)
    play.pull("p#1", "extra")
    assert play.started["s#1"].visit.pulled
    play.end("q#1", data=2)
    assert Feed("s#1", {"data": 2}) in play.last
    play.end("s#1", data=3)
    assert play.running == ["p#1", "s#2"] and not play.started["s#2"].visit.pulled
    play.end("s#2", data=4)
    assert "sink#1" in play.started


def test_two_nodes_that_pull_each_other_are_told_of_the_ring() -> None:
    play = Play("start > a", "b > a.x", "a > b.y")
    play.end("start#1", data=1)
    play.pull("a#1", "x")
    play.pull("b#1", "y")
    (answer,) = play.answers()
    assert answer.visit == "b#1" and answer.failure is not None and answer.failure.kind == "deadlock"
    assert "a → b → a" in answer.failure.message or "b → a → b" in answer.failure.message


def test_a_node_that_pulls_itself_is_told_so() -> None:
    play = Play("start > a", "a > a.x")
    play.end("start#1", data=1)
    play.pull("a#1", "x")
    (answer,) = play.answers()
    assert answer.failure is not None and "a → a" in answer.failure.message


def test_a_longer_ring_is_told_in_its_order() -> None:
    play = Play("start > a", "b > a.x", "c > b.x", "a > c.x")
    play.end("start#1", data=1)
    play.pull("a#1", "x")
    play.pull("b#1", "x")
    play.pull("c#1", "x")
    (answer,) = play.answers()
    assert answer.failure is not None and "c → a → b → c" in answer.failure.message


# Ends.


def test_an_error_ends_its_branch_only_and_the_run_fails_at_its_end() -> None:
    play = Play("start > a", "start > b", "a > after", "b > c")
    play.end("start#1", data=1)
    play.end("a#1", "failed", data=9)
    play.end("b#1", data=2)
    assert play.running == ["c#1"] and not play.finish
    play.end("c#1")
    assert play.finish and play.finish.status == "failed" and "after#1" not in play.started


def test_a_loop_goes_on_as_long_as_it_waits_for_its_user() -> None:
    play = Play("start > user", "user > llm", "llm > user", spin=4)
    play.end("start#1", data=0)
    for n in range(1, 30):
        play.wait(f"user#{n}")
        play.end(f"user#{n}", data=n)
        play.end(f"llm#{n}", data=n)
    assert play.finish is None and play.running == ["user#30"]


def test_a_graph_that_spins_is_stopped_with_the_path() -> None:
    play = Play("start > a", "a > b", "b > a", spin=10)
    play.end("start#1", data=0)
    while play.finish is None:
        play.end(play.running[0], data=1)
    assert play.finish.status == "failed" and play.finish.failure is not None
    assert play.finish.failure.kind == "spinning" and "a → b → a" in play.finish.failure.message


def test_many_nodes_do_not_make_a_spin() -> None:
    play = Play(*[f"start > n{i}" for i in range(50)], spin=5)
    play.end("start#1", data=0)
    assert len(play.running) == 50 and play.finish is None


def test_cancel_stops_what_is_under_way_and_nothing_starts() -> None:
    play = Play("start > a", "start > b", "a > c")
    play.end("start#1", data=1)
    stops = play.post(Cancelled(9.0, "run"))
    assert [stop.visit for stop in stops if isinstance(stop, Stop)] == ["a#1", "b#1"]
    play.end("a#1", data=2)
    assert "c#1" not in play.started
    play.end("b#1", "cancelled")
    assert play.finish is not None and play.finish.status == "cancelled"


def test_a_reopened_run_tries_again_what_failed_with_what_it_had_seen() -> None:
    play = Play("start.context > a.context", "start > b", "b > a", "a > c")
    play.end("start#1", context={"n": 1}, data=1)
    play.end("b#1", data=2)
    play.end("a#1", "failed", seen=1)
    assert play.finish is not None and play.finish.status == "failed"
    commands = play.post(Reopened(9.0, "run"))
    (start,) = [one for one in commands if isinstance(one, Start)]
    assert start.visit.id == "a#1" and start.visit.inputs == {"context": {"n": 1}, "data": 2}
    play.end("a#1", data=3)
    assert play.running == ["c#1"]


def test_a_reopened_visit_is_not_handed_what_it_had_not_seen_for_the_next_visit_had_that() -> None:
    play = Play("start.context > a.context", "start > b", "b > a")
    play.end("start#1", context={"n": 1}, data=1)
    play.end("b#1", data=2)
    play.end("a#1", "failed", seen=0)
    assert play.running == ["a#2"] and play.inputs("a#2") == {"data": 2}
    play.end("a#2")
    assert play.finish is not None and play.finish.status == "failed"
    play.post(Reopened(9.0, "run"))
    assert play.running == ["a#1"] and play.inputs("a#1") == {"context": {"n": 1}}


def test_of_two_visits_of_a_node_that_failed_a_reopened_run_tries_the_later_one_again() -> None:
    play = Play("start.context > a.context", "start > b", "b > a")
    play.end("start#1", context={"n": 1}, data=1)
    play.end("b#1", data=2)
    play.end("a#1", "failed", seen=0)
    play.end("a#2", "failed")
    play.post(Reopened(9.0, "run"))
    assert play.running == ["a#2"] and play.inputs("a#2") == {"data": 2}
    play.end("a#2")
    assert play.finish is not None and play.finish.status == "completed"


def test_a_reopened_run_starts_what_was_pushed_while_it_was_being_stopped() -> None:
    play = Play("start > a", "start > b", "a > c")
    play.end("start#1", data=1)
    play.post(Cancelled(9.0, "run"))
    play.end("a#1", data=2)
    play.end("b#1", "cancelled")
    play.post(Reopened(10.0, "run"))
    assert play.running == ["b#1", "c#1"] and play.inputs("c#1") == {"data": 2}

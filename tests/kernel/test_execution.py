from __future__ import annotations

import asyncio
import contextvars
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pflow import app
from pflow.errors import JournalError, NodeError
from pflow.model.reason import Reason
from pflow.model.records import AnyRecord, Began, Ended, Finished, Tried
from pflow.model.workflow import Edge, Node, Policy, Retry, Workflow
from pflow.nodes import Routed, StepContext, node
from pflow.testing import ListLog
from tests.kernel.driving import RUN, Driven, workflow
from tests.limits import LIMIT, run_out

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


@node("t/note")
async def note(step: StepContext, text: str = "") -> dict[str, str]:
    CALLS.append(step.visit)
    return {"text": text}


@node("t/flaky", effect="quiet")
async def flaky(step: StepContext, fail: int = 1, kind: str = "node") -> dict[str, int]:
    CALLS.append(step.visit)
    if step.attempt <= fail:
        raise NodeError(f"attempt {step.attempt}", kind=kind)
    return {"attempt": step.attempt}


@node("t/forever", effect="quiet")
async def forever() -> None:
    await asyncio.Event().wait()


@node("t/stubborn", effect="quiet")
async def stubborn() -> dict[str, str]:
    """Ignores the first cancel and returns a late result."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0)
    return {"late": "result"}


@node("t/ask", effect="quiet")
async def ask(step: StepContext, question: str = "well?") -> dict[str, Any]:
    return {"answer": await step.ask(question)}


TYPES = [note, flaky, forever, stubborn, ask]


def test_a_chain_runs_in_order_and_binds_what_came_before() -> None:
    flow = workflow(
        Node("a", "echo", {"text": "{{name}}"}), Node("b", "echo", {"text": "{{a.text}}!"}), edges="a>b", input_path=()
    )
    driven = Driven(flow, inputs={"name": "you"}).drive()
    assert driven.status == "completed"
    assert driven.outputs["b"]["text"] == "you!"
    assert driven.kinds == ["phase:start", *["task:start", "task:complete"] * 2, "phase:complete"]
    assert [event.context.task for event in driven.events[1:3]] == ["node:a", "node:a"]
    assert {event.context.phase for event in driven.events} == {"Run Flow"}


def test_a_guard_that_does_not_hold_skips_and_says_why() -> None:
    skipped = Node("b", "t/note", guard=["same", ["path", "a", "value"], ["value", False]])
    flow = workflow(Node("a", "constant", {"value": True}), skipped, Node("c", "t/note"), edges="a>b b>c")
    driven = Driven(flow, TYPES).drive()
    assert driven.outputs["b"] == {"skipped": True}
    assert driven.ended["b#1"].reason == Reason("guard", ("a.value == false",))
    assert CALLS == ["c#1"]
    assert driven.kinds.count("task:skipped") == 1 and driven.kinds.count("task:start") == 2


def test_a_node_that_was_skipped_fires_no_edge_that_has_a_condition() -> None:
    never = Node("a", "t/note", guard=["value", False])
    edges = (Edge("a", "b", guard=["value", True]), Edge("a", "c"))
    flow = Workflow("test", "test", (never, Node("b", "t/note"), Node("c", "t/note")), edges)
    assert list(Driven(flow, TYPES).drive().ended) == ["a#1", "c#1"]


def test_what_failed_is_tried_again_before_anything_else() -> None:
    first = Driven(workflow(Node("a", "t/flaky"), Node("b", "t/note")), TYPES).drive()
    assert first.status == "failed" and CALLS == ["a#1"]
    assert first.again().drive().status == "completed" and CALLS == ["a#1", "a#1", "b#1"]


def test_retries_count_in_total_wait_in_between_and_tell() -> None:
    flow = workflow(Node("a", "t/flaky", {"fail": 2}, policy=Policy(Retry(3, 0.5))))
    driven = Driven(flow, TYPES).drive()
    assert driven.outputs["a"] == {"attempt": 3}
    assert driven.clock.slept == [0.5, 0.5]
    assert driven.kinds == ["phase:start", "task:start", "task:retry", "task:retry", "task:complete", "phase:complete"]
    assert [record.attempt for record in driven.log.records if isinstance(record, Tried)] == [1, 2]


def test_a_run_that_failed_has_all_of_its_attempts_again_when_it_is_resumed() -> None:
    first = Driven(workflow(Node("a", "t/flaky", {"fail": 5}, policy=Policy(Retry(3)))), TYPES).drive()
    assert first.status == "failed" and first.ended["a#1"].attempts == 3
    second = first.again().drive()
    assert second.status == "completed" and second.outputs["a"] == {"attempt": 6}


def test_exponential_delays_stop_growing_at_the_cap() -> None:
    policy = Policy(Retry(6, 1.0, "exponential", cap=5.0))
    driven = Driven(workflow(Node("a", "t/flaky", {"fail": 5}, policy=policy)), TYPES).drive()
    assert driven.clock.slept == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_a_kind_of_error_has_its_own_rule_and_some_cannot_change() -> None:
    by_kind = Policy(Retry(1), by_kind={"agent": Retry(3)})
    flow = workflow(Node("a", "t/flaky", {"fail": 2, "kind": "agent"}, policy=by_kind))
    assert Driven(flow, TYPES).drive().status == "completed"
    flow = workflow(Node("a", "t/flaky", {"fail": 2, "kind": "validation"}, policy=Policy(Retry(5))))
    driven = Driven(flow, TYPES).drive()
    assert driven.status == "failed" and driven.ended["a#1"].attempts == 1


def test_one_failure_event_after_the_last_attempt_and_the_failure_says_where() -> None:
    flow = workflow(Node("a", "t/flaky", {"fail": 9}, policy=Policy(Retry(2))), Node("b", "t/note"), edges="a>b")
    driven = Driven(flow, TYPES).drive()
    assert driven.status == "failed" and "b#1" not in driven.ended
    assert driven.kinds.count("task:failed") == 1
    finished = driven.log.records[-1]
    assert isinstance(finished, Finished) and finished.failure is not None
    assert finished.failure.message == "attempt 2" and finished.failure.chain == ("a#1",)
    assert driven.outputs["a"]["failed"] is True and driven.outputs["a"]["attempts"] == 2


def test_a_binding_that_leads_nowhere_fails_before_anything_is_executed() -> None:
    flow = workflow(Node("a", "t/note", {"text": "{{b.x}}"}, policy=Policy(Retry(3))))
    driven = Driven(flow, TYPES, inputs={"b": {"y": 1}}).drive()
    failure = driven.ended["a#1"].failure
    assert failure is not None and failure.kind == "binding" and "y" in failure.hint
    assert CALLS == []


def test_a_timeout_is_a_failure_that_can_be_retried() -> None:
    driven = Driven(workflow(Node("a", "t/forever", policy=Policy(Retry(2), timeout=0.01))), TYPES).drive()
    failure = driven.ended["a#1"].failure
    assert failure is not None and failure.kind == "timeout"
    assert driven.ended["a#1"].attempts == 2


def test_a_late_result_is_discarded() -> None:
    driven = Driven(workflow(Node("a", "t/stubborn", policy=Policy(timeout=0.01, tolerate=True))), TYPES).drive()
    assert driven.status == "completed" and driven.outputs["a"]["failed"] is True


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


@node("t/context", effect="quiet")
async def context(text: str) -> dict[str, str]:
    before = VARIABLE.get()
    VARIABLE.set(text)
    await asyncio.sleep(0)
    return {"before": before, "after": VARIABLE.get()}


def test_each_visit_has_a_context_of_its_own() -> None:
    flow = workflow(Node("a", "t/context", {"text": "a"}), Node("b", "t/context", {"text": "b"}), edges="a>b")
    outputs = Driven(flow, [context]).drive().outputs
    assert outputs["b"] == {"before": "unset", "after": "b"}


def test_an_intent_is_on_disk_before_an_impure_attempt_and_only_then() -> None:
    log = ListLog()
    synced: list[int] = []

    @node("t/look")
    async def look(step: StepContext) -> None:
        assert isinstance(log.records[-1], Began)
        synced.append(log.synced == len(log.records))

    @node("t/quiet", effect="quiet")
    async def quiet() -> None:
        assert not any(isinstance(record, Began) and record.visit == "b#1" for record in log.records)

    flow = workflow(Node("a", "t/look"), Node("b", "t/quiet"), Node("c", "t/look"), edges="a>b b>c")
    assert Driven(flow, [look, quiet], log=log).drive().status == "completed"
    assert synced == [True, True]


def test_routes_choose_edges() -> None:
    flow = workflow(Node("a", "control.if", {"condition": "no"}), Node("yes", "t/note"), Node("no", "t/note"))
    flow = flow.__class__("t", "t", flow.nodes, (Edge("a", "yes", "true"), Edge("a", "no", "false")))
    assert set(Driven(flow, TYPES).drive().outputs) == {"a", "no"}


def test_answers_are_kept_across_attempts() -> None:
    @node("t/ask-then-fail", effect="quiet")
    async def ask_then_fail(step: StepContext) -> dict[str, Any]:
        answer = await step.ask("name?")
        if step.attempt == 1:
            raise NodeError("once")
        return {"answer": answer}

    asked: list[str] = []

    async def answer(question: Any) -> str:
        asked.append(question.question)
        return "Ada"

    flow = workflow(Node("a", "t/ask-then-fail", policy=Policy(Retry(2))))
    driven = Driven(flow, [ask_then_fail], answer=answer).drive()
    assert driven.outputs["a"] == {"answer": "Ada"} and asked == ["name?"]


def test_a_run_that_can_only_wait_pauses_and_takes_its_answer_when_resumed() -> None:
    flow = workflow(
        Node("a", "t/ask"), Node("b", "t/note", {"text": "{{a.answer}}"}), Node("c", "t/note"), edges="a>b", width=2
    )
    first = Driven(flow, TYPES).drive()
    assert first.status == "paused"
    assert [ask.question for ask in first.run.memory.asked.values()] == ["well?"]
    assert "c#1" in first.ended

    async def answer(question: Any) -> str:
        return "fine"

    second = first.again(answer=answer).drive()
    assert second.status == "completed" and second.outputs["b"] == {"text": "fine"}
    assert CALLS == ["c#1", "b#1"]


def test_cancel_ends_what_runs_and_the_run() -> None:
    driven = Driven(workflow(Node("a", "t/forever"), Node("b", "t/note"), edges="a>b"), TYPES)

    async def main() -> None:
        driving = asyncio.ensure_future(driven.run.drive())
        while "a#1" not in driven.run.root.tasks:
            await asyncio.sleep(0)
        driven.run.cancel("enough")
        await driving

    asyncio.run(main())
    assert driven.status == "cancelled"
    assert driven.ended["a#1"].status == "cancelled" and "b#1" not in driven.ended


def test_cancelled_before_its_first_step_a_visit_still_ends() -> None:
    flow = workflow(Node("a", "control.fail"), Node("b", "t/forever"), Node("c", "t/forever"), width=3)
    driven = Driven(flow, TYPES).drive()
    assert driven.status == "failed"
    assert {driven.ended[visit].status for visit in ("b#1", "c#1")} == {"cancelled"}


def test_an_interrupt_writes_nothing_and_can_be_resumed() -> None:
    driven = Driven(workflow(Node("a", "t/note"), Node("b", "t/forever"), edges="a>b"), TYPES)

    async def main() -> None:
        driving = asyncio.ensure_future(driven.run.drive())
        while "b#1" not in driven.run.root.tasks:
            await asyncio.sleep(0)
        count = len(driven.log.records)
        driven.run.interrupt()
        await driving
        assert len(driven.log.records) == count

    asyncio.run(main())
    assert driven.status == "interrupted"


def test_an_interrupt_while_a_visit_is_being_stopped_writes_nothing_either() -> None:
    stopped, never = asyncio.Event(), asyncio.Event()

    @node("t/tidy", effect="quiet")
    async def tidy() -> None:
        try:
            await never.wait()
        except asyncio.CancelledError:
            stopped.set()
            await never.wait()  # it tidies up, and is not done when the interrupt comes

    driven = Driven(workflow(Node("a", "t/tidy")), [tidy])

    async def main() -> None:
        driving = asyncio.ensure_future(driven.run.drive())
        while "a#1" not in driven.run.root.tasks:
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # it waits now
        driven.run.cancel("enough")
        await stopped.wait()
        count = len(driven.log.records)
        driven.run.interrupt()
        await driving
        assert len(driven.log.records) == count

    asyncio.run(main())
    assert driven.status == "interrupted" and "a#1" not in driven.ended


def test_a_record_that_cannot_be_written_ends_the_run() -> None:
    def full(record: AnyRecord) -> None:
        if isinstance(record, Ended):
            raise JournalError("the disk is full")

    driven = Driven(workflow(Node("a", "t/note"), Node("b", "t/note"), edges="a>b"), TYPES, log=ListLog(full))
    with pytest.raises(JournalError):
        driven.drive()
    assert CALLS == ["a#1"]


def test_a_stored_value_is_seen_by_later_nodes_and_after_a_resume() -> None:
    @node("t/put", effect="quiet")
    async def put(step: StepContext) -> None:
        step.shared["x"] = [1, 2]

    @node("t/get", effect="quiet")
    async def get(step: StepContext) -> dict[str, Any]:
        return {"x": step.shared["x"], "answer": await step.ask("go on?")}

    first = Driven(workflow(Node("a", "t/put"), Node("b", "t/get"), edges="a>b"), [put, get]).drive()

    async def answer(question: Any) -> str:
        return "yes"

    assert first.again(answer=answer).drive().outputs["b"] == {"x": [1, 2], "answer": "yes"}


def test_usage_adds_up_over_attempts() -> None:
    @node("t/costly", effect="quiet")
    async def costly(step: StepContext) -> None:
        step.usage(tokens=10, model="m")
        if step.attempt == 1:
            raise NodeError("again")

    driven = Driven(workflow(Node("a", "t/costly", policy=Policy(Retry(2)))), [costly]).drive()
    assert driven.ended["a#1"].usage == {"tokens": 20, "model": "m"}


# ── real processes ──


def _alive(marker: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(entry.name)
            except OSError:
                continue
    return found


@pytest.mark.parametrize("how", ["policy", "param", "cancel"])
def test_a_command_is_ended_with_its_grandchildren(how: str, tmp_path: Path) -> None:
    marker = f"6{os.getpid()}.{len(how)}"
    started = tmp_path / "started"
    # A grandchild in a session of its own, deaf to SIGTERM, and one in the background.
    deaf = f"setsid sh -c 'trap \"\" TERM; sleep {marker}; sleep {marker}'"
    command = f"{deaf} & sleep {marker} & touch {started}; sleep {marker}"
    params: dict[str, Any] = {"command": command, "timeout": LIMIT if how == "param" else 10 * LIMIT}
    policy = Policy(timeout=LIMIT) if how == "policy" else Policy()
    driven = Driven(workflow(Node("a", "shell", params, policy=policy)))

    async def main() -> None:
        driving = asyncio.ensure_future(driven.run.drive())
        while not started.exists():
            await asyncio.sleep(0.01)
        driven.run.cancel("enough")
        await driving

    if how == "cancel":
        asyncio.run(main())
    else:
        run_out(driven.run.drive(), started.exists)
    outcome = driven.ended["a#1"]
    assert outcome.failure is not None
    assert outcome.failure.kind == ("cancelled" if how == "cancel" else "timeout")
    assert _alive(marker) == []


@node("t/spin", effect="quiet")
def spin(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    while True:
        time.sleep(0.01)


def test_a_sync_function_under_a_timeout_runs_in_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    driven = Driven(workflow(Node("a", "t/spin", {"path": str(path)}, policy=Policy(timeout=600))), [spin])

    async def main() -> None:
        driving = asyncio.ensure_future(driven.run.drive())
        while not path.exists() or not path.read_text():
            await asyncio.sleep(0.01)
        driven.run.cancel("enough")
        await driving

    asyncio.run(main())
    assert driven.ended["a#1"].status == "cancelled"
    pid = int(path.read_text())
    assert pid != os.getpid()
    assert not Path(f"/proc/{pid}").exists()


@node("t/thread", effect="quiet")
def in_thread() -> dict[str, bool]:
    return {"other": threading.current_thread() is not threading.main_thread()}


def test_a_sync_function_runs_in_a_thread() -> None:
    assert Driven(workflow(Node("a", "t/thread")), [in_thread]).drive().outputs["a"] == {"other": True}


def test_a_class_is_a_node_type_and_routes() -> None:
    from pflow.nodes import Node as Base

    @node("t/class", effect="quiet")
    class Choose(Base):
        async def exec(self, step: StepContext, value: int) -> Routed:
            return Routed({"twice": value * 2, "run": step.run_id}, "go")

    driven = Driven(workflow(Node("a", "t/class", {"value": "21"})), [Choose]).drive()
    assert driven.outputs["a"] == {"twice": 42, "run": RUN}
    assert driven.ended["a#1"].route == "go"


def test_the_result_of_a_run_without_a_folder(home: Path) -> None:
    result = app.run_sync(workflow(Node("a", "echo", {"text": "x"})), keep=False)
    assert result.success and result.outputs["a"]["text"] == "x" and result.path is None
    assert not home.exists()


def test_a_run_that_died_while_stopping_is_drained_and_then_taken_up() -> None:
    flow = workflow(Node("a", "control.fail"), Node("b", "t/ask"), Node("c", "t/note"), edges="b>c", width=2)
    whole = Driven(flow, TYPES).drive()
    assert whole.status == "failed"
    cut = next(i for i, record in enumerate(whole.log.records) if isinstance(record, Ended)) + 1

    async def answer(question: Any) -> str:
        return "fine"

    resumed = whole.again(cut, answer=answer)
    ends = [(record.visit, record.outcome.status) for record in resumed.log.records if isinstance(record, Ended)]
    assert ends == [("a#1", "failed"), ("b#1", "cancelled")]
    assert resumed.drive().status == "failed"  # what failed fails again; what was stopped was stopped again


def test_a_cancel_that_waits_when_a_run_is_resumed_stops_it_before_anything_starts() -> None:
    first = Driven(workflow(Node("a", "t/note"), Node("b", "t/ask"), edges="a>b"), TYPES).drive()
    assert first.status == "paused"
    resumed = first.again()
    resumed.run.cancel("enough")
    assert resumed.drive().status == "cancelled" and CALLS == ["a#1"]

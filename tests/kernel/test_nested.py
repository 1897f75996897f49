from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pflow.errors import NodeError
from pflow.model.records import Began, Ended, Tried
from pflow.model.workflow import Node, Output, Policy, Retry, Workflow
from pflow.nodes import StepContext, node
from tests.kernel.driving import Driven, workflow
from tests.limits import LIMIT, run_out

CALLS: list[tuple[str, int]] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


@node("t/work")
async def work(step: StepContext, value: Any = None, fail: int = 0) -> dict[str, Any]:
    CALLS.append((step.visit, step.attempt))
    if step.attempt <= fail:
        raise NodeError(f"attempt {step.attempt}")
    return {"value": value}


@node("t/forever")
async def forever(step: StepContext) -> None:
    CALLS.append((step.visit, step.attempt))
    await asyncio.Event().wait()


def ir(flow: Workflow) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(flow)
    return made


def calling(flow: Workflow, policy: Policy | None = None, **inputs: Any) -> Node:
    return Node("s", "workflow", {"workflow_ir": ir(flow), "inputs": inputs}, policy=policy or Policy())


def test_a_workflow_runs_inside_another_isolated_with_outputs_of_its_own() -> None:
    inner = workflow(Node("i", "t/work", {"value": "{{x}}"}), outputs=(Output("made", "{{i.value}}"),))
    flow = workflow(
        Node("a", "t/work", {"value": ""}),
        calling(inner, x="{{a.value}}!"),
        Node("b", "t/work", {"value": "{{s.made}}"}),
        edges="a>s s>b",
    )
    driven = Driven(flow, [work], inputs={"hidden": 1}).drive()
    assert driven.outputs["s"] == {"made": "!"} and driven.outputs["b"] == {"value": "!"}
    assert [visit for visit, _ in CALLS] == ["a#1", "s#1/i#1", "b#1"]
    assert "node:s/i" in [event.context.task for event in driven.events]
    blind = workflow(Node("i", "t/work", {"value": "{{hidden}}"}))
    assert Driven(workflow(calling(blind)), [work], inputs={"hidden": 1}).drive().status == "failed"


def test_a_composite_writes_no_intent_and_its_failure_tells_the_way_down() -> None:
    inner = workflow(Node("i", "t/work", {"fail": 9}))
    outer = workflow(calling(inner))
    driven = Driven(workflow(Node("o", "workflow", {"workflow_ir": ir(outer)})), [work]).drive()
    assert driven.status == "failed"
    finished = driven.run.memory.finished
    failure = finished.failure if finished is not None else None
    assert failure is not None and failure.chain == ("o#1", "o#1/s#1", "o#1/s#1/i#1")
    assert [record.visit for record in driven.log.records if isinstance(record, Began)] == ["o#1/s#1/i#1"]


def test_a_composite_of_a_strangers_type_writes_no_intent_either() -> None:
    @node("t/around", composite=True)
    async def around(step: StepContext) -> dict[str, Any]:
        return await step.run_workflow({"ir": ir(workflow(Node("i", "t/work")))})

    driven = Driven(workflow(Node("o", "t/around")), [around, work]).drive()
    assert driven.status == "completed"
    assert [record.visit for record in driven.log.records if isinstance(record, Began)] == ["o#1/i#1"]


def test_a_retried_composite_takes_up_its_children_where_they_failed() -> None:
    inner = workflow(Node("i", "t/work"), Node("j", "t/work", {"fail": 2}), Node("k", "t/work"), edges="i>j j>k")
    driven = Driven(workflow(calling(inner, Policy(Retry(3)))), [work]).drive()
    assert driven.status == "completed"
    assert CALLS == [("s#1/i#1", 1), ("s#1/j#1", 1), ("s#1/j#1", 2), ("s#1/j#1", 3), ("s#1/k#1", 1)]
    assert [record.visit for record in driven.log.records if isinstance(record, Tried)] == ["s#1", "s#1"]


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_reopened_run_reopens_what_is_nested(attempts: int) -> None:
    deepest = workflow(Node("d", "t/work"), Node("e", "t/work", {"fail": 1 + attempts}), edges="d>e")
    inner = workflow(Node("i", "t/work"), calling(deepest, Policy(Retry(attempts))), edges="i>s")
    first = Driven(workflow(Node("o", "workflow", {"workflow_ir": ir(inner)})), [work]).drive()
    assert first.status == "failed"
    second = first.again().drive()
    while second.status == "failed":
        second = second.again().drive()
    assert second.status == "completed"
    assert CALLS.count(("o#1/i#1", 1)) == 1 and CALLS.count(("o#1/s#1/d#1", 1)) == 1
    assert [attempt for visit, attempt in CALLS if visit == "o#1/s#1/e#1"] == list(range(1, attempts + 3))


def test_foreach_sees_the_item_its_index_and_what_is_around() -> None:
    body = Node("b", "t/work", {"value": ["{{item}}", "{{__index__}}", "{{a.value}}"]})
    loop = Node("f", "control.foreach", {"items": "{{a.value}}", "as": "item", "body": ["b"]})
    flow = workflow(Node("a", "t/work", {"value": ["x", "y"]}), loop, body, edges="a>f")
    driven = Driven(flow, [work]).drive()
    assert driven.outputs["f"]["iterations"] == [
        {"item": "x", "outputs": {"b": {"value": ["x", 0, ["x", "y"]]}}},
        {"item": "y", "outputs": {"b": {"value": ["y", 1, ["x", "y"]]}}},
    ]
    assert "b" not in driven.outputs


def test_loops_nest() -> None:
    nodes = (
        Node("f", "control.foreach", {"items": [1, 2], "as": "x", "body": ["g"]}),
        Node("g", "control.foreach", {"items": ["a", "b"], "as": "y", "body": ["b"]}),
        Node("b", "t/work", {"value": "{{x}}{{y}}"}),
    )
    driven = Driven(workflow(*nodes), [work]).drive()
    assert [visit for visit, _ in CALLS] == [f"f#1/{i}/g#1/{j}/b#1" for i in range(2) for j in range(2)]
    inner = driven.outputs["f"]["iterations"][1]["outputs"]["g"]["iterations"][0]
    assert inner == {"item": "a", "outputs": {"b": {"value": "2a"}}}


def test_a_loop_that_failed_goes_on_with_the_item_that_failed() -> None:
    body = Node("b", "t/work", {"value": "{{item}}", "fail": "{{item}}"})
    flow = workflow(Node("f", "control.foreach", {"items": [0, 1, 0], "body": ["b"]}), body)
    first = Driven(flow, [work]).drive()
    assert first.status == "failed"
    second = first.again().drive()
    assert second.status == "completed"
    assert CALLS == [("f#1/0/b#1", 1), ("f#1/1/b#1", 1), ("f#1/1/b#1", 2), ("f#1/2/b#1", 1)]


def test_a_stopped_composite_stops_and_drains_what_is_below() -> None:
    inner = workflow(Node("i", "t/forever"), Node("j", "t/work"), edges="i>j")
    outer = calling(workflow(Node("t", "workflow", {"workflow_ir": ir(inner)})))
    driven = Driven(workflow(outer), [work, forever])

    async def main() -> None:
        driving = asyncio.ensure_future(driven.run.drive())
        while not CALLS:
            await asyncio.sleep(0)
        driven.run.cancel("enough")
        await driving

    asyncio.run(main())
    assert driven.status == "cancelled"
    assert [(r.visit, r.outcome.status) for r in driven.log.records if isinstance(r, Ended)] == [
        ("s#1/t#1/i#1", "cancelled"), ("s#1/t#1", "cancelled"), ("s#1", "cancelled"),
    ]  # fmt: skip
    resumed = driven.again()  # the impure visit below had begun: nobody here decides, so the run pauses
    resumed.drive()
    assert resumed.status == "paused" and list(resumed.run.memory.begun) == ["s#1/t#1/i#1"]


def test_a_timeout_of_a_composite_ends_its_children_and_a_retry_takes_them_up() -> None:
    inner = workflow(Node("i", "t/work"), Node("j", "t/forever"), edges="i>j")
    flow = workflow(calling(inner, Policy(Retry(2), timeout=LIMIT)))
    driven = Driven(flow, [work, forever], on_doubt="retry")
    run_out(driven.run.drive(), lambda: ("s#1/j#1", 1) in CALLS, lambda: ("s#1/j#1", 2) in CALLS)
    assert driven.status == "failed"
    assert CALLS == [("s#1/i#1", 1), ("s#1/j#1", 1), ("s#1/j#1", 2)]
    assert driven.ended["s#1"].failure is not None and driven.ended["s#1"].failure.kind == "timeout"


def test_a_child_that_was_stopped_has_all_of_its_attempts_again_when_its_composite_is_retried() -> None:
    waits = asyncio.Event()
    stopped: list[str] = []

    @node("t/moody", effect="quiet")
    async def moody(step: StepContext) -> dict[str, int]:
        CALLS.append((step.visit, step.attempt))
        if step.attempt == 2 and not stopped:
            waits.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.append(step.visit)
        if step.attempt < 3:
            raise NodeError(f"attempt {step.attempt}")
        return {"attempt": step.attempt}

    @node("t/spoils", effect="quiet")
    async def spoils(step: StepContext) -> None:
        await waits.wait()
        if step.attempt == 1:
            raise NodeError("once")

    inner = workflow(Node("i", "t/moody", policy=Policy(Retry(2))), Node("j", "t/spoils"), width=2)
    driven = Driven(workflow(calling(inner, Policy(Retry(2)))), [moody, spoils]).drive()
    assert stopped == ["s#1/i#1"]
    assert driven.status == "completed" and driven.outputs["s"]["i"] == {"attempt": 3}
    assert [attempt for _, attempt in CALLS] == [1, 2, 2, 3]


def test_workflows_that_call_themselves_end_at_a_limit() -> None:
    @node("t/self", composite=True, effect="quiet")
    async def recursive(step: StepContext) -> dict[str, Any]:
        return await step.run_workflow({"ir": ir(workflow(Node("r", "t/self")))})

    driven = Driven(workflow(Node("r", "t/self")), [recursive]).drive()
    failure = driven.ended["r#1"].failure
    assert driven.status == "failed" and failure is not None and "nested deeper" in failure.message


def test_a_step_may_run_several_workflows_and_other_types() -> None:
    @node("t/several", composite=True, effect="quiet")
    async def several(step: StepContext) -> dict[str, Any]:
        one = await step.run_workflow({"ir": ir(workflow(Node("i", "t/work", {"value": 1})))})
        two = await step.run_workflow({"ir": ir(workflow(Node("i", "t/work", {"value": 2})))})
        said = await step.call("echo", text="three")
        return {"all": [one["i"]["value"], two["i"]["value"], said["text"]]}

    driven = Driven(workflow(Node("m", "t/several")), [several, work]).drive()
    assert driven.outputs["m"] == {"all": [1, 2, "three"]}
    assert [visit for visit, _ in CALLS] == ["m#1/i#1", "m#1/~1/i#1"]
    for count in range(1, len(driven.log.records)):
        assert driven.again(count, on_doubt="retry").drive().outputs == driven.outputs

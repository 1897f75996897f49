from __future__ import annotations

import asyncio
import itertools
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import pflow
from pflow import NodeError, StepContext, app, node
from pflow.app.runs import state
from pflow.app.session import Session
from pflow.app.stopped import take
from pflow.errors import RunBusy, UsageError
from pflow.model.records import Opened
from pflow.model.workflow import Edge, Input, Node, Policy, Retry, Workflow
from pflow.storage import inbox
from pflow.storage.journal import read
from pflow.storage.lease import Lease
from pflow.storage.runs import RunFolder

CALLS: list[str] = []
BROKEN = False


@pytest.fixture(autouse=True)
def _fresh() -> None:
    global BROKEN
    BROKEN = False
    CALLS.clear()


@node("t/act")
async def act(step: StepContext, text: str = "") -> dict[str, str]:
    CALLS.append(step.idempotency_key.partition(":")[2])
    if BROKEN and step.node_id == "b":
        raise NodeError("broken", "fix it")
    return {"text": text}


@node("t/ask")
async def ask(step: StepContext) -> dict[str, Any]:
    return {"answer": await step.ask("which?", ["left", "right"])}


def chain(*kinds: str, **rest: Any) -> Workflow:
    names = "abcdef"[: len(kinds)]
    nodes = tuple(Node(name, kind) for name, kind in zip(names, kinds, strict=True))
    edges = tuple(Edge(source, target) for source, target in itertools.pairwise(names))
    return Workflow("chain", "test", nodes, edges, **rest)


async def go(flow: Workflow, inputs: dict[str, Any] | None = None, **options: Any) -> pflow.Result:
    return await pflow.run(flow, inputs, types=(act, ask), **options)


async def resume(run_id: str, **options: Any) -> pflow.Result:
    return await pflow.resume(run_id, types=(act, ask), **options)


def test_a_run_leaves_a_journal_and_views_that_only_its_user_can_read() -> None:
    result = asyncio.run(go(chain("t/act", "t/act")))
    assert result.success and result.path is not None
    folder = RunFolder(result.path)
    state = json.loads(folder.state.read_bytes())
    assert state["status"] == "completed" and state["nodes_completed"] == 2 and list(state["steps"]) == ["a#1", "b#1"]
    assert json.loads(folder.context.read_bytes()) == {"a": {"text": ""}, "b": {"text": ""}}
    assert json.loads(folder.metadata.read_bytes())["workflow"] == "chain"
    assert json.loads((folder.nodes / "a" / "output.json").read_bytes()) == {"text": ""}
    for path in result.path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_resume_repeats_nothing_that_completed_and_again_is_a_no_op() -> None:
    global BROKEN
    BROKEN = True
    failed = asyncio.run(go(chain("t/act", "t/act", "t/act")))
    assert failed.status == "failed" and failed.error is not None and failed.error.hint == "fix it"
    BROKEN = False
    done = asyncio.run(resume(failed.run_id))
    assert done.success and CALLS == ["a#1", "b#1", "b#1", "c#1"]
    assert done.path is not None
    before = (done.path / "trace.jsonl").read_bytes()
    again = asyncio.run(resume(failed.run_id[:-2]))
    assert again.success and again.outputs == done.outputs and len(CALLS) == 4
    assert (done.path / "trace.jsonl").read_bytes() == before


def test_views_that_a_crash_left_behind_are_repaired() -> None:
    first = asyncio.run(go(chain("t/act", "t/ask")))
    assert first.status == "paused" and first.path is not None
    for name in ("state.json", "context.json", "nodes/a/output.json"):
        (first.path / name).write_text("{")
    asyncio.run(resume(first.run_id))
    assert json.loads((first.path / "state.json").read_bytes())["waiting"][0]["question"] == "which?"
    assert json.loads((first.path / "nodes/a/output.json").read_bytes()) == {"text": ""}


def test_a_paused_run_takes_a_reply_from_its_inbox() -> None:
    paused = asyncio.run(go(chain("t/act", "t/ask", "t/act")))
    assert paused.status == "paused" and paused.waiting[0].choices == ("left", "right") and paused.path is not None
    inbox.post(paused.path, {"kind": "reply", "node": "b", "value": "left"})
    done = asyncio.run(resume(paused.run_id, on_doubt="retry"))
    assert done.success and done.outputs["b"] == {"answer": "left"} and CALLS == ["a#1", "c#1"]
    assert not inbox.pending(paused.path)


def test_a_live_run_hears_another_process_cancel_it() -> None:
    @node("t/forever")
    async def forever() -> None:
        await asyncio.Event().wait()

    async def main() -> pflow.Result:
        def started(session: Session) -> None:
            inbox.post(Path(session.story().path or ""), {"kind": "cancel", "why": "enough"})

        return await pflow.run(chain("t/forever", "t/act"), types=(forever, act), started=started)

    result = asyncio.run(main())
    assert result.status == "cancelled" and CALLS == []


def test_two_processes_never_drive_one_run() -> None:
    paused = asyncio.run(go(chain("t/ask")))
    assert paused.path is not None
    with Lease.acquire(paused.path, paused.run_id), pytest.raises(RunBusy):
        asyncio.run(resume(paused.run_id))


def test_a_fork_is_a_prefix_under_a_new_id() -> None:
    whole = asyncio.run(go(chain("t/act", "t/act", "t/act"), {"x": 1}))
    forked = app.fork(whole.run_id, "b")
    assert forked != whole.run_id
    CALLS.clear()
    done = asyncio.run(resume(forked))
    assert done.success and CALLS == ["b#1", "c#1"] and done.outputs == whole.outputs
    assert done.path is not None
    opened = next(iter(read(done.path / "trace.jsonl")))
    assert isinstance(opened, Opened) and opened.forked == f"{whole.run_id}@b" and opened.inputs == {"x": 1}
    with pytest.raises(UsageError, match="never came to"):
        app.fork(whole.run_id, "nowhere")


def test_the_width_is_pinned_when_a_run_is_opened() -> None:
    result = asyncio.run(go(chain("t/act"), jobs=7))
    assert result.path is not None
    opened = next(iter(read(result.path / "trace.jsonl")))
    assert isinstance(opened, Opened) and opened.width == 7


def test_inputs_are_checked_before_anything_runs() -> None:
    flow = chain(
        "t/act", inputs=(Input("n", "integer", required=True), Input("s", "string", default="x")), open_inputs=False
    )
    with pytest.raises(pflow.WorkflowError) as caught:
        asyncio.run(go(flow, {"m": 1}))
    assert [problem.message for problem in caught.value.problems] == [
        'the workflow has no input "m"', 'the input "n" is missing',
    ]  # fmt: skip
    with pytest.raises(pflow.WorkflowError, match="must be integer, not text"):
        asyncio.run(go(flow, {"n": "one"}))
    assert asyncio.run(go(flow, {"n": 1})).success


def test_an_unknown_type_and_everything_else_is_told_at_once() -> None:
    flow = Workflow(
        "bad",
        "test",
        (Node("a", "ecko", {"text": "{{b.text}}"}), Node("b", "echo", {"txt": "x"}), Node("b", "shell")),
        (Edge("a", "nowhere"), Edge("a", "b"), Edge("b", "a")),
    )
    with pytest.raises(pflow.WorkflowError) as caught:
        pflow.run_sync(flow)
    said = "\n".join(map(str, caught.value.problems))
    for part in (
        'unknown node type "ecko"',
        'did you mean "echo"',
        "two nodes",
        "nowhere",
        'no param "txt"',
        "cycle",
        '"command"',
    ):
        assert part in said


def test_the_sub_workflows_document_is_kept_as_it_was_first_seen(tmp_path: Path) -> None:
    inner = tmp_path / "inner.yaml"
    text = "flow: {name: inner}\nnodes:\n  - {id: i, type: echo, input: {text: WORD}}\nedges: []\n"
    inner.write_text(text.replace("WORD", "first"))
    calling = Node("s", "workflow", {"workflow_ref": "inner.yaml"})
    nodes, edges = (Node("q", "t/ask"), calling, Node("r", "t/ask")), (Edge("q", "s"), Edge("s", "r"))
    outer = Workflow("outer", "test", nodes, edges, file=str(tmp_path / "outer.x"))
    paused = asyncio.run(go(outer))
    assert paused.path is not None
    inbox.post(paused.path, {"kind": "reply", "node": "q", "value": "go"})
    paused = asyncio.run(resume(paused.run_id, on_doubt="retry"))
    assert paused.status == "paused" and paused.path is not None
    assert json.loads((paused.path / "nodes/s/nodes/i/output.json").read_bytes())["text"] == "first"
    inner.unlink()
    inbox.post(paused.path, {"kind": "reply", "node": "r", "value": "go"})
    done = asyncio.run(resume(paused.run_id, on_doubt="retry"))
    assert done.success and done.outputs["s"]["i"]["text"] == "first"


def test_attempts_and_delays_survive_in_the_result() -> None:
    @node("t/flaky")
    async def flaky(step: StepContext) -> None:
        if step.attempt < 3:
            raise NodeError("again")

    flow = Workflow("f", "test", (Node("a", "t/flaky", policy=Policy(Retry(3))),))
    assert asyncio.run(pflow.run(flow, types=(flaky,))).visits["a#1"].attempts == 3


def test_harness_events_are_nested_on_one_hub() -> None:
    seen: list[pflow.Envelope] = []

    async def answer(given: Any, ctx: pflow.AgentContext) -> str:
        ctx.hub.emit("agent:text", text="hm")
        return f"{given}!"

    async def main() -> None:
        async with pflow.Harness("release", seen.append) as harness:
            async with harness.phase("Prepare"), harness.task("fetch"):
                assert await harness.agent(pflow.AgentDefinition("helper", answer), "hi") == "hi!"
            with pytest.raises(ValueError, match="no"):
                async with harness.phase("Check"):
                    raise ValueError("no")
            assert (await harness.run(chain("echo"), keep=False)).success

    asyncio.run(main())
    assert [event.event.type for event in seen] == [
        "phase:start", "task:start", "agent:start", "agent:text", "agent:complete", "task:complete", "phase:complete",
        "phase:start", "phase:failed", "phase:start", "task:start", "task:complete", "phase:complete",
    ]  # fmt: skip
    text = seen[3]
    assert (text.context.phase, text.context.task, text.context.agent) == ("Prepare", "fetch", "helper")
    assert seen[-1].context.phase == "Run Flow" and seen[-2].context.task == "node:a"
    assert set(text.to_dict()) == {"id", "timestamp", "context", "event"}
    assert len({event.id for event in seen}) == len(seen)


def test_local_node_types_are_found_beside_the_workflow(tmp_path: Path) -> None:
    folder = tmp_path / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(
        "from pflow import node\n@node('mine/double')\ndef double(n: int) -> dict:\n    return {'n': n * 2}\n"
    )
    flow = Workflow(
        "w", "test", (Node("a", "Mine/Double", {"n": "21"}, policy=Policy(timeout=600.0)),), file=str(tmp_path / "w.x")
    )
    assert pflow.run_sync(flow).outputs["a"] == {"n": 42}
    (folder / "bad.py").write_text("import nowhere_at_all\n")
    with pytest.raises(pflow.WorkflowError, match=r"bad.py:1.*nowhere_at_all"):
        pflow.run_sync(flow)


def test_public_names_exist_and_importing_pflow_is_light() -> None:
    import subprocess
    import sys

    for name in pflow.__all__:
        assert getattr(pflow, name) is not None
    code = "import sys, pflow; print([m for m in ('asyncio', 'msgspec', 'yaml', 'rich') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"


@node("t/label")
async def label(step: StepContext) -> dict[str, Any]:
    step.shared["document:notes.txt"] = "mine"
    step.shared["store:x"] = "mine too"
    return {}


def test_no_key_that_a_node_shares_means_anything_to_the_engine() -> None:
    """Whatever a user calls a value, resuming and forking go on as if it were called anything else."""
    flow = Workflow("keys", "test", (Node("a", "t/label"), Node("b", "t/act")), (Edge("a", "b"),))
    done = asyncio.run(pflow.run(flow, types=(label, act)))
    taken = take(done.run_id, {})
    assert taken.drift() == []
    taken.release()
    forked = app.fork(done.run_id, "b")
    again = asyncio.run(pflow.resume(forked, types=(label, act)))
    assert again.status == "completed"


@pytest.mark.parametrize("at", ["b", "c"])
def test_a_fork_of_a_run_that_failed_and_went_on_goes_on_itself(at: str) -> None:
    global BROKEN
    BROKEN = True
    failed = asyncio.run(go(chain("t/act", "t/act", "t/act", "t/act")))
    assert failed.status == "failed"
    BROKEN = False
    assert asyncio.run(resume(failed.run_id)).success
    assert asyncio.run(resume(app.fork(failed.run_id, at))).success


def test_what_a_run_was_at_is_told_without_its_types() -> None:
    paused = asyncio.run(go(chain("t/act", "t/ask", "t/act")))
    assert paused.status == "paused"
    view = state(paused.run_id)  # nobody says where t/act is
    assert (view["nodes_completed"], view["nodes_total"]) == (1, 3)
    assert view["steps"]["b#1"]["status"] == "waiting"

"""Graphs that really run: contexts, live inputs, pulls, waits, stores, and what a kill leaves behind."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pflow.errors import NodeError, WorkflowError
from pflow.model.conversation import Conversation
from pflow.model.records import Asked, Ended
from pflow.nodes.registry import Registry
from pflow.nodes.type import describe_type, node
from pflow.planning.build import build
from tests.kernel.driving import Driven
from tests.reactive.chats import bot, driven, flow, log_of

LOOP = (
    "start.context > userInput.context",
    "userInput.context > bot.context",
    "userInput > bot",
    "bot.context > portal_in.context",
    "portal_out.context > userInput.context",
)
PORTALS = {"portal_in": "portalInput", "portal_out": "portalOutput"}


def chat_loop() -> Any:
    return flow(*LOOP, nodes=PORTALS, portal_in={"id": "main"}, portal_out={"id": "main"},
                start={"systemInstructions": "Be brief."})  # fmt: skip


def texts(context: Any) -> list[str]:
    assert isinstance(context, Conversation)
    return [message.content for message in context.message_history]


def test_a_chat_loop_through_portals_keeps_its_history() -> None:
    run = driven(chat_loop(), bot, lines=["hi", "again"])
    assert run.status == "paused"
    context = run.outputs["bot"]["context"]
    assert texts(context) == ["hi", "hi, 0 messages before", "again", "again, 2 messages before"]
    assert context.system_instructions == "Be brief." and context.context_type == "main"
    assert list(run.ended) == ["start#1", "userInput#1", "bot#1", "userInput#2", "bot#2"], "portals are no visits"


def test_killed_at_any_record_it_resumes_to_the_same_conversation() -> None:
    lines = ["one", "two", "three"]
    whole = driven(chat_loop(), bot, lines=lines)
    expected = texts(whole.outputs["bot"]["context"])
    records = whole.log.records
    for count in range(1, len(records) + 1):
        kept = records[:count]
        answered = sum(type(record).__name__ == "Replied" for record in kept)
        run = driven(chat_loop(), bot, lines=lines[answered:], records=kept)
        run = run if run.status == "paused" else driven(chat_loop(), bot, records=run.log.records)
        ends = [record.visit for record in run.log.records if isinstance(record, Ended)]
        doubt = run.run.people.doubts
        assert len(ends) == len(set(ends)), "a finished visit was executed again"
        if not doubt:  # a stranger's node that was cut off is asked about
            assert texts(run.outputs["bot"]["context"]) == expected, count


def test_a_context_is_written_as_what_it_adds() -> None:
    import msgspec

    from pflow.model.conversation import Threads

    run = driven(chat_loop(), bot, lines=[f"line {i} {'x' * 100}" for i in range(50)])
    encode = msgspec.json.Encoder(enc_hook=(threads := Threads()).encode).encode
    sizes = []
    for record in run.log.records:
        sizes.append(len(encode(record)))
        threads.written()
    turns = [size for size, record in zip(sizes, run.log.records, strict=True) if isinstance(record, Ended)]
    assert max(turns[-6:]) < 1.2 * max(turns[:6])


def test_changes_of_contexts_are_announced_for_main_and_isolated_alike() -> None:
    graph = flow("start.context > bot.context", "say > bot", "bot > second", "other.context > second.context",
                 nodes={"say": "manualInput", "other": "newContext", "second": "bot"},
                 say={"message": "hi"}, other={"provider": "p", "model": "m"})  # fmt: skip
    run = driven(graph, bot)
    updates = [(data["context_type"], data["messages"]) for data in log_of(run, "context:update")]
    assert run.status == "completed"
    assert updates == [("main", 0), ("main", 2), ("isolated", 0), ("isolated", 2)]


def test_without_a_context_edge_a_node_gets_the_main_context_and_with_one_none_until_it_pulls() -> None:
    seen: dict[str, Any] = {}

    @node("look")
    async def look(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        seen[flow.node_id] = (context and context.context_type, inputs.has("context"))
        return {"data": 1, "status": "success"}

    graph = flow("start.context > say.context", "say > a", "say > b", "fresh.context > b.context",
                 nodes={"a": "look", "b": "look", "fresh": "newContext", "say": "manualInput"},
                 say={"message": "x"})  # fmt: skip
    driven(graph, look)
    assert seen == {"a": ("main", False), "b": (None, True)}


def test_main_contexts_follow_the_session_and_isolated_ones_keep_their_own() -> None:
    models: list[tuple[str, str]] = []

    @node("switch")
    async def switch(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        models.append((context.context_type, context.model))
        flow.store.set_session(provider="acme", model="new")
        return {"context": context, "status": "success"}

    @node("note")
    async def note(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        models.append((context.context_type, context.model))
        return {"status": "success"}

    graph = flow("start.context > switch.context", "switch.context > note.context")
    driven(graph, switch, note)
    assert models == [("main", ""), ("main", "new")]
    models.clear()
    isolated = flow("start.context > other.context", "other.context > switch.context", "switch.context > note.context",
                    nodes={"other": "newContext"}, other={"model": "own"})  # fmt: skip
    driven(isolated, switch, note)
    assert models == [("isolated", "own"), ("isolated", "own")]


def test_inputs_are_live_while_a_node_runs() -> None:
    arrived: list[Any] = []

    @node("slow")
    async def slow(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        before = data_in
        while flow.store.get("pushed") is None:
            await asyncio.sleep(0)
        for _ in range(5):
            await asyncio.sleep(0)
        arrived.append((before, await inputs.pull("data")))
        return {"status": "success"}

    @node("push")
    async def push(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        flow.store.set("pushed", True)
        return {"data": "late", "status": "success"}

    graph = flow("start.context > slow.context", "start.context > push.context", "push > slow")
    run = driven(graph, slow, push)
    assert arrived == [(None, "late")] and list(run.ended).count("slow#1") == 1 and "slow#2" not in run.ended
    assert log_of(run, "flow:feed")[0]["keys"] == ["data"]


def test_an_ambiguous_pull_gets_the_specified_error() -> None:
    found: list[NodeError] = []

    @node("eager")
    async def eager(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        assert not inputs.has("x")
        with pytest.raises(NodeError) as caught:
            await inputs.pull("x")
        found.append(caught.value)
        return {"status": "success"}

    graph = flow("asker.data > end", "start.context > asker.context", "eager > asker", "say > eager.x",
                 "also > eager.x",
                 nodes={"say": "manualInput", "also": "manualInput", "asker": "pulls", "end": "echo"})  # fmt: skip

    @node("pulls")
    async def pulls(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        await inputs.pull("data")
        return {"status": "success"}

    run = driven(graph, eager, pulls)
    assert run.status == "completed" and "2 edges" in found[0].message


def test_two_nodes_that_pull_each_other_end_with_the_ring() -> None:
    @node("puller")
    async def puller(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        return {"data": await inputs.pull("data"), "status": "success"}

    graph = flow("start.context > a.context", "b > a", "a > b", nodes={"a": "puller", "b": "puller"})
    run = driven(graph, puller)
    assert run.status == "failed"
    failure = run.run.memory.finished.failure if run.run.memory.finished else None
    assert failure is not None and failure.kind == "deadlock" and " → " in failure.message


def test_a_node_that_never_returns_is_ended_by_cancel() -> None:
    @node("stuck")
    async def stuck(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        started.set()
        await asyncio.Event().wait()

    async def go() -> str:
        task = asyncio.ensure_future(run.run.drive())
        await started.wait()
        run.run.cancel("enough")
        await task
        return run.status

    started = asyncio.Event()
    run = Driven(flow("start.context > stuck.context"), [stuck])
    assert asyncio.run(go()) == "cancelled"


def test_a_graph_that_spins_is_stopped() -> None:
    graph = flow("start.context > a.context", "a.context > b.context", "b.context > a.context",
                 nodes={"a": "pass", "b": "pass"})  # fmt: skip

    @node("pass")
    async def passing(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        return {"context": context, "status": "success"}

    # Two edges lead to a.context, so it is pushed to; nothing waits for anybody.
    run = driven(graph, passing)
    assert run.status == "failed" and run.run.memory.finished is not None
    failure = run.run.memory.finished.failure
    assert failure is not None and failure.kind == "spinning" and "a → b → a" in failure.message


def test_an_error_status_ends_its_branch_only() -> None:
    @node("bad")
    async def bad(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        return {"context": context, "status": "error", "error": "no luck"}

    graph = flow("start.context > bad.context", "bad.context > never.context", "start.context > good.context",
                 nodes={"never": "manualInput", "good": "manualInput"},
                 never={"message": "x"}, good={"message": "y"})  # fmt: skip
    run = driven(graph, bad)
    assert run.status == "failed" and run.outputs["good"]["data"] == "y" and "never" not in run.outputs
    assert run.ended["bad#1"].failure is not None and run.ended["bad#1"].failure.message == "no luck"


def test_nodes_of_other_styles_work_in_graphs() -> None:
    graph = flow("start.context > say.context", "say > shout.text", "say.context > shout.context", "shout > repeat",
                 nodes={"say": "manualInput", "shout": "echo", "repeat": "echo"},
                 say={"message": "hi"}, shout={"uppercase": True}, repeat={"count": 2})  # fmt: skip
    run = driven(graph)
    assert run.status == "completed", run.ended
    assert run.outputs["shout"]["data"] == "HI" and run.outputs["repeat"]["data"].count("HI") == 2
    assert isinstance(run.outputs["shout"]["context"], Conversation)


def test_a_plain_node_pulls_what_it_needs() -> None:
    graph = flow("start.context > shout.context", "say > shout", nodes={"say": "manualInput", "shout": "echo"},
                 say={"message": "pulled"})  # fmt: skip
    assert driven(graph).outputs["shout"]["data"] == "pulled"


def test_a_pull_that_was_answered_is_not_asked_again() -> None:
    calls: list[str] = []

    @node("source")
    async def source(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        calls.append("source")
        return {"data": len(calls), "status": "success"}

    @node("waits")
    async def waits(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        value = await inputs.pull("data")
        said = await flow.wait_for_user_input()
        return {"data": f"{value} {said}", "status": "success"}

    graph = flow("start.context > waits.context", "source > waits")
    quiet = [describe_type(kind, trusted=True) for kind in (source, waits)]
    for kind in quiet:
        kind.standing = "accepted"
    first = driven(graph, *quiet)
    assert first.status == "paused" and calls == ["source"]
    second = Driven(graph, quiet, records=first.log.records, on_doubt="retry", answer=_says("yes")).drive()
    assert second.status == "completed" and second.outputs["waits"]["data"] == "1 yes" and calls == ["source"]


def test_a_visit_that_is_run_again_hears_what_it_was_answered_though_something_newer_was_pushed_since() -> None:
    heard = asyncio.Event()
    calls: list[str] = []

    @node("source")
    async def source(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        calls.append("source")
        return {"data": len(calls), "status": "success"}

    @node("waits")
    async def waits(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        value = await inputs.pull("data")
        heard.set()
        said = await flow.wait_for_user_input()
        return {"data": f"{value} {said}", "status": "success"}

    @node("later")
    async def later(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        await heard.wait()
        return {"data": "go", "status": "success"}

    graph = flow("start.context > waits.context", "start.context > later.context", "later > source", "source > waits")
    first = driven(graph, source, waits, later)
    assert first.status == "paused" and list(first.ended) == ["start#1", "source#1", "later#1", "source#2"]
    again = first.again(on_doubt="retry", answer=_says("yes")).drive()
    assert again.outputs["waits"]["data"] == "1 yes"


def _says(text: str) -> Any:
    async def answer(asked: Asked) -> str:
        return text

    return answer


# ── plans ──


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (flow("start > a", nodes={"start": "manualInput", "a": "echo"}), "no entry"),
        (flow("start.context > two.context", nodes={"two": "defaultContextStart"}), "two"),
        (flow("start.context > userInput.nowhere"), 'no input "nowhere"'),
        (flow("start.answer > userInput.context"), 'no output "answer"'),
        (flow("start.context > ask.context", "ask.plan-context > userInput.context", "ask.pla-context > userInput.data",
              nodes={"ask": "intentRouter"}, ask={"routes": {"plan": "wants a plan"}}), 'no output "pla-context"'),
        (flow("start.context > semanticTools.context"), 'unknown node type "semanticTools"'),
    ],
    ids=["no entry", "two entries", "input", "output", "intent", "type"],
)  # fmt: skip
def test_what_is_wrong_with_a_graph_is_told_before_it_runs(graph: Any, message: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        build(graph, Registry())
    assert any(message in problem.message for problem in caught.value.problems), caught.value.problems


def test_many_parallel_pushes_lose_no_value_and_make_no_second_visit() -> None:
    got: list[int] = []

    @node("one")
    async def one(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        return {"data": config["n"], "status": "success"}

    @node("all")
    async def everything(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
        while not all(inputs.has(f"p{i}") for i in range(0, size, 97)) or not inputs.has(f"p{size - 1}"):
            await asyncio.sleep(0)
        values = flow.step.stream().values()
        while len(values) < size:
            await asyncio.sleep(0)
            values = flow.step.stream().values()
        got.extend(values[f"p{i}"] for i in range(size))
        return {"status": "success"}

    size = 1000
    edges = [edge for i in range(size) for edge in (f"start.context > n{i}.context", f"n{i} > all.p{i}")]
    nodes = {f"n{i}": "one" for i in range(size)}
    configs: dict[str, dict[str, Any]] = {f"n{i}": {"n": i} for i in range(size)}
    run = driven(flow(*edges, nodes=nodes, **configs), one, everything)
    assert run.status == "completed" and got == list(range(size)) and "all#2" not in run.ended

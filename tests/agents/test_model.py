"""Agents that are models, with a scripted model that answers."""

from __future__ import annotations

import json
from typing import Any

from pflow import settings
from pflow.agents.definition import Definition
from pflow.agents.model import converse
from pflow.agents.question import Question
from pflow.agents.tools import Toolbox, kinds_for
from pflow.llm.interface import Reply, Request
from pflow.model.workflow import Node
from pflow.nodes import StepContext, node
from pflow.nodes.agent import Voice
from pflow.nodes.registry import Registry
from pflow.nodes.schema import schema_of
from pflow.nodes.type import describe_type
from tests.agents.world import NODE, Asking, World, asking, failure, flow, outputs


def script(world: World, *answers: Any) -> str:
    return world.script(json.dumps({"answers": answers, "calls": "calls.jsonl"}))


def calls(world: World) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (world.folder / "calls.jsonl").read_text().splitlines()]


def test_instructions_and_mode_are_the_system_and_the_prompt_is_the_users(world: World) -> None:
    world.agent("judge", f"model: {script(world, 'verdict: yes')}", body="You judge.")
    made = outputs(agent="judge", mode="EVALUATE", prompt="Is it good?", outputs=["verdict"], inputs={"file": "a.py"})
    assert made["verdict"] == "yes" and made["text"] == "verdict: yes"
    system, user = calls(world)[0]["messages"]
    assert system["role"] == "system"
    assert system["content"].startswith("You judge.\n\nMode: EVALUATE. Judge")
    assert system["content"].endswith("End your answer with a JSON object that has these keys: verdict.")
    assert user == {"role": "user", "content": 'Is it good?\n\nGiven:\n{\n  "file": "a.py"\n}'}


def test_a_mode_in_free_words_is_told_as_it_is(world: World) -> None:
    world.agent("judge", f"model: {script(world, 'fine')}", body="You judge.")
    outputs(agent="judge", mode="Score it from 0 to 100", prompt="?")
    assert calls(world)[0]["messages"][0]["content"] == "You judge.\n\nScore it from 0 to 100"


def test_the_answer_is_streamed_and_what_it_used_is_counted(world: World) -> None:
    used = {"input_tokens": 9, "output_tokens": 4, "cost_usd": 0.002}
    model = script(world, {"pieces": ["It is ", "fine."], "usage": used})
    run = asking(prompt="How is it?", model=model)
    run.drive()
    assert [data["text"] for data in run.said("agent:text")] == ["It is ", "fine."]
    assert run.outcome.outputs["text"] == "It is fine."
    assert run.outcome.outputs["usage"]["cost_usd"] == 0.002 and run.outcome.usage["output_tokens"] == 4
    kinds = [kind for kind in run.kinds if kind.startswith("agent:")]
    assert kinds == ["agent:start", "agent:text", "agent:text", "agent:complete"]
    assert run.said("agent:complete")[0]["result"] == "It is fine."
    assert {event.context.agent for event in run.events if event.event.type.startswith("agent:")} == {NODE}


def test_a_prompt_without_an_agent_asks_the_default_model(world: World) -> None:
    settings.save(settings.Settings(model=settings.ModelSettings(script(world, "hello"))))
    assert outputs(prompt="Say hello")["text"] == "hello"


def test_without_any_model_it_says_what_to_do() -> None:
    failed = failure(prompt="Say hello", model="no-such-model-anywhere")
    assert failed.message and failed.hint


def test_the_nodes_model_counts_before_the_agents(world: World) -> None:
    world.agent("judge", "model: no-such-model-anywhere")
    assert outputs(agent="judge", prompt="?", model=script(world, "fine"))["text"] == "fine"


def test_messages_are_handed_over_as_they_are(world: World) -> None:
    messages = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": 3}]
    outputs(messages=messages, model=script(world, "fine"))
    assert [(one["role"], one["content"]) for one in calls(world)[0]["messages"]] == [
        ("user", "1"), ("assistant", "2"), ("user", "3"),
    ]  # fmt: skip


def test_an_empty_answer_is_none(world: World) -> None:
    failed = failure(prompt="?", model=script(world, {"text": " "}))
    assert failed.kind == "agent" and "answered nothing" in failed.message


def test_a_failure_of_the_model_keeps_its_kind(world: World) -> None:
    assert failure(prompt="?", model=script(world, {"error": "refused"})).kind == "refused"


def test_a_model_that_takes_too_long(world: World) -> None:
    """The tool never returns, so the time runs out whatever the machine."""
    world.agent("slow", f"tools: [shell]\nmodel: {script(world, call('shell', command='sleep 1000', timeout=None))}")
    failed = failure(agent="slow", prompt="?", timeout=0.3)
    assert failed.kind == "timeout" and failed.message == 'agent "slow" timed out after 0.3 s'


# ── tools ──


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def test_a_model_uses_tools_until_it_answers(world: World) -> None:
    (world.folder / "a.txt").write_text("the content")
    model = script(
        world, call("read-file", file_path="a.txt"), call("shell", command="echo hi"), {"text": "It says the content."}
    )
    world.agent("reader", f"tools: [read-file, shell]\nmodel: {model}")
    run = asking(agent="reader", prompt="What is in a.txt?")
    run.drive()
    assert run.outcome.outputs["text"] == "It says the content."
    first, second, third = calls(world)
    assert [tool["name"] for tool in first["tools"]] == ["read-file", "shell"]
    assert first["tools"][0]["parameters"]["required"] == ["file_path"]
    assert second["messages"][-1]["tool_call_id"] == second["messages"][-2]["tool_calls"][0]["id"]
    assert json.loads(second["messages"][-1]["content"])["content"] == "the content"
    assert json.loads(third["messages"][-1]["content"])["stdout"] == "hi"
    assert [data["tool"] for data in run.said("agent:tool:start")] == ["read-file", "shell"]
    assert run.said("agent:tool:start")[0]["arguments"] == {"file_path": "a.txt"}
    assert [data["agent"] for data in run.said("agent:tool:complete")] == ["reader", "reader"]
    assert run.outcome.usage["model_calls"] == 3


@node("t/burst")
def burst() -> None:
    """Fail in a way that nobody foresaw."""
    raise ZeroDivisionError("by zero")


def test_what_goes_wrong_in_a_tool_is_told_to_the_model(world: World) -> None:
    model = script(
        world,
        call("read-file", file_path="gone.txt"),
        call("read-file", path="x"),
        call("t_burst"),
        call("launch-rocket"),
        {"text": "I give up."},
    )
    world.agent("reader", f"tools: [read-file, t/burst]\nmodel: {model}")
    run = Asking(flow(Node(NODE, "agent", {"agent": "reader", "prompt": "?"})), [burst])
    run.drive()
    assert run.outputs[NODE]["text"] == "I give up."
    told = [one["messages"][-1]["content"] for one in calls(world)[1:]]
    assert "gone.txt" in told[0] and "path" in told[1] and "by zero" in told[2] and "read-file" in told[3]
    assert all(text.startswith("Error: ") for text in told)
    assert all(data["error"] for data in run.said("agent:tool:complete"))


def test_a_large_result_is_cut(world: World) -> None:
    (world.folder / "big").write_text("x" * 200_000)
    world.agent("reader", f"tools: [read-file]\nmodel: {script(world, call('read-file', file_path='big'), 'ok')}")
    outputs(agent="reader", prompt="?")
    assert len(calls(world)[1]["messages"][-1]["content"]) < 51_000


def test_a_model_that_never_stops_calling_is_stopped(world: World) -> None:
    model = script(world, {**call("shell", command="echo x >> log"), "match": ""}, *[call("shell", command=":")] * 9)
    world.agent("eager", f"tools: [shell]\nmax_steps: 3\nmodel: {model}")
    failed = failure(agent="eager", prompt="?")
    assert failed.kind == "agent" and failed.message == 'agent "eager" still called tools after 3 steps'
    assert len(calls(world)) == 3


def test_a_tool_that_does_not_exist_is_refused_before_anything_is_asked(world: World) -> None:
    world.agent("reader", f"tools: [read-fil]\nmodel: {script(world, 'x')}")
    failed = failure(agent="reader", prompt="?")
    assert failed.kind == "validation" and 'did you mean "read-file"?' in failed.hint
    assert not (world.folder / "calls.jsonl").exists()
    world.agent("looper", f"tools: [control.foreach]\nmodel: {script(world, 'x')}")
    assert "cannot be a tool" in failure(agent="looper", prompt="?").message


def test_tools_of_another_program_are_translated_or_left_out(world: World) -> None:
    world.agent("hunter", f"tools: Read, Grep, Bash\nmodel: {script(world, 'none')}", where=".claude/agents")
    run = asking(agent="hunter", prompt="?")
    run.drive()
    assert [tool["name"] for tool in calls(world)[0]["tools"]] == ["read-file", "shell"]
    assert any('no tool "Grep"' in data["message"] for data in run.said("log"))


# ── models without tool calls ──


class Choosing:
    """A model that answers in JSON, and cannot call tools."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    async def __call__(self, request: Request, published: bool) -> Reply:
        assert not request.tools and not published
        self.requests.append(request)
        return Reply(self.answers.pop(0))


def choosing(model: Choosing) -> str:
    @node("t/choosing")
    async def one(step: StepContext) -> str:
        voice = Voice("c", lambda kind, data: step.emit(kind, **data))
        box = Toolbox(step, voice, kinds_for(step, Definition("c", tools=("shell",))))
        return await converse(step, model, Question("c", instructions="Be brief.", prompt="?"), box, False, 5)

    run = Asking(flow(Node(NODE, "t/choosing")), [one])
    run.drive()
    made: str = run.outputs[NODE]["result"]
    return made


def test_a_model_without_tool_calls_chooses_in_json() -> None:
    model = Choosing(
        '{"tool": "shell", "arguments": {"command": "echo hi"}}', '{"tool": "answer", "answer": "It says hi"}'
    )
    assert choosing(model) == "It says hi"
    first, second = model.requests
    assert first.schema is not None
    assert [one["properties"]["tool"]["const"] for one in first.schema["anyOf"]] == ["shell", "answer"]
    assert first.messages[0].content.startswith("Be brief.") and "- shell: " in first.messages[0].content
    assert "Result of shell" in second.messages[-1].content and '"stdout":"hi"' in second.messages[-1].content


def test_the_choice_is_constrained_to_the_arguments_of_each_tool() -> None:
    from pflow.documents.schema import check, problem

    model = Choosing('{"tool": "answer", "answer": "done"}')
    choosing(model)
    schema = check(model.requests[0].schema)
    for good in ({"tool": "shell", "arguments": {"command": "ls"}}, {"tool": "answer", "answer": "x"}):
        assert not problem(good, schema)
    for bad in ({"tool": "shell"}, {"tool": "shell", "arguments": {"comand": "ls"}}, {"tool": "other", "arguments": {}},
                {"tool": "answer", "arguments": {}}):  # fmt: skip
        assert problem(bad, schema)


def test_a_step_that_was_cut_off_is_asked_for_again() -> None:
    model = Choosing('{"tool": "shell", "arguments": {"command": "echo', '{"tool": "answer", "answer": "fine"}')
    assert choosing(model) == "fine" and "no whole JSON" in model.requests[1].messages[-1].content
    assert choosing(Choosing('{"verdict": true}')) == '{"verdict": true}'


def test_what_is_no_choice_is_the_answer() -> None:
    assert choosing(Choosing("Just words.")) == "Just words."
    assert choosing(Choosing('{"tool": "answer", "answer": {"a": 1}}')) == '{"a":1}'


# ── schemas ──


@node("t/typed")
def typed(text: str, count: int = 3, items: list[str] | None = None, as_: Any = None, **rest: Any) -> None:
    """Take this and that."""


def test_the_schema_of_a_type() -> None:
    assert schema_of(describe_type(typed)) == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer", "default": 3},
            "items": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "as": {},
        },
        "required": ["text"],
    }


def test_every_type_has_a_schema_that_its_examples_fit() -> None:
    from pflow.documents.schema import problem

    for kind in Registry().types():
        for example in kind.declared.examples:
            given = {kind.canonical(key).removesuffix("_"): value for key, value in example.items()}
            assert problem(given, schema_of(kind)) == "", kind.name


# ── Python ──


def python_agent(world: World, code: str) -> None:
    head = "import asyncio\nfrom pflow import AgentDefinition\n"
    world.write(".pflow/agents/mine.py", head + code + "\nagent = AgentDefinition('mine', execute)\n")


def test_an_agent_in_python_is_given_the_question_and_speaks(world: World) -> None:
    python_agent(
        world,
        "async def execute(given, ctx):\n"
        "    ctx.hub.emit('agent:text', text='hm')\n"
        "    return {'prompt': given['prompt'], 'mode': given['mode'], 'score': 0.5, 'run': ctx.run_id}",
    )
    run = asking(agent="mine", mode="REVIEW", prompt="Well?", outputs=["score", "prompt", "mode"])
    run.drive()
    made = run.outcome.outputs
    assert (made["score"], made["prompt"], made["mode"]) == (0.5, "Well?", "REVIEW")
    assert run.said("agent:text") == [{"taskId": f"node:{NODE}", "agent": "mine", "text": "hm"}]


def test_its_answer_ends_the_node_though_it_keeps_something_open(world: World) -> None:
    python_agent(
        world,
        "async def execute(given, ctx):\n"
        "    async def listen():\n"
        "        async for message in ctx.inbox: pass\n"
        "    execute.task = asyncio.ensure_future(listen())\n"
        "    return 'done'",
    )
    assert outputs(agent="mine", prompt="?")["text"] == "done"


def test_it_may_take_too_long_or_return_nothing(world: World) -> None:
    python_agent(world, "async def execute(given, ctx):\n    await asyncio.Event().wait()")
    assert failure(agent="mine", prompt="?", timeout=0.05).kind == "timeout"
    python_agent(world, "async def execute(given, ctx):\n    return ''")
    assert "returned nothing" in failure(agent="mine", prompt="?").message

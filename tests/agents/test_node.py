"""The node that asks: its question, its outputs, and what it tells about itself."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from pflow.agents.advice import suggestions
from pflow.errors import NodeError
from pflow.model.records import Began
from pflow.model.workflow import Edge, Input, Node, Policy, Retry
from pflow.nodes.registry import Registry
from tests.agents.world import NODE, VISIT, Asking, World, asking, failure, flow, outputs

ECHO = "json.dump({'asked': asked}, sys.stdout)"


def asked(**params: Any) -> dict[str, Any]:
    made: dict[str, Any] = outputs(agent="echo", outputs=["asked"], **params)["asked"]
    return made


def test_the_types_say_what_they_are() -> None:
    kind = Registry().get("agent")
    assert Registry().get("claude.agent").name == "agent"
    assert (kind.main_in, kind.main_out, kind.version) == ("prompt", "text", "1")
    assert kind.effect_for({}) == "impure" and kind.declared.volatile and kind.trusted
    tasks = Registry().get("agent.tasks")
    assert tasks.composite and tasks.main_out == "results"
    assert Registry().get("agent").canonical("promptFile") == "prompt_file"


def test_an_agent_that_is_asked_is_announced_in_the_journal(world: World) -> None:
    world.sh("x", "echo fine")
    run = asking(agent="x", prompt="?")
    run.drive()
    assert [record.visit for record in run.log.records if isinstance(record, Began)] == [VISIT]


# ── the question ──


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({}, "neither a prompt nor an agent"),
        ({"prompt": ""}, "neither a prompt nor an agent"),
        ({"prompt": "x", "messages": [{"role": "user", "content": "x"}]}, "prompt and messages exclude each other"),
        ({"prompt": "x", "prompt_file": "x.md"}, "prompt and prompt_file exclude each other"),
        ({"messages": ["x"]}, "messages[0] is no message: text"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0] is no message: role 'robot'"),
        ({"prompt": "x", "timeout": 0}, "timeout is 0"),
        ({"prompt_file": "../x.md"}, "leads out of"),
        ({"prompt_file": "/etc/passwd"}, "leads out of"),
        ({"prompt_file": " "}, "names no file"),
        ({"prompt_file": "gone.md"}, "cannot be read"),
        ({"prompt": "x", "agent": "nobody"}, 'there is no agent "nobody"'),
    ],
)
def test_bad_params(params: dict[str, Any], said: str) -> None:
    failed = failure(**params)
    assert said in failed.message and failed.kind == ("agent" if "nobody" in said else "validation")


def test_a_prompt_in_a_file_stands_beside_the_workflow_and_is_taken_as_it_is(world: World) -> None:
    world.python("echo", ECHO)
    world.write("flows/prompts/p.md", "Look at {this} and {{that}}.")
    node = Node(NODE, "agent", {"agent": "echo", "promptFile": "prompts/p.md", "outputs": ["asked"]})
    run = Asking(flow(node, file="flows/flow.yaml"))
    run.drive()
    assert run.outputs[NODE]["asked"]["prompt"] == "Look at {this} and {{that}}."


def test_a_link_does_not_lead_out_of_the_workflows_tree(world: World) -> None:
    world.write("secret.md", "x")
    world.write("flows/x.md", "x").with_name("link.md").symlink_to(world.folder / "secret.md")
    run = Asking(flow(Node(NODE, "agent", {"prompt_file": "link.md"}), file="flows/flow.yaml"))
    run.drive()
    assert run.outcome.failure is not None and "leads out of" in run.outcome.failure.message


def test_braces_that_are_no_variable_stay(world: World) -> None:
    world.python("echo", ECHO)
    run = asking("agent", None, {"name": "Ada"}, agent="echo", prompt='{name}: {"a": {}} {{x}}', outputs=["asked"])
    run.drive()
    assert run.outcome.outputs["asked"]["prompt"] == 'Ada: {"a": {}} {x}'


def test_messages_reach_a_program_too(world: World) -> None:
    world.python("echo", ECHO)
    made = asked(messages=[{"role": "user", "content": "hello"}])
    assert made["messages"] == [{"role": "user", "content": "hello"}] and made["prompt"] == "" and made["inputs"] == {}


def test_without_a_prompt_an_agent_is_asked_with_its_mode_and_the_context(world: World) -> None:
    world.python("echo", ECHO)
    world.sh("first", 'echo \'{"score": 7, "notes": ["a"]}\'')
    world.sh("second", "echo 'just words'")
    world.sh("third", "echo wrong >&2; exit 1")
    nodes = [
        Node(
            "one", "agent", {"agent": "first", "prompt": "?", "outputs": ["score", "notes"]}, outputs=("score", "notes")
        ),
        Node("two", "agent", {"agent": "second", "prompt": "?"}),
        Node("three", "agent", {"agent": "third", "prompt": "?"}, policy=Policy(tolerate=True)),
        Node(NODE, "agent", {"agent": "echo", "mode": "Decide", "inputs": {"own": 1}, "outputs": ["asked"]}),
    ]
    edges = tuple(Edge(a.id, b.id) for a, b in pairwise(nodes))
    inputs = (Input("key", secret=True), Input("goal", default="ship"))
    values = {"_session_id": "s", "goal": "ship", "key": "hidden"}
    run = Asking(flow(*nodes, edges=edges, inputs=inputs, scheduler="topological"), inputs=values)
    run.drive()
    got = run.outputs[NODE]["asked"]
    assert (got["prompt"], got["mode"]) == ("", "Decide")
    failed = got["inputs"].pop("three")
    assert failed["failed"] is True and "wrong" in failed["error"]["message"]
    assert got["inputs"] == {
        "goal": "ship", "score": 7, "notes": ["a"], "two": {"text": "just words"}, "own": 1,
    }  # fmt: skip


def test_in_a_dialect_that_names_outputs_by_their_node_so_does_the_context(world: World) -> None:
    world.python("echo", ECHO)
    nodes = (
        Node("a", "echo", {"text": "hello"}),
        Node(NODE, "agent", {"agent": "echo", "outputs": ["asked"]}),
    )
    run = Asking(flow(*nodes, edges=(Edge("a", NODE),), flat=False, syntax="mustache"), inputs={"goal": 1})
    run.drive()
    given = run.outputs[NODE]["asked"]["inputs"]
    assert given["goal"] == 1 and given["a"]["text"] == "hello"


# ── the answer ──


def test_an_output_that_is_nowhere_is_an_empty_text_and_a_warning(world: World) -> None:
    world.sh("x", "echo '{\"a\": 1}'")
    run = asking(agent="x", prompt="?", outputs=["a", "b"])
    run.drive()
    assert run.outcome.outputs["a"] == 1 and run.outcome.outputs["b"] == ""
    warning = run.said("log")[0]
    assert warning["level"] == "warn" and warning["missing"] == ["b"]


def test_strict_outputs_make_it_a_failure_that_shows_the_answer_and_may_be_tried_again(world: World) -> None:
    world.sh("x", "echo x >> log; if [ $(wc -l < log) = 2 ]; then echo 'a: 1'; echo 'b: 2'; else echo 'a: only'; fi")
    params: dict[str, Any] = {"agent": "x", "prompt": "?", "outputs": ["a", "b"], "strict_outputs": True}
    failed = failure(**params)
    assert failed.kind == "agent" and failed.details["answer"] == "a: only"
    assert failed.message == 'the answer of agent "x" has no "b". It says: a: only'
    (world.folder / "log").unlink()
    run = asking("agent", Policy(Retry(2)), **params)
    run.drive()
    assert run.outcome.outputs["b"] == 2 and run.outcome.attempts == 2


def test_outputs_may_be_called_as_our_own(world: World) -> None:
    world.sh("x", "echo 'text: mine'; echo 'usage: none'")
    made = outputs(agent="x", prompt="?", outputs=["text", "usage"])
    assert (made["text"], made["usage"]) == ("mine", "none")


# ── what to do about it ──


def suggested(world: World, script: str, front: str = "", **params: Any) -> str:
    world.sh("x", script, front)
    failed = failure(agent="x", prompt="?", **params)
    return "\n".join(failed.suggestions)


def test_suggestions_fit_the_failure(world: World) -> None:
    assert "try it by hand" in suggested(world, "exit 1") and "agents/x.sh" in suggested(world, "exit 1")
    assert "stdout" in suggested(world, ":")
    assert 'End your answer with {"b": …}' in suggested(world, "echo a: 1", outputs=["a", "b"], strict_outputs=True)
    assert "timeout: 0.2 (it is 0.1 now)" in suggested(world, "exec sleep 1000", timeout=0.1)
    assert "shell output_limit 20000000" in suggested(world, "head -c 11000000 /dev/zero")
    assert "limits.cpu_seconds" in "\n".join(suggestions(NodeError("", details={"reason": "cpu"}), "n"))


def test_suggestions_for_an_unknown_agent_name_the_nearest_and_a_place(world: World) -> None:
    world.agent("reviewer")
    made = failure(agent="reviwer", prompt="?").suggestions
    assert made[0].endswith(': write agent: "reviewer"') and str(world.agents) in made[1]

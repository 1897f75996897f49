"""Definitions of agents, and where they are found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pflow.agents.definition import Definition, Limits, Misdescribed, load
from pflow.agents.find import find, register
from pflow.errors import NodeError
from pflow.nodes import AgentContext, AgentDefinition
from tests.agents.world import World


def test_a_definition_says_who_answers_and_how(world: World) -> None:
    path = world.agent(
        "test-coverage",
        """\
        description: Judges whether tests are complete
        model: gpt-x
        tools: [read-file, shell]
        timeout: 300
        max_steps: 5
        """,
        body="You are …\n\nTwo paragraphs.",
    )
    assert load(path) == Definition(
        name="test-coverage",
        description="Judges whether tests are complete",
        model="gpt-x",
        tools=("read-file", "shell"),
        timeout=300.0,
        max_steps=5,
        instructions="You are …\n\nTwo paragraphs.",
        file=str(path),
    )


def test_a_command_makes_it_a_command(world: World) -> None:
    path = world.agent(
        "c", "command: python 'my agent.py' -v\nlimits: {memory_mb: 512, cpu_seconds: 9}\nenv: [KEY, MODE=fast]"
    )
    made = load(path)
    assert (made.backend, made.command) == ("command", ("python", "my agent.py", "-v"))
    assert made.limits == Limits(512, 9) and made.env == {"KEY": None, "MODE": "fast"}


def test_a_file_without_front_matter_is_an_agent_too(world: World) -> None:
    made = load(world.write(".pflow/agents/plain.md", "Just be kind."))
    assert (made.name, made.backend, made.instructions) == ("plain", "llm", "Just be kind.")


def test_agents_of_another_tool_are_read(world: World) -> None:
    path = world.write(
        ".claude/agents/bug-hunter.md",
        "---\nname: bug-hunter\ndescription: Use this. Example: x\ntools: Read, Grep, Bash\nmodel: inherit\n"
        "color: red\nhooks: {a: [1]}\n---\nYou hunt.",
    )
    made = load(path)
    assert made.tools == ("Read", "Grep", "Bash") and made.model == "" and made.foreign


@pytest.mark.parametrize(
    ("front", "line", "said"),
    [
        ("comand: [x]", 3, 'unknown key "comand"'),
        ("backend: docker", 3, '"backend" cannot be "docker"'),
        ("backend: command", 3, "there is no command"),
        ("backend: llm\ncommand: [x]", 4, "backend is llm"),
        ("command: sh -c 'x", 3, "No closing quotation"),
        ("timeout: soon", 3, '"timeout" must be a number'),
        ("timeout: -1", 3, '"timeout" must be above 0'),
        ("timeout: true", 3, '"timeout" must be a number'),
        ("limits: 5", 3, '"limits" must be a mapping'),
        ("limits: {memory: 5}", 3, '"limits" has no key "memory"'),
        ("limits: {memory_mb: 0}", 3, '"memory_mb" must be at least 1'),
        ("limits: {memory_mb: x}", 3, '"memory_mb" must be a whole number'),
        ("tools: {a: b}", 3, '"tools" must be a list'),
        ("tools: [a, [b]]", 3, "tools[1] must be text"),
        ("model: [a]", 3, '"model" must be text'),
        ("env: ['a b']", 3, "cannot be the name of a variable"),
        ("max_steps: many", 3, '"max_steps" must be a whole number'),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(world: World, front: str, line: int, said: str) -> None:
    path = world.agent("bad", front)
    with pytest.raises(NodeError) as raised:
        load(path)
    assert raised.value.message.startswith(f"{path}:{line}:") and said in raised.value.message
    assert raised.value.kind == "validation"


def test_everything_wrong_is_told_at_once(world: World) -> None:
    path = world.agent("bad", "comand: [x]\nbackend: docker\ntimeout: soon\nlimits: {memory: 5}\nenv: ['a b']")
    with pytest.raises(Misdescribed) as raised:
        load(path)
    assert [(problem.place.line, problem.message) for problem in raised.value.problems] == [
        (3, 'unknown key "comand"'),
        (4, '"backend" cannot be "docker"'),
        (5, '"timeout" must be a number, not text'),
        (6, '"limits" has no key "memory"'),
        (7, '"a b" cannot be the name of a variable'),
    ]
    assert 'did you mean "command"?' in raised.value.problems[0].hint
    assert all(str(problem) in raised.value.message for problem in raised.value.problems)


def test_a_key_unlike_ours_may_be_for_another_tool(world: World) -> None:
    assert load(world.agent("x", "colour: red\nversion: 1.0")).name == "x"


def test_a_number_may_stand_for_its_text(world: World) -> None:
    made = load(world.agent("x", "command: [sleep, 5]\nenv: {PORT: 8080}\nmodel: 4"))
    assert made.command == ("sleep", "5") and made.env == {"PORT": "8080"} and made.model == "4"


def test_a_file_is_read_again_only_when_it_changed(world: World) -> None:
    path = world.agent("x", body="Be kind.")
    assert load(path) is load(path)
    world.agent("x", body="Be very kind.")
    assert load(path).instructions == "Be very kind."
    path.unlink()
    with pytest.raises(NodeError, match="cannot be read"):
        load(path)


def test_only_a_file_with_front_matter_costs_a_yaml_parser(world: World) -> None:
    world.write(".pflow/agents/plain.md", "Just be kind.")
    code = """import sys; from pathlib import Path; from pflow.agents.find import find
assert find("plain", Path("."), None, None).name == "plain" and "yaml" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=world.folder)


def test_a_file_that_is_no_text(world: World) -> None:
    path = world.agent("x")
    path.write_bytes(b"---\nname: \xff\n---\n")
    with pytest.raises(NodeError, match="UTF-8"):
        load(path)


# ── finding ──


def found(name: str, world: World, workflow_folder: Path | None = None, home: Path | None = None) -> Any:
    return find(name, world.folder, workflow_folder, home)


@pytest.mark.parametrize("name", ["test-coverage", "test_coverage", "Test-Coverage", "testcoverage"])
def test_names_match_without_case_and_separators(world: World, name: str) -> None:
    world.agent("test-coverage")
    assert found(name, world).name == "test-coverage"


def test_the_nearest_definition_counts(world: World, tmp_path: Path) -> None:
    """The workflow's folder and above, then the current folder and above, then home."""
    flows, home = tmp_path / "flows" / "deep", tmp_path / "home" / ".pflow"
    flows.mkdir(parents=True)
    places = {
        "6": home.parent / ".claude" / "agents",
        "5": home / "agents",
        "4": world.folder / ".claude" / "agents",
        "3": world.folder / ".pflow" / "agents",
        "2": tmp_path / "flows" / ".pflow" / "agents",
        "1": flows / ".claude" / "agents",
    }
    for body, folder in places.items():
        folder.mkdir(parents=True)
        (folder / "x.md").write_text(body)
        assert found("x", world, flows, home).instructions == body


def test_a_name_in_the_file_counts_before_the_files_name(world: World) -> None:
    world.write(".pflow/agents/a.md", "---\nname: b\n---\nsays it is b")
    world.write(".pflow/agents/b.md", "---\nname: c\n---\nsays it is c")
    assert found("b", world).instructions == "says it is b"
    assert found("a", world).instructions == "says it is b"


def test_a_broken_neighbour_is_no_obstacle(world: World) -> None:
    world.write(".pflow/agents/a-broken.md", "---\n???\n---\n")
    world.agent("x")
    assert found("x", world).name == "x"
    with pytest.raises(NodeError, match=r"a-broken.md:2"):
        found("a-broken", world)


def test_an_unknown_agent_is_told_with_the_nearest_name_and_the_places(world: World) -> None:
    world.agent("code-reviewer")
    world.agent("tester")
    with pytest.raises(NodeError) as raised:
        found("code-reviwer", world)
    error = raised.value
    assert error.kind == "agent" and error.message == 'there is no agent "code-reviwer"'
    assert 'did you mean "code-reviewer"?' in error.hint and str(world.agents) in error.hint
    assert error.details["known"] == ["code-reviewer", "tester"]


def test_without_any_folder_it_says_where_one_would_be(world: World) -> None:
    with pytest.raises(NodeError) as raised:
        found("x", world)
    assert ".pflow/agents" in raised.value.hint


# ── Python ──

PYTHON = """\
from pflow import AgentDefinition

async def execute(given, ctx):
    return given["prompt"].upper()

loud = AgentDefinition("loud", execute)
"""


def test_agents_in_python_files_are_found(world: World) -> None:
    world.write(".pflow/agents/voices.py", PYTHON)
    world.write(".pflow/agents/broken.py", "1/0")
    assert isinstance(found("LOUD", world), AgentDefinition)
    with pytest.raises(NodeError, match="ZeroDivisionError"):
        found("broken", world)
    with pytest.raises(NodeError, match='no agent "quiet"'):
        found("quiet", world)


def test_python_files_of_other_tools_are_left_alone(world: World) -> None:
    world.write(".claude/agents/voices.py", PYTHON)
    with pytest.raises(NodeError):
        found("loud", world)


def test_a_registered_agent_comes_first_until_it_is_taken_out(world: World) -> None:
    async def execute(given: Any, ctx: AgentContext) -> str:
        return "hello"

    world.agent("greeter")
    mine = AgentDefinition("Greeter", execute)
    unregister = register(mine)
    assert found("greeter", world) is mine
    unregister()
    assert isinstance(found("greeter", world), Definition)
    unregister()

"""Answers are reused while the agent that gave them is what it was."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from pflow import app
from tests.agents.world import World

PYTHON = """
from pathlib import Path
from pflow import AgentDefinition

async def answer(input, ctx):
    with open("asked.log", "a") as log:
        log.write("x")
    return {"verdict": "fine"}

agent = AgentDefinition("judge", answer)
"""


def by_command(world: World) -> None:
    world.sh("judge", "printf x >> asked.log; echo fine")


def in_python(world: World) -> None:
    world.write(".pflow/agents/judge.py", PYTHON)


def instructions(world: World) -> None:
    path = world.agents / "judge.md"
    path.write_text(path.read_text() + "\nBe strict.\n")


def script(world: World) -> None:
    path = world.folder / "agents" / "judge.sh"
    path.write_text(path.read_text() + "\n# strictly\n")


def source(world: World) -> None:
    path = world.agents / "judge.py"
    path.write_text(path.read_text() + "\n# strictly\n")


def other(world: World) -> None:
    world.sh("unconcerned", "echo no")


@pytest.mark.parametrize(
    ("make", "edit", "asked"),
    [
        (by_command, instructions, 2),
        (by_command, script, 2),
        (by_command, other, 1),
        (in_python, source, 2),
        (in_python, other, 1),
    ],
)
def test_an_agent_is_asked_again_when_it_was_edited_and_only_then(
    world: World, make: Callable[[World], None], edit: Callable[[World], None], asked: int
) -> None:
    make(world)
    node = {"id": "judge", "type": "agent", "params": {"agent": "judge", "prompt": "?"}, "exec": {"cache": True}}
    path = world.write("w.json", json.dumps({"nodes": [node]}))
    log = world.folder / "asked.log"

    def run() -> int:
        made = app.run_sync(app.load(path), iterate=True)
        assert made.status == "completed", made.error
        return len(log.read_text())

    assert run() == 1 and run() == 1
    edit(world)
    assert run() == asked and run() == asked

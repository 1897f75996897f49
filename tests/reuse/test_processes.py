"""The iteration cache with real processes: several at once, and one that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import asyncio, sys
from pathlib import Path
from pflow import app
from pflow.kernel.run import Run
home, path, doubt = Path(sys.argv[1]), sys.argv[2], sys.argv[3] or None
result = asyncio.run(app.run(path, home=home, workspace=Path(path).parent, iterate=True, on_doubt=doubt))
print(result.status, sum(outcome.reused for outcome in result.visits.values()))
"""


class World:
    """A workflow of three commands that each leave a line in a file of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "workflow.json"

    def write(self, third: str = "echo x >> c.log") -> None:
        commands = {"a": "echo x >> a.log", "b": "echo x >> b.log", "c": third}
        nodes = [{"id": name, "type": "shell", "params": {"command": command}} for name, command in commands.items()]
        self.path.write_text(json.dumps({"nodes": nodes}))

    def start(self, doubt: str = "") -> subprocess.Popen[str]:
        words = [sys.executable, "-c", SCRIPT, str(self.folder / "home"), str(self.path), doubt]
        return subprocess.Popen(
            words, stdout=subprocess.PIPE, text=True, start_new_session=True, env=dict(os.environ), cwd=ROOT
        )

    def run(self, doubt: str = "") -> list[str]:
        process = self.start(doubt)
        out, _ = process.communicate()
        return out.split()

    def effects(self) -> Counter[str]:
        logs = {name: self.folder / f"{name}.log" for name in "abc"}
        return Counter({name: len(log.read_text().splitlines()) for name, log in logs.items() if log.exists()})


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.write()
    return made


def test_four_processes_at_the_same_moment_do_each_node_once(world: World) -> None:
    processes = [world.start() for _ in range(4)]
    said = [process.communicate()[0].split() for process in processes]
    assert [words[0] for words in said] == ["completed"] * 4
    assert world.effects() == {"a": 1, "b": 1, "c": 1}
    assert sum(int(words[1]) for words in said) == 9  # of twelve visits, three were executed


def test_fail_fix_and_run_again_in_fresh_processes(world: World) -> None:
    world.write("exit 3")
    assert world.run()[0] == "failed"
    world.write()
    assert world.run() == ["completed", "2"]
    assert world.run() == ["completed", "3"]
    assert world.effects() == {"a": 1, "b": 1, "c": 1}


def killed(world: World, third: str) -> None:
    """Run, and kill the process with -9 while its third node is at work."""
    world.write(third)
    process = world.start()
    while not (world.folder / "c.log").exists():
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    for entry in Path("/proc").iterdir():  # the command had a group of its own
        if entry.name.isdigit():
            try:
                if b"sleep 61.5" in (entry / "cmdline").read_bytes().replace(b"\0", b" "):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue


@pytest.mark.parametrize(
    ("doubt", "said", "times"),
    [("", "paused", 1), ("retry", "completed", 2), ("skip", "completed", 1), ("fail", "failed", 1)],
)
def test_killed_in_node_three_it_is_asked_about_and_never_silently_repeated(
    world: World, doubt: str, said: str, times: int
) -> None:
    third = "echo x >> c.log; test -e go || sleep 61.5"
    killed(world, third)
    (world.folder / "go").touch()
    assert world.run(doubt)[0] == said
    assert world.effects() == {"a": 1, "b": 1, "c": times}
    if doubt != "retry":  # the doubt stays until somebody settles it
        assert world.run()[0] == "paused"
        assert world.effects()["c"] == 1


def test_a_node_that_was_edited_after_the_kill_simply_runs(world: World) -> None:
    killed(world, "echo x >> c.log; sleep 61.5")
    world.write("echo fixed >> c.log")
    assert world.run() == ["completed", "2"]
    assert world.effects() == {"a": 1, "b": 1, "c": 2}

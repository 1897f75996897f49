"""A process that forks others, which run a workflow and are killed with -9 at a chosen record of its journal.

Reads one JSON command a line on stdin, forks a child for it, and answers with how the child ended. The world outside is
a file to which every effect appends its idempotency key.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pflow import app
from pflow.agents.find import register
from pflow.app.runner import SESSIONS
from pflow.model.records import AnyRecord
from pflow.model.workflow import Edge, Node, Policy, Retry, Workflow
from pflow.nodes import NodeError, StepContext, node
from pflow.nodes.agent import AgentContext, AgentDefinition
from pflow.nodes.type import describe_type
from pflow.storage.journal import Journal

WORLD = Path(os.environ.get("SWEEP_WORLD", "world"))


@node("w/act")
async def act(step: StepContext, fail: int = 0) -> dict[str, Any]:
    """Act on the world once an attempt, then fail as often as asked."""
    await asyncio.sleep(0)
    with WORLD.open("a") as world:
        world.write(step.idempotency_key + "\n")
    await asyncio.sleep(0)
    if step.attempt <= fail:
        raise NodeError(f"attempt {step.attempt}")
    return {"done": step.node_id}


@node("w/think", effect="quiet")
async def think(step: StepContext, about: Any = None) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"thought": about}


INNER = Workflow(
    "inner",
    "test",
    (Node("i", "w/act"), Node("j", "w/act", {"fail": 1}), Node("k", "w/think", {"about": "{{j.done}}"})),
    (Edge("i", "j"), Edge("j", "k")),
    width=2,
)


@node("w/sub", composite=True, effect="quiet")
async def sub(step: StepContext) -> dict[str, Any]:
    return await step.run_workflow(INNER)


TYPES = tuple(describe_type(kind, trusted=True) for kind in (act, think, sub))


def flow() -> Workflow:
    """Retries, nesting in two ways, a composite that is retried as a whole, and parallel branches."""
    nodes = (
        Node("a", "w/act"),
        Node("b", "w/act", {"fail": 1}, policy=Policy(Retry(3, 0.001))),
        Node("s", "w/sub", policy=Policy(Retry(2))),
        Node("f", "control.foreach", {"items": [1, 2], "body": ["g", "h"]}),
        Node("g", "w/think", {"about": "{{item}}"}),
        Node("h", "w/act"),
        Node("z", "w/think", {"about": ["{{b.done}}", "{{s.k.thought}}", "{{f.iterations}}"]}),
    )
    edges = (
        Edge("a", "b"),
        Edge("a", "s"),
        Edge("a", "f"),
        Edge("g", "h"),
        Edge("b", "z"),
        Edge("s", "z"),
        Edge("f", "z"),
    )
    return Workflow("sweep", "test", nodes, edges, width=3)


ROUTED = """\
workflow: {name: routed, context: {goal: ship}}
nodes:
  - {id: draft, agent: clerk, prompt: "do {goal}", outputs: [draft], retry_on_failure: 3, retry_delay: 0.001}
  - {id: review, agent: clerk, prompt: "see {draft}", outputs: [verdict], next: {yes: inside, no: draft}}
  - {id: inside, workflow: parts/child.yaml, inputs: {x: "{draft}"}, outputs: [inner]}
  - {id: checks, agent: clerk, parallel_tasks: [lint, types, tests], outputs: [all_passed, failed_checks]}
  - {id: last, agent: clerk, prompt: "end {inner} {all_passed}", outputs: [end]}
"""
CHILD = """\
name: child
nodes:
  - {id: i, agent: clerk, prompt: "inner {x}", outputs: [inner]}
  - {id: j, agent: clerk, prompt: "inner {x} {inner}", outputs: [inner]}
"""


async def clerk(question: dict[str, Any], _: AgentContext) -> dict[str, Any]:
    """Act on the world, fail once at the second draft, and say no to the first."""
    key = question["idempotency_key"]
    await asyncio.sleep(0)
    with WORLD.open("a") as world:
        world.write(key + "\n")
    await asyncio.sleep(0)
    visit = key.partition(":")[2]
    if visit == "draft#2" and WORLD.read_text().splitlines().count(key) == 1:
        raise NodeError("not today", kind="agent")
    verdict = "no" if visit == "review#1" else "yes"
    return {name: verdict if name == "verdict" else f"{name} of {visit}" for name in question["outputs"]}


def routed(folder: Path) -> Workflow:
    """A loop, a workflow inside, and tasks at once, with agents."""
    (folder / "parts").mkdir(exist_ok=True)
    (folder / "parts" / "child.yaml").write_text(CHILD)
    (folder / "routed.yaml").write_text(ROUTED)
    return app.load(folder / "routed.yaml")


class Killed:
    """Appends until a count is reached, then kills its own process, before or after writing the record."""

    def __init__(self, at: int, after: bool) -> None:
        self.count = 0
        self.at = at
        self.after = after
        self.real = Journal.append

    def install(self) -> None:
        def append(journal: Journal, record: AnyRecord) -> None:
            self.count += 1
            if self.count == self.at and not self.after:
                os.kill(os.getpid(), signal.SIGKILL)
            self.real(journal, record)
            if self.count == self.at:
                os.kill(os.getpid(), signal.SIGKILL)

        setattr(Journal, "append", append)  # noqa: B010 - the real method, with a death before or after it


def child(command: dict[str, Any]) -> None:
    global WORLD
    WORLD = Path(command["world"])
    killed = Killed(command.get("at", 0), command.get("after", False))
    killed.install()
    home = Path(command["home"])
    options: dict[str, Any] = {"home": home, "types": TYPES, "durable": False, "workspace": home.parent}
    is_routed = command.get("flow") == "routed"
    runs = home.parent / SESSIONS if is_routed else home / "runs"
    register(AgentDefinition("clerk", clerk))
    found = sorted(runs.iterdir()) if runs.is_dir() else []
    if found and (found[0] / "trace.jsonl").is_file() and (found[0] / "trace.jsonl").stat().st_size:
        result = asyncio.run(app.resume(found[0], on_doubt=command.get("on_doubt"), **options))
    else:  # killed before it had a first record: nothing was begun
        for folder in found:
            (folder / "trace.jsonl").unlink(missing_ok=True)
            folder.rename(home / f"dead-{os.getpid()}")
        result = asyncio.run(app.run(routed(home.parent) if is_routed else flow(), **options))
    answer = {"status": result.status, "outputs": result.outputs, "records": killed.count}
    Path(command["answer"]).write_text(json.dumps(answer))


def main() -> None:
    for line in sys.stdin:
        command = json.loads(line)
        pid = os.fork()
        if pid == 0:
            child(command)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        print(
            json.dumps({"signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, "status": status}), flush=True
        )


if __name__ == "__main__":
    main()

"""Agents in files, and one node that asks them, run as a workflow."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from pflow.model.event import Envelope
from pflow.model.records import Failure, Outcome
from pflow.model.workflow import Node, Policy, Workflow
from pflow.nodes.registry import Registry
from pflow.planning.build import build
from pflow.planning.inputs import effective
from pflow.planning.plan import Values
from tests.kernel.driving import Driven

NODE = f"a{os.getpid()}"  # processes are ended by the id of their visit: two workers must not share one
VISIT = f"{NODE}#1"


class Asking(Driven):
    """A run whose nodes may run workflows that were made in memory, or are known as documents."""

    documents: ClassVar[dict[str, Workflow]] = {}

    def _load(self, ref: Any, parent: Workflow, inputs: dict[str, Any]) -> Any:
        if not isinstance(ref, Workflow):
            ref = self.documents[ref["ref"]]
        given = effective(ref, inputs)
        return build(ref, Registry(self.types), given), Values(given)

    def again(self, count: int | None = None, **guide: Any) -> Asking:
        records = self.log.records if count is None else self.log.records[:count]
        return Asking(self.flow, self.types, self.inputs, records, **(self.guide | guide))

    def until(self, seen: Callable[[Envelope], bool], then: Callable[[], None]) -> Asking:
        """Drive, and do something when an event is seen."""

        def look(event: Envelope) -> None:
            if seen(event):
                then()

        async def main() -> None:
            self.run.hub.subscribe(look)
            await self.run.drive()

        asyncio.run(main())
        return self

    def said(self, kind: str) -> list[dict[str, Any]]:
        """What the events of one kind say."""
        return [event.event.data for event in self.events if event.event.type == kind]

    @property
    def outcome(self) -> Outcome:
        return self.ended[VISIT]


def flow(*nodes: Node, **rest: Any) -> Workflow:
    """A workflow as DotRunner has them: templates in braces, outputs known by their own names."""
    as_dotrunner: dict[str, Any] = {"syntax": "brace", "flat": True}
    return Workflow("test", "dotrunner", nodes, **(as_dotrunner | rest))


def asking(
    kind: str = "agent", policy: Policy | None = None, values: dict[str, Any] | None = None, /, **params: Any
) -> Asking:
    """A run of one node."""
    return Asking(flow(Node(NODE, kind, params, policy=policy or Policy())), inputs=values)


def outputs(kind: str = "agent", /, **params: Any) -> dict[str, Any]:
    """What the node made; it must succeed."""
    run = asking(kind, **params)
    run.drive()
    assert run.outcome.failure is None, run.outcome.failure
    return run.outcome.outputs


def failure(kind: str = "agent", /, **params: Any) -> Failure:
    """Why the node failed; it must."""
    run = asking(kind, **params)
    run.drive()
    assert run.outcome.failure is not None, run.outcome.outputs
    return run.outcome.failure


class World:
    """A project's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agents = folder / ".pflow" / "agents"

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def agent(self, name: str, front: str = "", body: str = "Do it.", where: str = ".pflow/agents") -> Path:
        """A definition; ``front`` is more of its front matter."""
        return self.write(f"{where}/{name}.md", f"---\nname: {name}\n{textwrap.dedent(front)}\n---\n{body}\n")

    def sh(self, name: str, script: str, front: str = "") -> None:
        """An agent that is a shell script."""
        path = self.write(f"agents/{name}.sh", script)
        self.agent(name, f"command: [sh, {path}]\n{textwrap.dedent(front)}")

    def python(self, name: str, code: str, front: str = "") -> None:
        """An agent that is a Python program; ``asked`` is its question."""
        head = "import json, os, sys, time\nasked = json.loads(sys.stdin.buffer.read())\n"
        path = self.write(f"agents/{name}.py", head + textwrap.dedent(code))
        self.agent(name, f"command: {shlex.quote(sys.executable)} -S {path}\n{textwrap.dedent(front)}")

    def script(self, answers: str) -> str:
        """The name of a model that follows a script."""
        return f"script:{self.write('answers.yaml', answers)}"


def runs(pid: str) -> bool:
    """Whether a process is still there, and not only its remains."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False

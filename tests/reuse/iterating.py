"""A workflow file that is edited and run again, with a world outside that counts what happened to it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

from pflow import NodeError, StepContext, app, flow_safe, node
from pflow.nodes.type import describe_type
from pflow.testing import FakeClock


class Broken(Exception):
    """Stands for the death of the process: it passes through everything."""


class Iterating:
    """One workflow file and its runs; ``acts`` counts how often each node acted on the world."""

    def __init__(self, folder: Path, *nodes: dict[str, Any], **rest: Any) -> None:
        self.folder = folder
        self.path = folder / "workflow.json"
        self.home = folder / "home"
        self.acts: Counter[str] = Counter()
        self.fail: set[str] = set()
        self.clock = FakeClock()
        self.events: list[Any] = []
        self.write(*nodes, **rest)

    def write(self, *nodes: dict[str, Any], **rest: Any) -> None:
        """Edit the file."""
        self.path.write_text(json.dumps({"nodes": list(nodes), **rest}))

    def run(self, _inputs: dict[str, Any] | None = None, **options: Any) -> app.Result:
        """Run the file once."""
        self.events = []
        flow = app.load(self.path)
        given: dict[str, Any] = {"iterate": True, "clock": self.clock, **options}
        return asyncio.run(
            app.run(
                flow,
                _inputs,
                home=self.home,
                workspace=self.folder,
                types=self.types(),
                on_event=self.events.append,
                **given,
            )
        )

    def ran(self, _inputs: dict[str, Any] | None = None, **options: Any) -> str:
        """The nodes that acted in one run, in order."""
        before = Counter(self.acts)
        self.run(_inputs, **options)
        return "".join(sorted((self.acts - before).elements()))

    def types(self) -> tuple[Any, ...]:
        @node("t/act")
        async def act(step: StepContext, text: Any = "", sees: Any = None) -> dict[str, Any]:
            self.acts[step.node_id] += 1
            if step.node_id in self.fail:
                raise NodeError(f"{step.node_id} is broken")
            return {"text": text, "count": self.acts[step.node_id]}

        @flow_safe
        @node("t/pure", effect="pure", version="1")
        async def pure(step: StepContext, text: Any = "") -> dict[str, Any]:
            self.acts[step.node_id] += 1
            return {"text": text}

        return (act, describe_type(pure, trusted=True))

    def whys(self) -> dict[str, str]:
        """Why each node that was executed was executed."""
        starts = [event.event.data for event in self.events if event.event.type == "task:start"]
        return {data["taskId"].removeprefix("node:"): data.get("reason", "") for data in starts}


def act(node_id: str, text: Any = "", **rest: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "t/act", "params": {"text": text}, **rest}


def pure(node_id: str, text: Any = "", **rest: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "t/pure", "params": {"text": text}, **rest}

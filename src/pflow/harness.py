"""The harness: phases and tasks on one hub, for workflows and for code of your own.

async with Harness("release") as harness:
    async with harness.phase("Prepare"), harness.task("fetch"):
        ...
    result = await harness.run(workflow)    # one phase "Run Flow", one task for each node, on the same hub
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Unpack

from pflow import app
from pflow.app.options import Keywords
from pflow.kernel.events import Hub, Sink
from pflow.model.event import Context
from pflow.model.value import plain
from pflow.model.workflow import Workflow
from pflow.nodes.agent import AgentContext, AgentDefinition, Inbox, Voice
from pflow.storage.runs import new_id


class Harness:
    """Runs phases, tasks, agents and workflows on one hub."""

    def __init__(self, name: str, *sinks: Sink) -> None:
        self.name = name
        self.run_id = new_id(name, time.time())
        self.hub = Hub(*sinks)
        self._outside = Context(self.run_id)
        self._place: ContextVar[Context] = ContextVar("place")

    async def __aenter__(self) -> Harness:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.hub.sinks.clear()

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Have every event given to a function; call what is returned to stop that."""
        return self.hub.subscribe(sink)

    @asynccontextmanager
    async def phase(self, name: str) -> AsyncIterator[None]:
        """A phase: ``phase:start``, then ``phase:complete`` or ``phase:failed``."""
        async with self._within(Context(self.run_id, name), "phase", {"name": name}):
            yield

    @asynccontextmanager
    async def task(self, name: str) -> AsyncIterator[None]:
        """A task within the phase: ``task:start``, then ``task:complete`` or ``task:failed``."""
        outer = self._place.get(self._outside)
        async with self._within(Context(self.run_id, outer.phase, name), "task", {"taskId": name}):
            yield

    async def agent(self, definition: AgentDefinition, given: Any) -> Any:
        """Ask an agent, and return its answer; what it says appears on the hub under its name."""
        outer = self._place.get(self._outside)
        place = Context(self.run_id, outer.phase, outer.task, definition.name)
        voice = Voice(definition.name, lambda kind, data: self.hub.emit(place, kind, data))
        voice.emit("agent:start")
        answer = await definition.execute(given, AgentContext(voice, Inbox(), self.run_id))
        voice.emit("agent:complete", result=plain(answer))
        return answer

    async def run(
        self, workflow: Workflow | str | Path, inputs: Mapping[str, Any] | None = None, **options: Unpack[Keywords]
    ) -> app.Result:
        """Run a workflow on this hub."""
        options["hub"] = self.hub
        return await app.run(workflow, inputs, **options)

    @asynccontextmanager
    async def _within(self, place: Context, kind: str, data: dict[str, Any]) -> AsyncIterator[None]:
        token = self._place.set(place)
        began = time.perf_counter()
        self.hub.emit(place, f"{kind}:start", data)
        try:
            yield
        except BaseException as error:
            failure = {"message": str(error), "error_type": type(error).__name__}
            self.hub.emit(place, f"{kind}:failed", data | {"error": failure})
            raise
        else:
            spent = round((time.perf_counter() - began) * 1000, 3)
            self.hub.emit(place, f"{kind}:complete", data | {"durationMs": spent})
        finally:
            self._place.reset(token)

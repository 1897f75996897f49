"""The door: what node code asks of its run, through its step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pflow.errors import NodeError
from pflow.kernel import nested, telling
from pflow.kernel.live import Stream
from pflow.kernel.scope import Scope
from pflow.model.run import Space, Stored
from pflow.model.value import plain
from pflow.nodes.spec import NodeType
from pflow.nodes.step import Iteration, StepContext
from pflow.storage.files import private_folder

if TYPE_CHECKING:
    from pflow.kernel.run import Run


class Door:
    """Stands between steps and their run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.run_id: str = run.run_id
        self.workspace: Path = run.workspace
        self.output_limit: int = run.guide.output_limit
        self.shared = run.memory.shared
        self.stored = run.memory.stored

    @property
    def scratch(self) -> Path | None:
        """Where nodes leave files that stay with the run."""
        folder = self._run.guide.folder
        return private_folder(folder / "files") if folder is not None else None

    def step_event(self, step: StepContext, kind: str, data: dict[str, Any]) -> None:
        """Publish an event of a step; a step that was stopped has nothing more to say."""
        if self._run.hub.sinks and not step.cancelled:
            telling.of_step(self._run, step, kind, data)

    async def step_ask(self, step: StepContext, n: int, question: str, choices: tuple[str, ...]) -> Any:
        """Wait for a person's answer."""
        return await self._run.desk.ask(step, n, question, choices)

    def step_stream(self, step: StepContext) -> Stream | None:
        """What flows into the step while it is under way, in a graph of ports."""
        scope: Scope = step.scope
        if scope.live is None:
            return None
        return Stream(self._run, scope, scope.live, step, step.inputs)

    def step_store(self, space: Space, key: str, value: Any) -> None:
        """Put a value into the graph's store, at once."""
        run = self._run
        run.note(Stored(run.clock.now(), space, key, plain(value)))

    async def step_run(self, step: StepContext, workflow: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run a workflow inside a step."""
        return await nested.run_workflow(self._run, step, workflow, inputs)

    async def step_each(
        self, step: StepContext, items: list[Any], name: str, body: list[str], width: int, fail_fast: bool
    ) -> list[Iteration]:
        """Run nodes of the same workflow once for each item."""
        return await nested.run_each(self._run, step, items, name, body, width, fail_fast)

    async def step_call(self, step: StepContext, type_name: str, params: dict[str, Any]) -> dict[str, Any]:
        """Execute another node type within a step."""
        return await nested.call_type(self._run, step, type_name, params)

    def step_type(self, type_name: str) -> NodeType:
        """The node type of this name."""
        if self._run.guide.registry is None:
            raise NodeError("this run knows no other node types", "give it a registry")
        return self._run.guide.registry.get(type_name)

    def step_types(self) -> list[NodeType]:
        """Every node type."""
        return self._run.guide.registry.types() if self._run.guide.registry is not None else []

"""The kernel's step: what node code asks for is carried out here."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pflow.errors import NodeError
from pflow.kernel import composite, events
from pflow.kernel.scope import Scope
from pflow.kernel.streams import VisitStream
from pflow.model.records import Space, Stored, Visit
from pflow.model.value import plain
from pflow.nodes.registry import Registry
from pflow.nodes.step import Iteration, StepContext
from pflow.nodes.type import NodeType
from pflow.storage.files import private_folder

if TYPE_CHECKING:
    from pflow.kernel.run import Run


class Step(StepContext):
    """One attempt of one visit of a run."""

    def __init__(self, run: Run, scope: Scope, visit: Visit, attempt: int, params: dict[str, Any]) -> None:
        super().__init__(visit, attempt, params)
        self.run, self.scope = run, scope
        self.run_id, self.workspace, self.output_limit = run.run_id, run.workspace, run.guide.output_limit
        self.workflow, self.node = scope.plan.workflow, scope.plan.nodes[visit.node].node

    @property
    def scratch(self) -> Path | None:
        """A private folder that is kept with the run."""
        folder = self.run.guide.folder
        return private_folder(folder / "files") if folder is not None else None

    @property
    def values(self) -> Mapping[str, Any]:
        """What its templates can see."""
        return {name: self.scope.values[name] for name in self.scope.values.available()}

    @property
    def _shared(self) -> MutableMapping[str, Any]:
        return self.run.memory.shared

    def store(self, space: Space, key: str, value: Any) -> None:
        """Put a value into the graph's store, at once."""
        self.run.note(Stored(self.run.clock.now(), space, key, plain(value)))

    def stored(self, space: Space) -> Mapping[str, Any]:
        """What is in a part of the graph's store."""
        return self.run.memory.stored.get(space, {})

    def emit(self, kind: str, **data: Any) -> None:
        """Publish an event of the step."""
        if self.run.hub.sinks and not self.cancelled:
            events.of_step(self.run, self.scope, self.node_id, kind, data)

    async def ask(self, question: str, choices: tuple[str, ...] | list[str] = ()) -> Any:
        """Wait for a person's answer."""
        n, self.asks = self.asks, self.asks + 1
        return await self.run.people.ask(self, self.scope, n, question, tuple(choices))

    def stream(self) -> VisitStream | None:
        """What flows into the step while it is under way."""
        return None if self.scope.streams is None else VisitStream(self.run, self.scope, self.scope.streams, self)

    async def run_workflow(self, workflow: Any, inputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run a workflow inside the step."""
        return await composite.run_workflow(self, workflow, inputs or {})

    async def run_each(
        self, items: list[Any], name: str, body: list[str], width: int = 1, fail_fast: bool = True
    ) -> list[Iteration]:
        """Run nodes of the same workflow once for each item."""
        return await composite.run_each(self, items, name, body, width, fail_fast)

    async def call(self, type_name: str, /, **params: Any) -> dict[str, Any]:
        """Execute another node type within the step."""
        return await composite.call_type(self, type_name, params)

    def node_type(self, type_name: str) -> NodeType:
        """The node type of this name."""
        return self.registry.get(type_name)

    def node_types(self) -> list[NodeType]:
        """Every node type."""
        return self.run.guide.registry.types() if self.run.guide.registry is not None else []

    @property
    def registry(self) -> Registry:
        """Where the run finds node types."""
        if self.run.guide.registry is None:
            raise NodeError("this run knows no other node types", "give it a registry")
        return self.run.guide.registry

    def inner(self, params: dict[str, Any]) -> Step:
        """A step for another node type that does a part of the work: its questions are counted with this one's."""
        made = Step(self.run, self.scope, Visit(self.visit, self.node_id), self.attempt, params)
        made.asks, made.nested = self.asks, self.nested
        return made

"""Driving a run in a test: in memory, on a fake clock."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Any

import msgspec

from pflow.kernel.events import Hub
from pflow.kernel.ports import Guide
from pflow.kernel.replay import ended_badly, reopen, replay
from pflow.kernel.run import Run
from pflow.model.event import Envelope
from pflow.model.records import AnyRecord, Opened, Outcome
from pflow.model.workflow import Edge, Node, Workflow
from pflow.nodes.registry import Registry
from pflow.nodes.type import NodeType, describe_type
from pflow.planning.build import build
from pflow.planning.plan import Values
from pflow.testing import FakeClock, ListLog


def workflow(*nodes: Node, edges: str = "", **rest: Any) -> Workflow:
    """``workflow(a, b, edges="a>b b>c")``."""
    pairs = (edge.split(">") for edge in edges.split())
    return Workflow("test", "test", nodes, tuple(Edge(source, target) for source, target in pairs), **rest)


# Processes are ended by the id of their run: no two workers of any tests on this machine may share one. What a worker
# starts has the same.
RUN = os.environ.setdefault(f"RUN_OF_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}", f"run-{os.getpid()}")


class Driven:
    """A run with everything around it; ``drive`` may be called once, ``again`` makes the run that resumes it."""

    def __init__(
        self,
        flow: Workflow,
        types: Iterable[Any] = (),
        inputs: dict[str, Any] | None = None,
        records: Iterable[AnyRecord] = (),
        log: ListLog | None = None,
        **guide: Any,
    ) -> None:
        self.flow = flow
        self.types = [kind if isinstance(kind, NodeType) else describe_type(kind, trusted=True) for kind in types]
        self.inputs = inputs or {}
        self.events: list[Envelope] = []
        self.clock = FakeClock()
        self.log = log or ListLog()
        registry = Registry(self.types)
        plan = build(flow, registry)
        self.guide = guide
        self.run = Run(
            plan, Values(self.inputs), RUN, self.log, width=flow.width, hub=Hub(self.events.append), clock=self.clock,
            guide=Guide(registry=registry, load=self._load, **guide),
        )  # fmt: skip
        before = list(records)
        if before:
            self.log.records = list(before)
            replay(self.run, before)
        else:
            self.run.open(Opened(0.0, "run", flow.name, flow.dialect, plan.digest, self.inputs))

    def _load(self, ref: Any, parent: Workflow, inputs: dict[str, Any]) -> Any:
        assert isinstance(ref["ir"], dict)
        flow = msgspec.convert(ref["ir"], Workflow)
        return build(flow, Registry(self.types)), Values(inputs)

    def drive(self) -> Driven:
        asyncio.run(self.run.drive())
        return self

    def again(self, count: int | None = None, **guide: Any) -> Driven:
        """A run in another process, from the first ``count`` records."""
        records = self.log.records if count is None else self.log.records[:count]
        made = Driven(self.flow, self.types, self.inputs, records, **(self.guide | guide))
        if ended_badly(made.run):
            reopen(made.run)
        return made

    @property
    def status(self) -> str:
        return self.run.status

    @property
    def outputs(self) -> dict[str, Any]:
        return self.run.root.outputs()

    @property
    def ended(self) -> dict[str, Outcome]:
        return self.run.memory.ended

    @property
    def kinds(self) -> list[str]:
        return [event.event.type for event in self.events]

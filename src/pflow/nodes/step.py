"""The step: what node code is handed to talk to the engine that runs it."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pflow.errors import PurityError
from pflow.model.conversation import Conversation
from pflow.model.run import Failure, Space, Visit

if TYPE_CHECKING:
    from pflow.nodes.spec import NodeType


class Iteration(msgspec.Struct, frozen=True):
    """What one item of a loop came to: the outputs by node, and why it failed if it did."""

    outputs: dict[str, dict[str, Any]]
    failure: Failure | None = None


class Stream(Protocol):
    """What flows into a step while it is under way."""

    @property
    def ports(self) -> Mapping[str, int]:
        """The inputs that edges lead to, with how many."""

    @property
    def main(self) -> Conversation | None:
        """The newest main conversation."""

    def seen(self) -> int:
        """How often something was pushed since the visit began."""

    def values(self) -> dict[str, Any]:
        """What has been pushed so far."""

    async def pull(self, name: str) -> Any:
        """The live value of an input, or what its source makes of it now."""


class Host(Protocol):
    """What the kernel offers to a step; node code never sees it."""

    run_id: str
    workspace: Path
    shared: dict[str, Any]
    stored: dict[Space, dict[str, Any]]
    output_limit: int

    @property
    def scratch(self) -> Path | None:
        """A private folder that is kept with the run."""

    def step_event(self, step: StepContext, kind: str, data: dict[str, Any]) -> None:
        """Publish an event of the step."""

    async def step_ask(self, step: StepContext, n: int, question: str, choices: tuple[str, ...]) -> Any:
        """Wait for a person's answer."""

    def step_stream(self, step: StepContext) -> Stream | None:
        """What flows into the step while it is under way; None where nothing does."""

    def step_store(self, space: Space, key: str, value: Any) -> None:
        """Put a value into the graph's store, at once."""

    async def step_run(self, step: StepContext, workflow: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run a workflow inside the step."""

    async def step_each(
        self, step: StepContext, items: list[Any], name: str, body: list[str], width: int, fail_fast: bool
    ) -> list[Iteration]:
        """Run nodes of the same workflow once for each item."""

    async def step_call(self, step: StepContext, type_name: str, params: dict[str, Any]) -> dict[str, Any]:
        """Execute another node type within the step."""

    def step_type(self, type_name: str) -> NodeType:
        """The node type of this name."""

    def step_types(self) -> list[NodeType]:
        """Every node type."""


def add_usage(total: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add up what adds up; of the rest, the last word counts."""
    for key, number in more.items():
        old = total.get(key)
        adds = isinstance(number, (int, float)) and isinstance(old, (int, float))
        total[key] = old + number if adds else number


class Log:
    """Writes to the run's feed; nothing is printed by itself."""

    def __init__(self, step: StepContext) -> None:
        self._step = step

    def debug(self, message: str, **data: Any) -> None:
        """Note a detail."""
        self._step.emit("log", level="debug", message=message, **data)

    def info(self, message: str, **data: Any) -> None:
        """Note something of interest."""
        self._step.emit("log", level="info", message=message, **data)

    def warn(self, message: str, **data: Any) -> None:
        """Note something that may be wrong."""
        self._step.emit("log", level="warn", message=message, **data)

    def error(self, message: str, **data: Any) -> None:
        """Note something that is wrong."""
        self._step.emit("log", level="error", message=message, **data)


class _Declared(ChainMap[str, Any]):
    """The shared keys that a type declared; touching another breaks its promise."""

    def __init__(self, declared: frozenset[str], *maps: MutableMapping[str, Any]) -> None:
        super().__init__(*maps)
        self._declared = declared

    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(self._allowed(key))

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(self._allowed(key), value)

    def _allowed(self, key: str) -> str:
        if key not in self._declared:
            hint = f'declare it: @node(…, shared=("{key}",))'
            raise PurityError(f'a node that promised to be safe touches the shared key "{key}"', hint)
        return key


class StepContext:
    """One attempt of one visit, as its node sees it."""

    def __init__(self, host: Host, visit: Visit, attempt: int, params: dict[str, Any], scope: Any = None) -> None:
        self._host = host
        self.asks = 0  # questions of this attempt so far
        self.scope = scope  # the kernel's; node code has no use for it
        self.nested = 0  # workflows run inside this attempt so far
        self.visit = visit.id
        self.node_id = visit.node
        self.attempt = attempt
        self.params = params
        self.inputs = visit.inputs
        self.writes: dict[str, Any] = {}  # to shared keys; recorded when the attempt ends
        self.used: dict[str, Any] = {}
        self.seen = 0  # how often something was pushed to it before it returned
        self.cancelled = False
        self.declared: frozenset[str] | None = None  # the shared keys that a node which promised to be safe may touch

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._host.run_id

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this visit, and for no other visit anywhere."""
        return f"{self._host.run_id}:{self.visit}"

    @property
    def workspace(self) -> Path:
        """Where pflow was started: commands run and relative paths begin there."""
        return self._host.workspace

    @property
    def shared(self) -> MutableMapping[str, Any]:
        """Values that every node of the run can read and write; writes are recorded with the visit."""
        if self.declared is not None:
            return _Declared(self.declared, self.writes, self._host.shared)
        return ChainMap(self.writes, self._host.shared)

    @property
    def scratch(self) -> Path | None:
        """A private folder that is kept with the run; None for a run without one."""
        return self._host.scratch

    @property
    def output_limit(self) -> int:
        """Bytes of a command's output that are kept in memory."""
        return self._host.output_limit

    @property
    def log(self) -> Log:
        """The run's log."""
        return Log(self)

    def emit(self, kind: str, **data: Any) -> None:
        """Publish an event in the name of this step."""
        self._host.step_event(self, kind, data)

    def progress(self, done: float, total: float | None = None) -> None:
        """Say how far the work has come."""
        self.emit("task:progress", done=done, total=total)

    def usage(self, **numbers: Any) -> None:
        """Report tokens, cost and the like; numbers add up over the visit."""
        add_usage(self.used, numbers)
        self.emit("usage", **numbers)

    async def ask(self, question: str, choices: tuple[str, ...] | list[str] = ()) -> Any:
        """Ask a person and wait for the answer; an answer given once is kept across crashes and retries."""
        n, self.asks = self.asks, self.asks + 1
        return await self._host.step_ask(self, n, question, tuple(choices))

    def stream(self) -> Stream | None:
        """What flows into this step while it is under way, in a graph of ports; None elsewhere."""
        return self._host.step_stream(self)

    def store(self, space: Space, key: str, value: Any) -> None:
        """Put a value into the graph's store; it is recorded at once, and outlives the run."""
        self._host.step_store(space, key, value)

    def stored(self, space: Space) -> Mapping[str, Any]:
        """What is in a part of the graph's store."""
        return self._host.stored.get(space, {})

    async def run_workflow(self, workflow: Any, inputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run a workflow (a path, a name or a loaded one) inside this step and return its outputs."""
        return await self._host.step_run(self, workflow, inputs or {})

    async def run_each(
        self, items: list[Any], name: str, body: list[str], width: int = 1, fail_fast: bool = True
    ) -> list[Iteration]:
        """Run nodes of this workflow once for each item, ``width`` at a time; results in the order of the items."""
        return await self._host.step_each(self, items, name, body, width, fail_fast)

    async def call(self, type_name: str, /, **params: Any) -> dict[str, Any]:
        """Execute another node type as a part of this step."""
        return await self._host.step_call(self, type_name, params)

    def node_type(self, type_name: str) -> NodeType:
        """The node type that ``call`` would execute; raises ``UsageError`` with the nearest names."""
        return self._host.step_type(type_name)

    def node_types(self) -> list[NodeType]:
        """Every node type that ``call`` knows."""
        return self._host.step_types()

"""The step: what node code is handed to talk to the engine that runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pflow.errors import PurityError
from pflow.model.conversation import Conversation
from pflow.model.records import Failure, Space, Visit
from pflow.model.workflow import Node, Workflow

if TYPE_CHECKING:
    from pflow.nodes.type import NodeType


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


def add_usage(total: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add up what adds up; of the rest, the last word counts."""
    for key, number in more.items():
        old = total.get(key)
        adds = isinstance(number, (int, float)) and isinstance(old, (int, float))
        total[key] = old + number if adds else number


class StepLog:
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


class StepContext(ABC):
    """One attempt of one visit, as its node sees it; whoever runs it says how each request is met."""

    run_id: str
    workspace: Path  # where pflow was started: commands run and relative paths begin there
    output_limit: int  # bytes of a command's output that are kept in memory
    workflow: Workflow  # that the node stands in
    node: Node  # as it is declared there

    def __init__(self, visit: Visit, attempt: int, params: dict[str, Any]) -> None:
        self.visit = visit.id
        self.node_id = visit.node
        self.attempt = attempt
        self.params = params
        self.inputs = visit.inputs
        self.asks = 0  # questions of this attempt so far
        self.nested = 0  # workflows run inside this attempt so far
        self.writes: dict[str, Any] = {}  # to shared keys; recorded when the attempt ends
        self.used: dict[str, Any] = {}
        self.seen = 0  # how often something was pushed to it before it returned
        self.cancelled = False
        self.may_share: frozenset[str] | None = None  # the shared keys that a node which promised to be safe may touch

    # ── where it is ──

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this visit, and for no other visit anywhere."""
        return f"{self.run_id}:{self.visit}"

    @property
    @abstractmethod
    def scratch(self) -> Path | None:
        """A private folder that is kept with the run; None for a run without one."""

    @property
    @abstractmethod
    def values(self) -> Mapping[str, Any]:
        """What its templates can see: inputs, and what nodes before it left behind."""

    # ── what nodes leave for each other ──

    @property
    @abstractmethod
    def _shared(self) -> MutableMapping[str, Any]:
        """What other visits have recorded."""

    @property
    def shared(self) -> MutableMapping[str, Any]:
        """Values that every node of the run can read and write; writes are recorded with the visit."""
        if self.may_share is not None:
            return _Declared(self.may_share, self.writes, self._shared)
        return ChainMap(self.writes, self._shared)

    @abstractmethod
    def store(self, space: Space, key: str, value: Any) -> None:
        """Put a value into the graph's store; it is recorded at once, and outlives the run."""

    @abstractmethod
    def stored(self, space: Space) -> Mapping[str, Any]:
        """What is in a part of the graph's store."""

    # ── what it says ──

    @abstractmethod
    def emit(self, kind: str, **data: Any) -> None:
        """Publish an event in the name of this step; one that was stopped has nothing more to say."""

    @property
    def log(self) -> StepLog:
        """The run's log."""
        return StepLog(self)

    def progress(self, done: float, total: float | None = None) -> None:
        """Say how far the work has come."""
        self.emit("task:progress", done=done, total=total)

    def usage(self, **numbers: Any) -> None:
        """Report tokens, cost and the like; numbers add up over the visit."""
        add_usage(self.used, numbers)
        self.emit("usage", **numbers)

    # ── what it asks for ──

    @abstractmethod
    async def ask(self, question: str, choices: tuple[str, ...] | list[str] = ()) -> Any:
        """Ask a person and wait for the answer; an answer given once is kept across crashes and retries."""

    @abstractmethod
    def stream(self) -> Stream | None:
        """What flows into this step while it is under way, in a graph of ports; None elsewhere."""

    @abstractmethod
    async def run_workflow(self, workflow: Any, inputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run a workflow (a path, a name or a loaded one) inside this step and return its outputs."""

    @abstractmethod
    async def run_each(
        self, items: list[Any], name: str, body: list[str], width: int = 1, fail_fast: bool = True
    ) -> list[Iteration]:
        """Run nodes of this workflow once for each item, ``width`` at a time; results in the order of the items."""

    @abstractmethod
    async def call(self, type_name: str, /, **params: Any) -> dict[str, Any]:
        """Execute another node type as a part of this step."""

    @abstractmethod
    def node_type(self, type_name: str) -> NodeType:
        """The node type that ``call`` would execute; raises ``UsageError`` with the nearest names."""

    @abstractmethod
    def node_types(self) -> list[NodeType]:
        """Every node type that ``call`` knows."""

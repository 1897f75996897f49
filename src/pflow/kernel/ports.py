"""What a run is given to work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pflow.kernel.scope import SPIN, Ready
from pflow.model.records import AnyRecord, Asked, Decision
from pflow.model.workflow import Workflow
from pflow.nodes.registry import Registry
from pflow.planning.plan import Plan, Values

# A worker lets others have the event loop after so many visits. It is a number and not a time: else the order of a
# journal whose branches run side by side would depend on the speed of the machine.
TURN = 64


class RecordLog(Protocol):
    """Where records go."""

    def append(self, record: AnyRecord) -> None:
        """Write one record."""

    def sync(self) -> None:
        """Force what was written to disk."""


class Watcher(Protocol):
    """Told of every visit whose state changed, to keep views of the run."""

    def touch(self, visit: str, ready: Ready | None) -> None:
        """A visit started, or (without ``ready``) changed."""


class Loader(Protocol):
    """Finds and plans a workflow that another one calls."""

    def __call__(self, ref: Any, parent: Workflow, inputs: dict[str, Any]) -> tuple[Plan, Values]:
        """The plan, and the values it starts from."""


class Guide(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is handed from outside: who answers it, and where it finds things."""

    load: Loader | None = None
    registry: Registry | None = None
    folder: Path | None = None  # of the run: messages arrive in its inbox
    output_limit: int = 10_000_000
    spin: int = SPIN  # how often a graph may come back to its nodes without waiting for anybody
    turn: int = TURN  # visits after which a worker lets others have the event loop
    on_doubt: Decision | None = None
    answer: Callable[[Asked], Awaitable[Any]] | None = None  # asks a person who is present; None means "not now"
    decide: Callable[[str, int], Awaitable[Decision | None]] | None = None  # the same for a doubt, by visit and attempt

"""How to run, and how a run went."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pflow.kernel.clock import Clock
from pflow.kernel.feed import Hub
from pflow.kernel.run import Run
from pflow.model.event import Envelope
from pflow.model.run import Asked, Decision, Failure, Outcome, RunStatus


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to run; everything has a default that suits a script."""

    on_event: Callable[[Envelope], None] | None = None
    hub: Hub | None = None
    types: tuple[Any, ...] = ()  # node types beside the registered ones
    jobs: int | None = None  # visits at once; None: as the workflow says
    on_doubt: Decision | None = None
    answer: Callable[[Asked], Awaitable[Any]] | None = None
    decide: Callable[[str, int], Awaitable[Decision | None]] | None = None
    home: Path | None = None
    workspace: Path | None = None
    keep: bool = True  # False: in memory only; nothing can be resumed
    durable: bool = True  # False: survives a crash of the process, not of the machine
    clock: Clock | None = None
    started: Callable[[Run], None] | None = None  # told of the run, to interrupt or cancel it
    iterate: bool = False  # reuse what did not change since earlier runs of the same file
    rerun: tuple[str, ...] = ()  # nodes to execute all the same, with what is below them
    use_cache: bool = False  # reuse outcomes of pure nodes by their inputs
    reset_cache: bool = False  # drop this workflow's outcomes of that kind first
    model: str = ""  # the model that is asked where a workflow names none
    budget: float | None = None  # USD that calls of models may cost; the run pauses before it is passed
    secrets: Mapping[str, Any] = {}  # inputs among which a resumed run finds the secret ones


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a run went."""

    run_id: str
    status: RunStatus
    outputs: dict[str, Any]  # the declared ones, or every node's by its id
    visits: dict[str, Outcome]
    error: Failure | None = None
    usage: dict[str, Any] = {}
    path: Path | None = None
    duration: float = 0.0
    nodes_total: int = 0
    waiting: tuple[Asked, ...] = ()
    doubts: tuple[tuple[str, int], ...] = ()
    held: dict[str, Failure] = {}  # visits that go on when the run is resumed with more

    @property
    def success(self) -> bool:
        """Whether the run is complete."""
        return self.status == "completed"

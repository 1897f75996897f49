"""How to run, and how a run went."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from pflow.app.story import Story
from pflow.kernel.clock import Clock
from pflow.kernel.events import Hub
from pflow.model.event import Envelope
from pflow.model.records import Asked, Decision

if TYPE_CHECKING:
    from pflow.app.session import Session


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
    started: Callable[[Session], None] | None = None  # told of the run, to interrupt or cancel it
    iterate: bool = False  # reuse what did not change since earlier runs of the same file
    rerun: tuple[str, ...] = ()  # nodes to execute all the same, with what is below them
    use_cache: bool = False  # reuse outcomes of pure nodes by their inputs
    reset_cache: bool = False  # drop this workflow's outcomes of that kind first
    model: str = ""  # the model that is asked where a workflow names none
    budget: float | None = None  # USD that calls of models may cost; the run pauses before it is passed
    secrets: Mapping[str, Any] = {}  # inputs among which a resumed run finds the secret ones


class Keywords(TypedDict, total=False):
    """The same, as keywords: each is described in ``Options``."""

    on_event: Callable[[Envelope], None] | None
    hub: Hub | None
    types: tuple[Any, ...]
    jobs: int | None
    on_doubt: Decision | None
    answer: Callable[[Asked], Awaitable[Any]] | None
    decide: Callable[[str, int], Awaitable[Decision | None]] | None
    home: Path | None
    workspace: Path | None
    keep: bool
    durable: bool
    clock: Clock | None
    started: Callable[[Session], None] | None
    iterate: bool
    rerun: tuple[str, ...]
    use_cache: bool
    reset_cache: bool
    model: str
    budget: float | None
    secrets: Mapping[str, Any]


class Result(Story, frozen=True, kw_only=True):
    """How a run went."""

    outputs: dict[str, Any]  # the declared ones, or every node's by its id
    duration: float = 0.0  # seconds that it was driven for

    @property
    def success(self) -> bool:
        """Whether the run is complete."""
        return self.status == "completed"

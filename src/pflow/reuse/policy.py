"""What a reuse policy is, and the one that never reuses.

A policy answers with an earlier outcome, or with the reason why there is none. *Lineage* names where an
outcome came from: that of an executed impure or quiet visit is unique, a pure one's is a digest of its key and of its
upstreams'.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pflow.model.reason import Reason
from pflow.model.records import Outcome, Visit
from pflow.planning.plan import Plan, Planned


class Call(msgspec.Struct, frozen=True):
    """A visit that is about to be executed, with all that its outcome may depend on."""

    run_id: str
    visit: Visit
    plan: Plan
    planned: Planned
    params: dict[str, Any]  # resolved
    upstream: dict[str, str]  # the lineages of what it comes after or reads, by node
    values: Mapping[str, Any]  # what its templates can see
    shared: Mapping[str, Any]  # what nodes stored for each other


class Recalled(msgspec.Struct, frozen=True):
    """An earlier outcome that stands in for a visit, and what was stored on the way to it."""

    outcome: Outcome
    writes: dict[str, Any] = {}


class Abandoned(msgspec.Struct, frozen=True):
    """Somebody began this very visit in another run and never told how it went: a doubt."""

    run_id: str
    attempt: int
    edited: bool = False  # the node was edited since, so that it is another visit now


class Reuse(Protocol):
    """Decides whether an earlier outcome stands in for a visit."""

    active: bool  # False spares the kernel from asking
    claims: bool  # whether ``claim`` has anything to say

    @property
    def lost(self) -> Path | None:
        """The folder in which outcomes could not be kept."""

    def recall(self, call: Call) -> Recalled | Reason:
        """What to use instead of executing, or the reason why there is nothing."""

    async def claim(self, call: Call) -> Recalled | Abandoned | None:
        """Have this visit to oneself, for as long as it takes; another run that is at it is waited for."""

    def sign(self, call: Call, attempt: int) -> None:
        """Say, durably, that an effect is about to be attempted."""

    def remember(self, call: Call, outcome: Outcome, writes: Mapping[str, Any]) -> Outcome:
        """Keep how a visit ended; called before its end is recorded. Gives the outcome with its lineage."""

    def close(self, completed: bool) -> None:
        """The run is over."""


class Never:
    """Every visit is executed."""

    active = False
    claims = False
    lost: Path | None = None

    def recall(self, call: Call) -> Recalled | Reason:
        """Nothing is ever recalled."""
        return Reason("off")

    async def claim(self, call: Call) -> Recalled | Abandoned | None:
        """Nobody else is asked."""
        return None

    def sign(self, call: Call, attempt: int) -> None:
        """Nobody else needs to know."""

    def remember(self, call: Call, outcome: Outcome, writes: Mapping[str, Any]) -> Outcome:
        """Nothing is kept."""
        return outcome

    def close(self, completed: bool) -> None:
        """Nothing is left to do."""

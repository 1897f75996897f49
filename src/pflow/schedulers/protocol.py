"""What a scheduler is, and what all of them say of a visit that ended badly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from pflow.model.records import Command, Fact, Failure, Outcome


class Scheduler(Protocol):
    """Decides what happens next, and does nothing."""

    def start(self) -> list[Command]:
        """The first commands."""

    def on(self, fact: Fact) -> list[Command]:
        """The commands that follow from a fact."""

    def dump(self) -> dict[str, Any]:
        """The state, as plain data."""

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over a dumped state."""


def located(visit: str, outcome: Outcome) -> Failure | None:
    """The failure of an outcome, with the visit in which it happened."""
    failure = outcome.failure
    return failure and msgspec.structs.replace(failure, chain=(visit, *failure.chain))

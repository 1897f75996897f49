"""What a run is given to work with."""

from __future__ import annotations

from typing import Protocol

from pflow.kernel.scope import Ready
from pflow.model.run import AnyRecord


class Log(Protocol):
    """Where records go."""

    def append(self, record: AnyRecord) -> None:
        """Write one record."""

    def sync(self) -> None:
        """Force what was written to disk."""


class Watcher(Protocol):
    """Told of every visit whose state changed, to keep views of the run."""

    def touch(self, visit: str, ready: Ready | None) -> None:
        """A visit started, or (without ``ready``) changed."""

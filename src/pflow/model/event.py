"""Events: what subscribers see. Envelope and names are one shape for every dialect.

``{id, timestamp, context, event}``; ``event.type`` is the kind: ``phase:start``, ``task:complete``, ``agent:text``…
"""

from __future__ import annotations

from typing import Any

import msgspec


class Context(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where in a run an event happened: phase, task and agent are nested."""

    run_id: str = ""
    phase: str = ""
    task: str = ""
    agent: str = ""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happened; ``data`` is flattened beside ``type`` when printed."""

    type: str
    data: dict[str, Any] = {}


class Envelope(msgspec.Struct, frozen=True):
    """An event with its identity, its time and its place."""

    id: str
    timestamp: float
    context: Context
    event: Event

    def to_dict(self) -> dict[str, Any]:
        """The public shape, as printed by ``--events``."""
        context: dict[str, Any] = msgspec.to_builtins(self.context)
        return {
            "id": self.id,
            "timestamp": self.timestamp,
            "context": context,
            "event": {"type": self.event.type, **self.event.data},
        }

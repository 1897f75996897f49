"""The feed: a hub that gives each event to every subscriber, in order."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pflow.model.event import Context, Envelope, Event

Sink = Callable[[Envelope], None]


class Hub:
    """Publishes envelopes; without subscribers an event costs one comparison."""

    __slots__ = ("_count", "redact", "sinks")

    def __init__(self, *sinks: Sink) -> None:
        self.sinks: list[Sink] = list(sinks)
        self._count = 0
        self.redact: Callable[[dict[str, Any]], dict[str, Any]] | None = None  # what leaves here carries no secret

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Add a subscriber; the returned function removes it."""
        self.sinks.append(sink)
        return lambda: self.sinks.remove(sink)

    def emit(self, context: Context, kind: str, data: dict[str, Any], now: float | None = None) -> None:
        """Publish an event."""
        if not self.sinks:
            return
        self._count += 1
        if self.redact is not None:
            data = self.redact(data)
        stamp = time.time() if now is None else now
        envelope = Envelope(f"evt-{self._count}", stamp, context, Event(kind, data))
        for sink in self.sinks:
            sink(envelope)

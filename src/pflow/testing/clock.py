"""A clock that needs no waiting."""

from __future__ import annotations

import asyncio


class FakeClock:
    """Time passes only when somebody sleeps, and then at once; ``slept`` tells for how long."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self.slept: list[float] = []

    def now(self) -> float:
        """Seconds since the epoch, as this clock has it."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Let time pass, and others run."""
        wanted = max(0.0, seconds)
        self.slept.append(wanted)
        self._now += wanted
        await asyncio.sleep(0)

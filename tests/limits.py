"""Limits in time that are over when a test says so, however fast the machine is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LIMIT = 60.0  # seconds that no test waits for


class _Ahead(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def run_out(work: Coroutine[Any, Any, T], *moments: Callable[[], bool], limit: float = LIMIT) -> T:
    """The result of some work for which time runs out: at each of these moments, so much of it has passed at once."""
    loop = _Ahead()

    async def main() -> T:
        task = asyncio.ensure_future(work)
        for come in moments:
            while not come() and not task.done():
                await asyncio.sleep(0.01)
            for _ in range(100):
                await asyncio.sleep(0)  # whatever has arrived by now is taken in
            loop.ahead += limit
        return await task

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main())

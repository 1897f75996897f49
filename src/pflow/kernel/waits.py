"""Who is at work in a run, and who only waits: when nobody is at work and somebody waits, the run can only pause.

A visit is at work from when it is launched until it has ended, except while it waits for an answer: to a question, to
a pull, to a doubt, or from a workflow that it runs. It may wait for several at once, and is at work again when the last
of them is there.

Whoever answers also counts the visit as at work, there and then. The visit wakes up only when the event loop comes to
it; if it counted itself, the run could look idle in between, and pause with an answer in hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pflow.kernel.memory import AskKey
from pflow.model.records import PULL


class Waits:
    """The waits of one run; ``stuck`` is called, soon, whenever it may be that the run can only pause."""

    def __init__(self, stuck: Callable[[], None]) -> None:
        self._stuck = stuck
        self._open: dict[str, int] = {}  # visits under way → how many answers each waits for; 0: it is at work
        self._at_work = 0  # how many of those wait for nothing
        self._futures: dict[AskKey, asyncio.Future[Any]] = {}
        self._parked: dict[asyncio.Future[Any], AskKey] = {}  # of the futures, those that nobody here is asked about

    def begin(self, visit: str) -> None:
        """A visit is at work."""
        self._open[visit] = 0
        self._at_work += 1

    def end(self, visit: str) -> None:
        """A visit is not at work any more."""
        if not self._open.pop(visit):  # else it was left waiting, and is not counted
            self._at_work -= 1
        if self._parked:
            self._look()

    @contextmanager
    def aside(self, visit: str) -> Iterator[None]:
        """A visit has others work for it, and only waits for them."""
        self._rest(visit)
        try:
            yield
        finally:
            self._resume(visit)

    async def wait(self, key: AskKey, ask: Callable[[], Any] | None = None) -> Any:
        """Wait for an answer; where somebody is here to ``ask``, the visit is at work until they had their say."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._futures[key] = future
        try:
            if ask is not None:
                await ask()
            if not future.done():
                self._park(future, key)
            return await future
        finally:
            self._unpark(future)  # when it was cancelled: nobody answered, so nobody has counted us
            if self._futures.get(key) is future:
                del self._futures[key]

    def answer(self, key: AskKey, value: Any = None) -> bool:
        """Give an answer; False when nobody waits for it any more."""
        future = self._futures.get(key)
        if future is None or future.done():
            return False
        self._unpark(future)
        future.set_result(value)
        return True

    def only_pause(self) -> bool:
        """Whether nobody is at work, and somebody waits for an answer from outside.

        Pulls do not count: they are answered by visits, and a ring of them by the scheduler.
        """
        return not self._at_work and any(not port.startswith(PULL) for _, port, _ in self._parked.values())

    def _park(self, future: asyncio.Future[Any], key: AskKey) -> None:
        self._parked[future] = key
        self._rest(key[0])
        self._look()

    def _unpark(self, future: asyncio.Future[Any]) -> None:
        key = self._parked.pop(future, None)
        if key is not None:
            self._resume(key[0])

    def _rest(self, visit: str) -> None:
        if visit in self._open:
            self._at_work -= not self._open[visit]
            self._open[visit] += 1

    def _resume(self, visit: str) -> None:
        if visit in self._open:
            self._open[visit] -= 1
            self._at_work += not self._open[visit]

    def _look(self) -> None:
        """Have it looked into, once everything that is due has had its turn: it may go on without anybody's answer."""
        if self._parked and not self._at_work:
            asyncio.get_running_loop().call_soon(self._stuck)

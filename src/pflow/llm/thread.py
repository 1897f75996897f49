"""Work that blocks, in a thread that is left behind when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
Say = Callable[[str], None]


class NobodyWaits(Exception):
    """Nobody waits for the work any more: raised inside it, where it next says something."""


async def in_thread(work: Callable[[Say], T], on_text: Say | None = None) -> T:
    """The work's result; what it says is heard here, and cancelling leaves it where it next blocks.

    The thread is no thread of a pool: neither the end of the loop nor that of the process waits for it.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()
    left = threading.Event()

    def say(piece: str) -> None:
        if left.is_set():
            raise NobodyWaits
        if on_text is not None:
            loop.call_soon_threadsafe(on_text, piece)

    def settle(function: Callable[[Any], None], value: Any) -> None:
        if not result.done():
            function(value)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = (result.set_result, work(say))
        except BaseException as error:  # noqa: BLE001 - it is raised where the work is awaited
            outcome = (result.set_exception, error)
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, *outcome)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="model", daemon=True).start()
    try:
        return await result
    finally:
        left.set()

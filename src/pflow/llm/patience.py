"""Repeating a call that failed before anything of its answer arrived: twice at most, and each time said."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pflow.llm.errors import ModelError
from pflow.llm.interface import OnRetry, Reply, Retry

RETRIES = 2
LONGEST_WAIT = 30.0  # seconds that a server may ask us to wait before we rather fail


async def patiently(call: Callable[[], Awaitable[Reply]], on_retry: OnRetry | None) -> Reply:
    """The reply; errors say by their ``wait`` whether the call may be repeated, and when."""
    for attempt in range(1, RETRIES + 1):
        try:
            return await call()
        except ModelError as error:
            if error.wait is None or error.wait > LONGEST_WAIT:
                raise
            retry = Retry(attempt, error.message, error.wait)
        if on_retry is not None:
            on_retry(retry)
        await asyncio.sleep(retry.delay)
    return await call()

"""Repeating a call that failed before anything of its answer arrived: twice at most, and each time said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pflow import http
from pflow.llm.errors import ModelError
from pflow.llm.interface import OnRetry, Reply, RetryNotice


async def patiently(call: Callable[[], Awaitable[Reply]], on_retry: OnRetry | None) -> Reply:
    """The reply; errors say by their ``wait`` whether the call may be repeated, and when."""

    def tell(error: ModelError, attempt: int, wait: float) -> None:
        if on_retry is not None:
            on_retry(RetryNotice(attempt, error.message, wait))

    return await http.patiently(call, ModelError, lambda error, _: error.wait, tell)

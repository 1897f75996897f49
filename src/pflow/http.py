"""What everybody needs who speaks HTTP: the package for it, trusted certificates, patience, and reasons in words."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

from pflow.errors import NodeError

RETRIES = 2
BACKOFF = 0.2  # seconds before the first retry of a connection
LONGEST_WAIT = 30.0  # seconds that a server may ask us to wait before we rather fail

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


async def patiently(
    call: Callable[[], Awaitable[T]],
    failure: type[E] | tuple[type[E], ...],
    pause: Callable[[E, int], float | None],
    tell: Callable[[E, int, float], None],
) -> T:
    """What a call gives; after a ``failure`` it is repeated, twice at most, in as many seconds as ``pause`` says."""
    for attempt in range(1, RETRIES + 1):
        try:
            return await call()
        except failure as error:
            wait = pause(error, attempt)
            if wait is None or wait > LONGEST_WAIT:
                raise
            tell(error, attempt, wait)
        await asyncio.sleep(wait)
    return await call()


def retry_after(text: str) -> float | None:
    """The seconds that a server asks to wait, which it gives as a number or as a date."""
    text = text.strip()
    if text.replace(".", "", 1).isdecimal():
        return float(text[:12])
    from email.utils import mktime_tz, parsedate_tz
    from time import time

    parsed = parsedate_tz(text)
    return max(0.0, mktime_tz(parsed) - time()) if parsed else None


def reason(error: BaseException) -> str:
    """Why a request has no answer."""
    for cause in causes(error):
        if isinstance(cause, socket.gaierror):
            return "there is no such host"
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed: {getattr(cause, 'verify_message', '') or cause.reason or cause}"
    return str(error) or type(error).__name__


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and all that led to it."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                yield from causes(inner)
        error = error.__cause__ or error.__context__


def package(who: str, extra: str) -> Any:
    """The package httpx, which not everybody needs; ``extra`` of ours brings it."""
    try:
        import httpx
    except ImportError:
        raise NodeError(f"{who} needs the package httpx", f"pip install 'pflow[{extra}]'", "validation") from None
    return httpx


@lru_cache(maxsize=1)
def certificates() -> ssl.SSLContext:
    """Trusted certificates take longer to load than most requests take, so it is done once."""
    import httpx

    return httpx.create_ssl_context()

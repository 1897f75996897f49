"""Serving: over stdin and stdout, or over HTTP on this machine with a token."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

from pflow.app.settings import secret
from pflow.errors import UsageError
from pflow.mcp_server.bounds import Bounds
from pflow.mcp_server.server import Service

TOKEN = "PFLOW_MCP_TOKEN"
HOST = "127.0.0.1"
PATH = "/mcp"
GRACE = 15.0  # seconds that runs get to stop when the server is told to


def serve(bounds: Bounds, port: int | None, say: Callable[[str], None]) -> int:
    """Serve over stdin and stdout, or over HTTP at a port (0: a free one); ends with its client, or at a signal."""
    service = Service(bounds)
    work = _stdio(service) if port is None else _http(service, port, say)
    # Not asyncio.run: it would wait for the thread that reads stdin, and nobody else closes that.
    loop = asyncio.new_event_loop()
    return loop.run_until_complete(_until_told(service, work))


async def _until_told(service: Service, work: Awaitable[None]) -> int:
    """Serve until the client is gone or a signal comes; runs under way are interrupted, and can be resumed."""
    told = asyncio.get_running_loop().create_future()

    def hear(number: int) -> None:
        if not told.done():
            told.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, hear, number)
    serving = asyncio.ensure_future(work)
    await asyncio.wait({serving, told}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
        return 0
    for run in list(service.active):
        run.interrupt()
    if service.active:
        await asyncio.wait(service.active.values(), timeout=GRACE)
    return 128 + int(told.result())


async def _stdio(service: Service) -> None:
    from mcp.server.stdio import stdio_server

    server = service.server()
    async with stdio_server() as (read, write):  # what nodes print goes to stderr meanwhile
        await server.run(read, write, server.create_initialization_options())


async def _http(service: Service, port: int, say: Callable[[str], None]) -> None:
    import uvicorn

    token, made = _token()
    with _bound(port) as listening:
        address = f"http://{HOST}:{listening.getsockname()[1]}{PATH}"
        app = Guarded(service.server().streamable_http_app(streamable_http_path=PATH, host=HOST), token)
        config = uvicorn.Config(app, log_level="error", lifespan="on", timeout_graceful_shutdown=1)
        say(f"✓ Serving at {address}" + (f"\n  Authorization: Bearer {token}" if made else f" ({TOKEN})"))
        server = uvicorn.Server(config)
        server.capture_signals = nullcontext  # signals are ours
        await server.serve(sockets=[listening])


def _token() -> tuple[str, bool]:
    """The user's token, or a new one."""
    known = secret(TOKEN)
    return (known, False) if known else (secrets.token_urlsafe(24), True)


def _bound(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()  # before the address is told: whoever reads it may come at once
    except (OSError, OverflowError) as error:
        listening.close()
        raise UsageError(f"port {port} cannot be used: {getattr(error, 'strerror', error)}") from None
    return listening


class Guarded:
    """A web application that only who has the token may use."""

    def __init__(self, inner: Callable[..., Awaitable[None]], token: str) -> None:
        self._inner = inner
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve, or refuse."""
        if scope["type"] == "http" and not self._allowed(scope):
            headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"error": "give the token: Authorization: Bearer"}'})
            return
        await self._inner(scope, receive, send)

    def _allowed(self, scope: Any) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)

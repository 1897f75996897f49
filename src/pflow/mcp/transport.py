"""The road to a server: the pipes of a process that is started here, or HTTP."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pflow.mcp.config import Server

if TYPE_CHECKING:
    from mcp.client import Transport

LARGEST = 64 << 20  # bytes of one event of a server that is reached by HTTP
_CONNECT = 30.0  # seconds
_SHOWN = 200  # characters


class Watch:
    """Sees when a server has gone, and what it says that is no message."""

    def __init__(self, gone: Callable[[], None]) -> None:
        self.gone = gone
        self.garbage = ""
        self.refused = 0  # the HTTP status that the last request was refused with

    def heard(self, item: Any) -> None:
        """Take note of what could not be read."""
        if isinstance(item, Exception):
            found = [one.get("input") for one in item.errors()] if hasattr(item, "errors") else []
            text = found[0] if found and isinstance(found[0], str) else str(item)
            self.garbage = repr(text[:_SHOWN])


class _Watched:
    """A stream of messages that is watched."""

    def __init__(self, stream: Any, watch: Watch) -> None:
        self._stream = stream
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def receive(self) -> Any:
        try:
            item = await self._stream.receive()
        except BaseException:
            self._watch.gone()
            raise
        self._watch.heard(item)
        return item

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._stream.__anext__()
        except BaseException:  # its end, or ours
            self._watch.gone()
            raise
        self._watch.heard(item)
        return item

    async def __aenter__(self) -> _Watched:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


def transport(spec: Server, workspace: Path, words: TextIO, watch: Watch) -> Transport:
    """The road to a server, to be entered by a client."""
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # its complaints reach users as errors of ours
    made: Any = _watched(_plain(spec, workspace, words, watch), watch)
    return made


@asynccontextmanager
async def _watched(road: Any, watch: Watch) -> AsyncIterator[tuple[Any, Any]]:
    async with road as (read, write):
        yield _Watched(read, watch), write


def _plain(spec: Server, workspace: Path, words: TextIO, watch: Watch) -> Any:
    if not spec.remote:
        return _process(spec, workspace, words)
    return _sse(spec) if spec.type == "sse" else _http(spec, watch)


def _process(spec: Server, workspace: Path, words: TextIO) -> Any:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    # Of our environment it gets what any program needs (PATH, HOME, …), and what was declared.
    parameters = StdioServerParameters(
        command=spec.command,
        args=list(spec.args),
        env=dict(spec.env),
        cwd=workspace / Path(spec.cwd).expanduser(),
        encoding_error_handler="replace",
    )
    return stdio_client(parameters, errlog=words)


@asynccontextmanager
async def _http(spec: Server, watch: Watch) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def note(response: Any) -> None:
        watch.refused = response.status_code if response.status_code >= 400 else 0

    limit = httpx2.Timeout(_CONNECT, read=None)  # how long a call may take is said elsewhere
    async with (
        httpx2.AsyncClient(headers=spec.headers, timeout=limit, event_hooks={"response": [note]}) as client,
        streamable_http_client(spec.url, http_client=client, max_sse_event_size=LARGEST) as streams,
    ):
        yield streams


def _sse(spec: Server) -> Any:
    from mcp.client.sse import sse_client

    return sse_client(spec.url, headers=dict(spec.headers))

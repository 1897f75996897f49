"""A connection to one MCP server: made at first use, shared by all visits, made anew when the server died.

The client lives in a task of its own, since it must be opened and closed in the same one; calls come from any task. A
call that is given up is cancelled at the server. A server that then no longer answers is ended.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pflow.errors import NodeError, suggest
from pflow.mcp.config import Server
from pflow.mcp.stderr import LastWords
from pflow.mcp.transport import Watch, transport
from pflow.model.schema import check, problem

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, Tool

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
PROBE = 5.0  # seconds that a server has to show that it still answers, after a call was given up
PAGES = 100  # of a list of tools
_SERVERS_OWN = ("connection", "lost", "timeout")  # failures of the server, and not of what it was asked for


class Connection:
    """One server, for as long as it is used."""

    def __init__(self, name: str, spec: Server, workspace: Path, context: contextvars.Context | None = None) -> None:
        self.name = name
        self._spec = spec
        self._workspace = workspace
        self._context = context
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._probe: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[None] | None = None
        self._end = asyncio.Event()  # the server is gone, or is no longer wanted
        self._calls = 0  # under way
        self._words: LastWords | None = None
        self._watch = Watch(self._end.set)
        self.tools: dict[str, Tool] = {}
        self.program = ""

    # ── calling ──

    async def call(self, tool: str, arguments: dict[str, Any], progress: Progress | None = None) -> CallToolResult:
        """The answer of a tool; raises ``NodeError`` where there is none."""
        from mcp import MCPError
        from pydantic import ValidationError

        client = await self.open()
        self._check(tool, arguments)
        self._calls += 1
        given_up = True
        try:
            answer = await client.call_tool(tool, arguments, self._spec.timeout, progress)
            given_up = False
            return answer
        except MCPError as error:
            given_up = _timed_out(error)
            raise await self._refused(tool, error) from None
        except (RuntimeError, ValidationError) as error:  # what the client says of an answer that does not fit
            given_up = False
            raise self._misfit(tool, error) from None
        finally:
            self._calls -= 1
            if given_up and not self._calls and not self._end.is_set():
                self._probe = asyncio.create_task(self._look(client))

    async def open(self) -> Client:
        """The client, connected; the server is started if it is not up."""
        while True:
            if self._probe is not None and not self._probe.done():
                await asyncio.wait({self._probe})
            if self._end.is_set() and self._owner is not None:
                await asyncio.wait({self._owner})  # the old one is gone before a new one comes
            if self._owner is None or self._owner.done():
                self._start()
            assert self._opened is not None
            opened = self._opened
            await asyncio.wait({opened})  # waited for, not awaited: one who is cancelled must not cancel the others
            opened.result()
            if self._client is not None:
                return self._client

    async def close(self) -> None:
        """End the server."""
        self._end.set()
        tasks = {task for task in (self._owner, self._probe) if task is not None}
        if tasks:
            await asyncio.wait(tasks)

    # ── the server's life ──

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._opened = loop.create_future()
        self._watch = Watch(self._end.set)
        self._owner = loop.create_task(self._own(self._opened), context=self._context)

    async def _own(self, opened: asyncio.Future[None]) -> None:
        """Hold the client open until the server is gone or no longer wanted."""
        owner = asyncio.current_task()
        assert owner is not None
        self._words = LastWords()
        late = asyncio.get_running_loop().call_later(self._spec.start_timeout, owner.cancel)
        try:
            async with self._connected() as client:
                late.cancel()
                self._client = client
                opened.set_result(None)
                await self._end.wait()
        except asyncio.CancelledError:
            if opened.done():
                raise
            opened.set_exception(self._never_ready())
        except Exception as error:  # noqa: BLE001 - a stranger's program and a network: whatever they do is an answer
            if not opened.done():
                opened.set_exception(self._unreachable(error))
        finally:
            late.cancel()
            self._end.set()
            self._client = None
            self._words.close()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        from mcp import Client, types

        from pflow.version import __version__

        assert self._words is not None
        info = types.Implementation(name="pflow", version=__version__)
        road = transport(self._spec, self._workspace, self._words.stream, self._watch)
        async with Client(road, client_info=info) as client:
            self.tools = await _listed(client)
            if client.server_info is not None:
                self.program = f"{client.server_info.name} {client.server_info.version}".strip()
            yield client

    async def _look(self, client: Client) -> None:
        """See whether the server still answers; one that does not is ended."""
        from mcp import MCPError

        try:
            async with asyncio.timeout(PROBE):
                await client.list_tools(cache_mode="bypass")
        except TimeoutError:
            self._end.set()
        except MCPError:
            return  # an answer, too; or it is gone, which is noticed elsewhere

    # ── what went wrong ──

    def _check(self, tool: str, arguments: dict[str, Any]) -> None:
        """Refuse a call that the tool, as it is now, does not take."""
        known = self.tools.get(tool)
        sync = f"pflow mcp sync {self.name}"
        if known is None:
            hint = f"{suggest(tool, self.tools, 'its tools')}; then: {sync}"
            raise self._error(f'MCP server "{self.name}" has no tool "{tool}" any more', hint, "validation")
        try:
            wrong = problem(arguments, check(known.input_schema), "params")
        except NodeError:  # a schema that we do not understand: the server will
            return
        if wrong:
            text = f"{tool} (MCP server {self.name}): {wrong}"
            raise self._error(text, f"its schema may have changed: {sync}", "validation")

    async def _refused(self, tool: str, error: Any) -> NodeError:
        from mcp_types import CONNECTION_CLOSED

        if error.code == CONNECTION_CLOSED:
            self._end.set()
            if self._owner is not None:
                await asyncio.wait({self._owner})  # so that its last words are all there
            text = f'MCP server "{self.name}" ended while it was asked for {tool}'
            again = (
                f"is it up? {self._spec.shown()}"
                if self._spec.remote
                else "it is started again when it is needed again"
            )
            return self._error(text, again, "lost")
        if _timed_out(error):
            text = f"{tool} (MCP server {self.name}) timed out after {self._spec.timeout:g} s"
            hint = f'raise "timeout" of "{self.name}" in mcp.json, or make the work smaller'
            return self._error(text, hint, "timeout")
        return self._error(f"{tool} (MCP server {self.name}): {error.message}", "", "tool")

    def _misfit(self, tool: str, error: Exception) -> NodeError:
        """An answer that does not fit the tool's own schema, or MCP."""
        cause = error.__cause__
        where = getattr(cause, "json_path", "")
        said = f"{where.replace('$', 'its answer', 1)}: {getattr(cause, 'message', '')}" if where else str(error)
        text = f"{tool} (MCP server {self.name}) answered with what does not fit: {said[:1000]}"
        return self._error(text, "this is a fault of the server", "tool")

    def _never_ready(self) -> NodeError:
        text = f'MCP server "{self.name}" was not ready after {self._spec.start_timeout:g} s'
        return self._error(text, 'if it needs longer, raise "startTimeout" in mcp.json', "connection")

    def _unreachable(self, error: BaseException) -> NodeError:
        leaf = _leaf(error)
        if isinstance(leaf, NodeError):
            return leaf
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        if isinstance(leaf, OSError) and not self._spec.remote and leaf.filename is not None:
            text = f'MCP server "{self.name}" cannot be started: {leaf.strerror}: {leaf.filename}'
            return self._error(text, "install it, or correct its command in mcp.json", "connection")
        if isinstance(leaf, MCPError) and leaf.code == CONNECTION_CLOSED:
            return self._error(f'MCP server "{self.name}" ended before it was ready', "", "connection")
        said = str(leaf) or type(leaf).__name__
        hint = f"is there one at {self._spec.shown()}?" if self._spec.remote else ""
        if self._watch.refused:
            said = f"it answered with the HTTP status {self._watch.refused}"
        if self._watch.refused in (401, 403):
            hint = "give it what it wants: pflow mcp add … --header 'Authorization: Bearer ${TOKEN}'"
        return self._error(f'MCP server "{self.name}" cannot be reached: {said}', hint, "connection")

    def _error(self, text: str, hint: str, kind: str) -> NodeError:
        words = self._words.text() if self._words is not None and kind in _SERVERS_OWN else ""
        details: dict[str, object] = {"server": self.name}
        if words:
            text += f"\nits last words:\n{words}"
            details["stderr"] = words
        if self._watch.garbage and kind in _SERVERS_OWN:
            text += f"\non stdout it printed what is no MCP message: {self._watch.garbage}"
        return NodeError(text, hint, kind, details)


async def _listed(client: Client) -> dict[str, Tool]:
    """Every tool of a server, by name."""
    found: dict[str, Tool] = {}
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        found.update((tool.name, tool) for tool in page.tools)
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _timed_out(error: Any) -> bool:
    from mcp_types import REQUEST_TIMEOUT

    return bool(error.code == REQUEST_TIMEOUT)


def _leaf(error: BaseException) -> BaseException:
    """The first of the errors in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

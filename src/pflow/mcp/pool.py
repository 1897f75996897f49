"""The connections of one run: a server is started when it is first used, and ended with the run."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pflow.errors import NodeError, UsageError, WorkflowError, needed
from pflow.nodes.step import StepContext

if TYPE_CHECKING:
    from pflow.mcp.connection import Connection

_POOL: ContextVar[Pool | None] = ContextVar("mcp_pool", default=None)


@asynccontextmanager
async def connections(home: Path | None, workspace: Path) -> AsyncIterator[None]:
    """Let everything that runs in here, in any task, share its connections to servers; they are ended afterwards."""
    made = Pool(home, workspace)
    token = _POOL.set(made)
    try:
        yield
    finally:
        _POOL.reset(token)
        await made.close()


def pool() -> Pool:
    """The connections of the run around us."""
    found = _POOL.get()
    if found is None:
        raise NodeError("MCP servers are reached in a run, and there is none around this call")
    return found


class Pool:
    """Connections by the names of their servers."""

    def __init__(self, home: Path | None, workspace: Path) -> None:
        self._home = home
        self._workspace = workspace
        self._connections: dict[str, Connection] = {}
        self._context = contextvars.copy_context()  # servers outlive the visits that start them

    async def call(self, step: StepContext, server: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The outputs of a call of a tool."""
        from pflow.mcp.answer import outputs

        connection = self._connection(server)

        async def progress(done: float, total: float | None, message: str | None) -> None:
            step.progress(done, total)
            if message:
                step.log.info(message)

        return outputs(await connection.call(tool, arguments, progress), server, tool)

    def _connection(self, name: str) -> Connection:
        if name not in self._connections:
            needed("mcp", "MCP")
            from pflow.mcp.config import get, resolved
            from pflow.mcp.connection import Connection

            try:
                spec = resolved(name, get(name, self._home), self._home)
            except (UsageError, WorkflowError) as error:
                raise NodeError(error.message, error.hint, "validation", {"server": name}) from None
            self._connections[name] = Connection(name, spec, self._workspace, self._context)
        return self._connections[name]

    async def close(self) -> None:
        """End every server that was started."""
        if self._connections:
            await asyncio.gather(*(connection.close() for connection in self._connections.values()))

"""What the registry is offered: the tools of every MCP server that was synced. Nothing is read before it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pflow.errors import nearest
from pflow.nodes.registry import normal
from pflow.nodes.type import NodeType


class SyncedTypes:
    """The types of every synced server, for the registry."""

    prefix = "mcp"

    def __init__(self, home: Path | None = None) -> None:
        self._home = home

    def types(self) -> Iterator[NodeType]:
        """One type for each tool."""
        from pflow.mcp import catalogue
        from pflow.mcp.types import ToolType

        for name, server, offered in catalogue.everything(self._home):
            for tool in offered.tools if offered is not None else ():
                yield ToolType(name, server, tool)

    def hint(self, name: str) -> str:
        """What to do about a type that is not known; nothing where the names of others will do."""
        from pflow.mcp import catalogue
        from pflow.mcp.catalogue import type_name

        servers = {server: offered for server, _, offered in catalogue.everything(self._home)}
        if not servers:
            return "no MCP server is known here: pflow mcp add NAME -- COMMAND, then pflow mcp sync"
        whose = [server for server in servers if normal(name).startswith(normal(type_name(server, "")))]
        if not whose:
            return f"MCP servers: {', '.join(servers)}"
        server = max(whose, key=len)
        offered = servers[server]
        if offered is None:
            return f'the MCP server "{server}" was never asked for its tools: pflow mcp sync {server}'
        names = [type_name(server, tool.name) for tool in offered.tools]
        close = nearest(name, names)
        meant = f'did you mean "{close}"? ' if close else ""
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        return f"{meant}tools of {server}: {shown or 'none'}; if it has more by now: pflow mcp sync {server}"

"""Asking servers for their tools, and keeping what they say."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from pflow.errors import PflowError
from pflow.mcp import catalogue, config
from pflow.mcp.catalogue import Offered, ServerTool, type_name
from pflow.mcp.connection import Connection
from pflow.nodes.registry import normal


class Synced(msgspec.Struct, frozen=True):
    """What came of asking one server."""

    server: str
    types: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    problem: PflowError | None = None


async def sync(name: str, home: Path | None = None) -> Synced:
    """Ask a server for its tools, and keep what it says; what was known stays where it cannot be asked."""
    try:
        spec = config.resolved(name, config.get(name, home), home)
        offered = await _asked(name, spec)
    except PflowError as error:
        return Synced(name, problem=error)
    before = catalogue.of(name, home)
    catalogue.keep(offered, home)
    now = _names(offered)
    then = _names(before) if before is not None else []
    return Synced(
        name,
        tuple(now),
        tuple(one for one in now if one not in then),
        tuple(one for one in then if one not in now),
        tuple(_warnings(offered, home)),
    )


async def _asked(name: str, spec: config.Server) -> Offered:
    connection = Connection(name, spec, Path.cwd())
    try:
        await connection.open()
        tools = tuple(_tool(one) for one in connection.tools.values())
        return Offered(name, time.time(), tools, connection.program)
    finally:
        await connection.close()


def _tool(tool: Any) -> ServerTool:
    read_only = tool.annotations is not None and tool.annotations.read_only_hint is True
    return ServerTool(tool.name, tool.description or tool.title or "", tool.input_schema, tool.output_schema, read_only)


def _names(offered: Offered) -> list[str]:
    return [type_name(offered.server, tool.name) for tool in offered.tools]


def _warnings(offered: Offered, home: Path | None) -> Iterable[str]:
    """Tools whose types would have the same name: only the first is known by it."""
    taken: dict[str, str] = {}
    for server, _, known in catalogue.everything(home):
        for tool in known.tools if known is not None else ():
            key, whose = normal(type_name(server, tool.name)), f"{tool.name} of {server}"
            if key in taken and offered.server in (server, taken[key].rpartition(" of ")[2]):
                yield f"{whose} is hidden by {taken[key]}: both are called {type_name(server, tool.name)}"
            taken.setdefault(key, whose)

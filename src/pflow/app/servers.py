"""MCP servers of this user: added, imported, asked for their tools, listed and removed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pflow.app.problems import error_view, problems_of
from pflow.errors import UsageError, needed
from pflow.mcp import catalogue, config
from pflow.mcp.config import Server

if TYPE_CHECKING:
    from pflow.mcp.sync import Synced


class Listed(msgspec.Struct, frozen=True):
    """A server, and what it offered when it was last asked."""

    name: str
    where: str
    remote: bool
    disabled: bool
    synced_at: float | None
    program: str | None
    types: tuple[str, ...]


def listed() -> list[Listed]:
    """The servers by name."""
    return [_listed(name, server) for name, server in config.load().items()]


def _listed(name: str, server: Server) -> Listed:
    known = server.shown(), server.remote, server.disabled
    offered = catalogue.of(name)
    if offered is None:
        return Listed(name, *known, None, None, ())
    types = tuple(catalogue.type_name(name, tool.name) for tool in offered.tools)
    return Listed(name, *known, offered.at, offered.program, types)


def add(name: str, words: Sequence[str], env: Iterable[str], headers: Iterable[str], replace: bool) -> list[str]:
    """Add the server at a URL, or the one that a command starts; tells which secrets were moved to the settings."""
    first, *rest = words
    variables, sent = config.pairs(env, "variable", "="), config.pairs(headers, "header", ":")
    if re.match(r"https?://", first):
        if rest or variables:
            raise UsageError("a server at a URL takes no command and no variables", f"pflow mcp add {name} {first}")
        server = Server(type="http", url=first, headers=sent)
    else:
        if sent:
            raise UsageError("only a server at a URL takes headers", "--env K=V gives a variable to a command")
        server = Server(command=first, args=tuple(rest), env=variables)
    return _added({name: server}, replace)


def import_file(path: Path, replace: bool) -> tuple[list[str], list[str]]:
    """Add the servers that a file lists; tells their names, and which secrets were moved to the settings."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    servers = config.parse(data, str(path))
    if not servers:
        raise UsageError(f"{path} lists no MCP servers")
    return list(servers), _added(servers, replace)


def _added(servers: Mapping[str, Server], replace: bool) -> list[str]:
    moved = config.add(servers, replace=replace)
    for name in servers:
        catalogue.forget(name)  # what another server of that name offered
    return moved


def remove(name: str) -> None:
    """Forget a server, and what it offered."""
    config.remove(name)
    catalogue.forget(name)


async def sync(names: Sequence[str]) -> list[Synced]:
    """Ask servers for their tools, or all that are in use."""
    asked = names or [name for name, server in config.load().items() if not server.disabled]
    for name in asked:
        config.get(name)
    if not asked:
        raise UsageError("there are no MCP servers to ask", "pflow mcp add NAME -- COMMAND")
    needed("mcp", "MCP")
    from pflow.mcp.sync import sync as ask

    return list(await asyncio.gather(*(ask(name) for name in asked)))


def synced_view(one: Synced) -> dict[str, Any]:
    """What came of asking a server, as data."""
    view = {"server": one.server, "types": one.types, "new": one.new, "gone": one.gone, "warnings": one.warnings}
    return view | {"errors": [error_view(problem) for problem in problems_of(one.problem)] if one.problem else []}

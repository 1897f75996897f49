"""``pflow mcp``: the MCP servers whose tools are node types."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pflow.app.problems import error_view, problems_of
from pflow.app.wording import ago, one_line
from pflow.cli.complaints import print_json, told
from pflow.cli.screen import Screen, result
from pflow.cli.words import Line
from pflow.errors import PflowError, UsageError
from pflow.mcp import catalogue, config
from pflow.mcp.config import Server
from pflow.mcp.pool import needed

if TYPE_CHECKING:
    from pflow.mcp.sync import Synced


def add(line: Line) -> int:
    """``pflow mcp add NAME -- COMMAND …`` or ``pflow mcp add NAME URL``."""
    name, first, *rest = line.words
    env = config.pairs(line.options.get("env", ()), "variable", "=")
    headers = config.pairs(line.options.get("header", ()), "header", ":")
    if re.match(r"https?://", first):
        if rest or env:
            raise UsageError("a server at a URL takes no command and no variables", f"pflow mcp add {name} {first}")
        server = Server(type="http", url=first, headers=headers)
    else:
        if headers:
            raise UsageError("only a server at a URL takes headers", "--env K=V gives a variable to a command")
        server = Server(command=first, args=tuple(rest), env=env)
    _added(line, {name: server})
    return 0


def import_file(line: Line) -> int:
    """``pflow mcp import FILE``."""
    path = Path(line.words[0])
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    servers = config.parse(data, str(path))
    if not servers:
        raise UsageError(f"{path} lists no MCP servers")
    _added(line, servers)
    return 0


def _added(line: Line, servers: dict[str, Server]) -> None:
    moved = config.add(servers, replace=line.has("yes"))
    for name in servers:
        catalogue.forget(name)  # what another server of that name offered
    if not line.level:
        return
    screen = Screen()
    for name in servers:
        screen.say(f"✓ Added {name!r}")
    if moved:
        screen.say(f"ℹ Kept in your settings (section env): {', '.join(moved)}")
    screen.say(f"  next: pflow mcp sync {' '.join(servers)}")


def sync(line: Line) -> int:
    """``pflow mcp sync [NAME …]``."""
    names = line.words or [name for name, server in config.load().items() if not server.disabled]
    for name in names:
        config.get(name)
    if not names:
        raise UsageError("there are no MCP servers to ask", "pflow mcp add NAME -- COMMAND")
    needed()
    found = asyncio.run(_asked(names))
    for one in found:
        _tell(line, one)
    if line.json:
        print_json([_view(one) for one in found])
    return 1 if any(one.problem is not None for one in found) else 0


async def _asked(names: list[str]) -> list[Synced]:
    from pflow.mcp.sync import sync as ask

    return list(await asyncio.gather(*(ask(name) for name in names)))


def _tell(line: Line, one: Synced) -> None:
    screen = Screen()
    if one.problem is not None:
        told(screen, one.problem)
        return
    if not line.level:
        return
    changes = [f"{len(one.new)} new"] * bool(one.new) + [f"gone: {', '.join(one.gone)}"] * bool(one.gone)
    count = f"{len(one.types)} tool{'' if len(one.types) == 1 else 's'}"
    screen.say(f"✓ {one.server}: {', '.join([count, *changes])}")
    for warning in one.warnings:
        screen.say(f"warning: {warning}")
    if not line.json:
        result("\n".join(one.types) or "no tools")


def _view(one: Synced) -> dict[str, Any]:
    error: PflowError | None = one.problem
    return {
        "server": one.server,
        "types": list(one.types),
        "new": list(one.new),
        "gone": list(one.gone),
        "warnings": list(one.warnings),
        "errors": [error_view(problem) for problem in problems_of(error)] if error is not None else [],
    }


def list_servers(line: Line) -> int:
    """``pflow mcp list``."""
    known = config.load()
    if line.json:
        print_json([_server_view(name, server) for name, server in known.items()])
    elif known:
        wide = max(map(len, known))
        result("\n".join(f"{name:{wide}}  {_state(name, server)}" for name, server in known.items()))
    else:
        Screen().say("there are no MCP servers; `pflow mcp add NAME -- COMMAND` adds one")
    return 0


def _state(name: str, server: Server) -> str:
    import time

    offered = catalogue.of(name)
    tools = f"{len(offered.tools)} tools, asked {ago(time.time() - offered.at)}" if offered else "never asked: sync it"
    return f"{'disabled' if server.disabled else tools}  {one_line(server.shown(), 120)}"


def _server_view(name: str, server: Server) -> dict[str, Any]:
    offered = catalogue.of(name)
    return {
        "name": name,
        "where": server.shown(),
        "remote": server.remote,
        "disabled": server.disabled,
        "synced_at": offered.at if offered else None,
        "program": offered.program if offered else None,
        "types": [catalogue.type_name(name, tool.name) for tool in offered.tools] if offered else [],
    }


def remove(line: Line) -> int:
    """``pflow mcp remove NAME``."""
    config.remove(line.words[0])
    catalogue.forget(line.words[0])
    if line.level:
        Screen().say(f"✓ Removed {line.words[0]!r}")
    return 0

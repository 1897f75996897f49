"""``pflow mcp``: the MCP servers whose tools are node types, and this engine as one."""

from __future__ import annotations

import asyncio
import gc
import time
from pathlib import Path

from pflow.app import servers
from pflow.app.wording import ago, one_line
from pflow.cli.errors import print_json, told
from pflow.cli.line import Line
from pflow.cli.screen import Screen, result
from pflow.errors import UsageError, needed


def add(line: Line) -> int:
    """``pflow mcp add NAME -- COMMAND …`` or ``pflow mcp add NAME URL``."""
    name, *words = line.words
    env, headers = line.options.get("env", ()), line.options.get("header", ())
    _added(line, [name], servers.add(name, words, env, headers, line.has("yes")))
    return 0


def import_file(line: Line) -> int:
    """``pflow mcp import FILE``."""
    _added(line, *servers.import_file(Path(line.words[0]), line.has("yes")))
    return 0


def _added(line: Line, names: list[str], moved: list[str]) -> None:
    if not line.level:
        return
    screen = Screen()
    for name in names:
        screen.say(f"✓ Added {name!r}")
    if moved:
        screen.say(f"ℹ Kept in your settings (section env): {', '.join(moved)}")
    screen.say(f"  next: pflow mcp sync {' '.join(names)}")


def sync(line: Line) -> int:
    """``pflow mcp sync [NAME …]``."""
    found = asyncio.run(servers.sync(line.words))
    for one in found:
        if one.problem is not None:
            told(Screen(), one.problem)
        elif line.level:
            Screen().say(f"✓ {one.server}: {_changes(len(one.types), one.new, one.gone)}")
            for warning in one.warnings:
                Screen().say(f"warning: {warning}")
            if not line.json:
                result("\n".join(one.types) or "no tools")
    if line.json:
        print_json([servers.synced_view(one) for one in found])
    return 1 if any(one.problem is not None for one in found) else 0


def _changes(count: int, new: tuple[str, ...], gone: tuple[str, ...]) -> str:
    changes = [f"{len(new)} new"] * bool(new) + [f"gone: {', '.join(gone)}"] * bool(gone)
    return ", ".join([f"{count} tool{'' if count == 1 else 's'}", *changes])


def list_servers(line: Line) -> int:
    """``pflow mcp list``."""
    known = servers.listed()
    if line.json:
        print_json(known)
    elif known:
        wide = max(len(one.name) for one in known)
        result("\n".join(f"{one.name:{wide}}  {_state(one)}  {one_line(one.where, 120)}" for one in known))
    else:
        Screen().say("there are no MCP servers; `pflow mcp add NAME -- COMMAND` adds one")
    return 0


def _state(one: servers.Listed) -> str:
    if one.disabled:
        return "disabled"
    if one.synced_at is None:
        return "never asked: sync it"
    return f"{len(one.types)} tools, asked {ago(time.time() - one.synced_at)}"


def remove(line: Line) -> int:
    """``pflow mcp remove NAME``."""
    servers.remove(line.words[0])
    if line.level:
        Screen().say(f"✓ Removed {line.words[0]!r}")
    return 0


def serve(line: Line) -> int:
    """``pflow mcp serve``; ends with its client, or at a signal."""
    needed("mcp", "MCP")
    from pflow.mcp_server.bounds import Bounds
    from pflow.mcp_server.serve import serve as serving

    others = [Path(word) for word in line.options.get("allow", ())]
    for folder in others:
        if not folder.is_dir():
            raise UsageError(f"--allow: {folder} is no folder")
    if line.has("port") and not line.has("http"):
        raise UsageError("--port is for --http", "pflow mcp serve --http --port 8765")
    port = int(line.count("port") or 0) if line.has("http") else None
    gc.enable()  # what begins now does not end soon
    return serving(Bounds(Path.cwd(), *others), port, Screen().say)

"""What servers were found to offer when they were last asked, in ``<home>/mcp/``: so that nobody need start them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from pflow.mcp import config
from pflow.storage.files import home as default_home
from pflow.storage.files import read_json, safe_name, write_json

FOLDER = "mcp"
PREFIX = "mcp"
_UNFIT = re.compile(r"[^A-Za-z0-9_./-]+")


class ServerTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool of a server, as the server describes it."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    read_only: bool = False  # the server's own word for it


class Offered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a server offered when it was asked."""

    server: str
    at: float
    tools: tuple[ServerTool, ...] = ()
    program: str = ""  # what the server calls itself


def keep(offered: Offered, home: Path | None = None) -> None:
    """Remember what a server offers."""
    write_json(_path(offered.server, home), msgspec.to_builtins(offered), sync=True, indent=2)


def forget(server: str, home: Path | None = None) -> None:
    """Forget what a server offered."""
    _path(server, home).unlink(missing_ok=True)


def of(server: str, home: Path | None = None) -> Offered | None:
    """What a server offered; None where it was never asked, or what is kept cannot be read."""
    try:
        return msgspec.convert(read_json(_path(server, home)), Offered)
    except (OSError, ValueError):
        return None


def everything(home: Path | None = None) -> Iterator[tuple[str, config.Server, Offered | None]]:
    """Every server that is in use, with what it offered."""
    for name, server in config.load(home).items():
        if not server.disabled:
            yield name, server, of(name, home)


def type_name(server: str, tool: str) -> str:
    """The name of the node type that a tool is."""
    return f"{PREFIX}-{_UNFIT.sub('-', server)}-{_UNFIT.sub('-', tool)}"


def _path(server: str, home: Path | None) -> Path:
    return (home or default_home()) / FOLDER / f"{safe_name(server)}.json"

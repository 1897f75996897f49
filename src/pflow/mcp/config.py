"""The MCP servers of this user, in ``<home>/mcp.json``: the ``mcpServers`` format that other programs use, as it is.

A value may refer to a secret, ``${NAME}``: it is looked up in the settings' ``env``, then in the environment, when the
server is started. A secret that is given in plain text is moved to the settings, and a reference stays here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pflow import settings
from pflow.errors import UsageError, suggest
from pflow.model.redact import looks_secret
from pflow.storage.files import encode_json, write_atomic
from pflow.storage.files import home as default_home

if TYPE_CHECKING:
    from pflow.documents.read import Cell

FILE = "mcp.json"
KEYS = ("mcpServers", "servers")  # what programs call the list of servers
TIMEOUT, START_TIMEOUT = 300.0, 60.0
_ALIKE = 0.88  # how much so an unknown key and ours are when ours was meant; other programs have more keys
_REMOTE = ("http", "streamable-http", "streamableHttp", "sse")
_NAME = re.compile(r"[^\s/\\\x00-\x1f][^/\\\x00-\x1f]{0,63}")
_REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Server(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """How an MCP server is reached: by a command that is started here, or at a URL."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    type: str = ""  # stdio, http or sse; said by the other fields where it is missing
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = TIMEOUT  # seconds that a call may take
    start_timeout: float = START_TIMEOUT  # seconds that the server has to be ready
    disabled: bool = False

    @property
    def remote(self) -> bool:
        """Whether it is reached at a URL."""
        return bool(self.url)

    def shown(self) -> str:
        """It in words, without what may be secret."""
        if not self.remote:
            return " ".join([self.command, *self.args])
        return re.sub(r"//[^/@]*@", "//", self.url.partition("?")[0])


def load(home: Path | None = None) -> dict[str, Server]:
    """The servers by name."""
    path = _path(home)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    return parse(data, str(path))


def parse(data: bytes, file: str) -> dict[str, Server]:
    """The servers of an ``mcpServers`` document; raises ``WorkflowError`` with everything that is wrong with them."""
    from pflow.documents.read import Cell, Reading
    from pflow.documents.source import load as read

    reading = Reading(read(data, file))
    given = reading.source.data
    key = next((key for key in KEYS if isinstance(given, dict) and key in given), None)
    if key is None:
        hint = '{"mcpServers": {"NAME": {"command": "…", "args": ["…"]}}} lists one'
        reading.problem("the file lists no MCP servers", reading.source.place(), hint)
    servers = (
        {} if key is None else {name: _server(name, cell) for name, cell in Cell(reading, given[key], (key,)).entries()}
    )
    reading.finish()
    return servers


def _server(name: str, cell: Cell) -> Server:
    before = len(cell.reading.problems)
    fields = cell.fields(Server.__struct_encode_fields__, _ALIKE)
    made = Server(
        command=fields.text("command"),
        args=tuple(one.text() or "" for one in fields.items("args")),
        env={key: one.text() or "" for key, one in fields.entries("env")},
        cwd=fields.text("cwd"),
        type=fields.text("type"),
        url=fields.text("url"),
        headers={key: one.text() or "" for key, one in fields.entries("headers")},
        timeout=fields.number("timeout", above=0) or TIMEOUT,
        start_timeout=fields.number("startTimeout", above=0) or START_TIMEOUT,
        disabled=fields.flag("disabled"),
    )
    try:
        return checked(name, made)
    except UsageError as error:
        if len(cell.reading.problems) == before:  # else it may come of what was told
            cell.reading.problem(error.message, cell.key_place, error.hint)
        return made


def checked(name: str, server: Server) -> Server:
    """The server, if it can be one; raises ``UsageError``."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name[:40]!r} cannot be the name of a server", "letters, digits, . _ and - will do")
    if bool(server.command) == bool(server.url):
        raise UsageError(f'server "{name}" needs a command or a URL, and not both', "see `pflow help mcp add`")
    if server.url and not re.match(r"https?://[^/]", server.url):
        raise UsageError(f'server "{name}": {server.url[:80]!r} is no URL', "it begins with http:// or https://")
    if server.type and server.type not in ("stdio", *_REMOTE):
        raise UsageError(f'server "{name}" has the type "{server.type}"', "one of: stdio, http, sse")
    return server


def get(name: str, home: Path | None = None) -> Server:
    """A server, or ``UsageError`` with the nearest names."""
    known = load(home)
    if name not in known:
        raise UsageError(f'there is no MCP server "{name}"', suggest(name, known, "servers"))
    return known[name]


def add(servers: Mapping[str, Server], home: Path | None = None, replace: bool = False) -> list[str]:
    """Add servers, all or none; returns the names of secrets that were moved to the settings."""
    known = load(home)
    twice = [name for name in servers if name in known]
    if twice and not replace:
        raise UsageError(f'there is an MCP server "{twice[0]}" already', "remove it first, or say --yes to replace it")
    moved: dict[str, str] = {}
    kept = settings.load(home)
    for name, server in servers.items():
        known[name] = _without_secrets(checked(name, server), name, {**kept.env, **moved}, moved)
    if moved:
        settings.save(msgspec.structs.replace(kept, env={**kept.env, **moved}), home)
    _save(known, home)
    return sorted(moved)


def remove(name: str, home: Path | None = None) -> None:
    """Forget a server."""
    get(name, home)
    _save({known: server for known, server in load(home).items() if known != name}, home)


def _save(servers: Mapping[str, Server], home: Path | None) -> None:
    view = {KEYS[0]: {name: msgspec.to_builtins(server) for name, server in servers.items()}}
    write_atomic(_path(home).resolve(), encode_json(view, indent=2), sync=True)  # a link stays a link


def _path(home: Path | None) -> Path:
    return (home or default_home()) / FILE


# Secrets.


def _without_secrets(server: Server, name: str, known: Mapping[str, str], moved: dict[str, str]) -> Server:
    """The server with references in place of secrets in plain text, which are put into ``moved``."""

    def kept(fields: Mapping[str, str]) -> dict[str, str]:
        return {key: _moved(key, value, name, known, moved) for key, value in fields.items()}

    return msgspec.structs.replace(server, env=kept(server.env), headers=kept(server.headers))


def _moved(key: str, value: str, server: str, known: Mapping[str, str], moved: dict[str, str]) -> str:
    if not looks_secret(key) or not value or _REFERENCE.search(value):
        return value
    free = [name for name in (key, f"{server}_{key}") if known.get(name, value) == value]
    name = re.sub(r"\W", "_", free[0] if free and _PLAIN.fullmatch(free[0]) else f"{server}_{key}").upper()
    name = name if _PLAIN.fullmatch(name) else f"_{name}"
    moved[name] = value
    return f"${{{name}}}"


def resolved(name: str, server: Server, home: Path | None = None) -> Server:
    """The server with what its references stand for; raises ``UsageError`` for one that leads nowhere."""
    known = {**os.environ, **settings.load(home).env}

    def found(text: str, must: bool = True) -> str:
        def value(match: re.Match[str]) -> str:
            made = known.get(match[1]) or match[2]
            if made is None and must:
                hint = f"keep it: pflow settings env {match[1]} -"
                raise UsageError(f'MCP server "{name}" needs {match[1]}, which is not set', hint)
            return match[0] if made is None else made

        return _REFERENCE.sub(value, text)

    return msgspec.structs.replace(
        server,
        command=found(server.command, False),
        args=tuple(found(word, False) for word in server.args),  # a shell has variables of its own
        env={key: found(text) for key, text in server.env.items()},
        cwd=found(server.cwd),
        url=found(server.url),
        headers={key: found(text) for key, text in server.headers.items()},
    )


def pairs(words: Iterable[str], what: str, sign: str) -> dict[str, str]:
    """``NAME=VALUE`` words; a bare ``NAME`` refers to the secret of that name."""
    made: dict[str, str] = {}
    for word in words:
        key, given, value = word.partition(sign)
        key, value = key.strip(), value.strip() if sign == ":" else value
        if not key or (not given and not _PLAIN.fullmatch(key)):
            raise UsageError(f"{word!r} is no {what}", f"write NAME{sign}VALUE")
        made[key] = value if given else f"${{{key}}}"
    return made

"""Settings: what a user may decide once for all runs, in ``<home>/settings.json``.

A setting is named by its section and key, ``cache.ttl``. The file holds only what differs from the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from pflow.errors import UsageError, suggest
from pflow.storage.files import encode_json, write_atomic
from pflow.storage.files import home as default_home

FILE = "settings.json"

DESCRIPTIONS: dict[str, str] = {
    "cache.ttl": "How long a cached result may be reused: 90s, 30m, 48h, 2d, or a number of seconds.",
    "cache.iteration_mode": "Whether running a workflow file again reuses the nodes that did not change.",
    "cache.max_mb": "How large the cache may grow, in megabytes, before its oldest entries are dropped.",
    "shell.output_limit": "How many bytes of a command's output are kept; the rest is cut off.",
    "runs.dir": "Where run folders are made; empty means `runs` in the pflow home.",
    "graph.spin": "How often a graph may come back to its nodes without waiting for anybody, before it is stopped.",
    "model.default": "The model used where a workflow names none.",
    "env": "Secrets by name (`env.NAME`), available to workflows and hidden wherever values are shown.",
}

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_KEY = re.compile(rb'"\s*:')
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw]?)")
_SWITCH = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}


class CacheSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How results are reused."""

    ttl: str = "24h"
    iteration_mode: bool = True
    max_mb: int = 512


class ShellSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Limits for commands."""

    output_limit: int = 10_000_000


class RunsSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where runs are kept."""

    dir: str = ""


class ModelSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which model answers."""

    default: str = ""


class GraphSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Limits for graphs."""

    spin: int = 1000


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything a user has set, with defaults for the rest."""

    cache: CacheSettings = CacheSettings()
    shell: ShellSettings = ShellSettings()
    runs: RunsSettings = RunsSettings()
    graph: GraphSettings = GraphSettings()
    model: ModelSettings = ModelSettings()
    env: dict[str, str] = {}


def load(home: Path | None = None) -> Settings:
    """The user's settings; a missing file means the defaults, a wrong one ``WorkflowError``."""
    path = (home or default_home()) / FILE
    try:
        status = path.stat()
        key = (str(path), status.st_ino, status.st_mtime_ns, status.st_size)
        if key not in _read:  # a run asks in many places, and the file is read once
            _read.clear()
            _read[key] = _parsed(path, path.read_bytes())
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    return _read[key]


def save(settings: Settings, home: Path | None = None) -> None:
    """Write what differs from the defaults."""
    path = (home or default_home()) / FILE
    write_atomic(path.resolve(), encode_json(settings, indent=2), sync=True)  # a link stays a link


def set_value(settings: Settings, name: str, value: Any) -> Settings:
    """The settings with one changed; text is converted, None gives the default back."""
    section, _, key = name.partition(".")
    section, key = section.replace("-", "_"), key if section == "env" else key.replace("-", "_")
    if section == "env" and key:
        return msgspec.structs.replace(settings, env=_with_secret(settings.env, key, value))
    if f"{section}.{key}" not in DESCRIPTIONS:
        raise UsageError(f'unknown setting "{name}"', suggest(f"{section}.{key}".rstrip("."), _NAMES, "settings"))
    old = getattr(settings, section)
    new = getattr(type(old)(), key) if value is None else _converted(f"{section}.{key}", getattr(old, key), value)
    return msgspec.structs.replace(settings, **{section: msgspec.structs.replace(old, **{key: new})})


def parse_duration(text: str) -> float:
    """Seconds in a text such as ``48h``, ``30m``, ``90s``, ``2d`` or ``3600``."""
    match = _DURATION.fullmatch(text.strip().lower())
    if not match:
        raise UsageError(f"{text!r} is not a duration", "write 90s, 30m, 48h, 2d, or a number of seconds")
    return float(match[1]) * _UNITS[match[2]]


_read: dict[tuple[str, int, int, int], Settings] = {}  # the last, by what tells the file from a later one
_NAMES = [name if name != "env" else "env.NAME" for name in DESCRIPTIONS]


def _with_secret(env: dict[str, str], key: str, value: Any) -> dict[str, str]:
    kept = {name: secret for name, secret in env.items() if name != key}
    # The value is never quoted in a message: it may be a secret.
    if value is not None and not isinstance(value, str):
        raise UsageError(f"env.{key} must be text", "put it in quotes")
    return kept if value is None else {**kept, key: value}


def _converted(name: str, old: Any, value: Any) -> Any:
    """``value`` in the type that the setting has."""
    if name == "cache.ttl":
        return _duration(name, value)
    convert = _CONVERTERS[type(old)]
    return convert(name, value)


def _duration(name: str, value: Any) -> str:
    text = str(value)
    try:
        parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{name}: {error.message}", error.hint) from None
    return text


def _switch(name: str, value: Any) -> bool:
    made = value if isinstance(value, bool) else _SWITCH.get(str(value).lower())
    if made is None:
        raise UsageError(f"{name} is a switch, not {value!r}", "write on or off")
    return made


def _count(name: str, value: Any) -> int:
    text = str(value).replace("_", "")
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()):
        raise UsageError(f"{name} is a whole number, not {value!r}", "write digits only, such as 512")
    return int(text)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{name} is text, not {value!r}", "put it in quotes")
    return value


_CONVERTERS: dict[type, Callable[[str, Any], Any]] = {bool: _switch, int: _count, str: _text}


def _parsed(path: Path, data: bytes) -> Settings:
    """The settings of a file; since every start reads it, its places are found only where something is wrong."""
    made = Settings()
    try:
        found = msgspec.json.decode(data, type=dict[str, dict[str, Any]])
        if len(_KEY.findall(data)) > len(found) + sum(map(len, found.values())):
            return _placed(path, data)  # a key may be there twice
        for section, entries in found.items():
            if section not in made.__struct_fields__:
                return _placed(path, data)
            for key, value in entries.items():
                made = set_value(made, f"{section}.{key}", value)
    except (UsageError, ValueError):
        return _placed(path, data)
    return made


def _placed(path: Path, data: bytes) -> Settings:
    from pflow.documents.read import Reading
    from pflow.documents.source import load as read

    reading = Reading(read(data, str(path)))
    top, made = reading.top(Settings.__struct_fields__), Settings()
    for section in Settings.__struct_fields__:
        for key, cell in top.entries(section):
            try:
                made = set_value(made, f"{section}.{key}", cell.value)
            except UsageError as error:
                reading.problem(error.message, cell.key_place, error.hint)
    reading.finish()
    return made

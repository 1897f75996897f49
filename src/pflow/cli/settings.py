"""``pflow settings``: what a user decides once for all runs."""

from __future__ import annotations

import sys
from typing import Any

from pflow.cli.complaints import print_json
from pflow.cli.screen import Screen, result
from pflow.cli.words import Line
from pflow.errors import UsageError, suggest
from pflow.model.redact import HIDDEN
from pflow.settings import DESCRIPTIONS, FILE, Settings, load, save, set_value
from pflow.storage.files import home

_SECTIONS = tuple(dict.fromkeys(name.partition(".")[0] for name in DESCRIPTIONS))


def settings(line: Line) -> int:
    """``pflow settings [show | SECTION [show | KEY [VALUE]]]``."""
    words = [part for word in line.words[:1] for part in word.split(".", 1)] + line.words[1:]
    words = words or ["show"]
    if words[0] == "show" and len(words) == 1:
        return _show(line, "")
    section = words[0]
    if section not in _SECTIONS:
        raise UsageError(f'there is no section "{section}"', suggest(section, _SECTIONS, "sections"))
    if len(words) == 1 or words[1:] == ["show"]:
        return _show(line, section)
    name = f"{section}.{words[1] if section == 'env' else words[1].replace('-', '_')}"
    if line.has("unset") or len(words) > 2:
        return _change(line, name, words[2:])
    return _show_one(line, name)


def _change(line: Line, name: str, given: list[str]) -> int:
    if line.has("unset") == bool(given):
        raise UsageError("give a value, or --unset, and not both")
    value: str | None = _value(given[0]) if given else None
    save(set_value(load(), name, value))
    if line.level:
        shown = "its default" if value is None else HIDDEN if name.startswith("env.") else value
        Screen().say(f"✓ {name} is {shown}")
    return 0


def _value(word: str) -> str:
    """A value; ``-`` is read from stdin, so that a secret need not stand in a shell's history."""
    return sys.stdin.read().rstrip("\n") if word == "-" else word


def values(settings: Settings) -> dict[str, Any]:
    """All settings by name; secrets are listed, not shown."""
    made: dict[str, Any] = {}
    for name in DESCRIPTIONS:
        section, _, key = name.partition(".")
        if key:
            made[name] = getattr(getattr(settings, section), key)
    return made | {f"env.{key}": HIDDEN for key in settings.env}


def _show_one(line: Line, name: str) -> int:
    known = values(load())
    if name not in known:
        raise UsageError(f'there is no setting "{name}"', suggest(name, known, "settings"))
    if line.json:
        print_json({name: known[name]})
    else:
        result(_spelled(known[name]))
    return 0


def _show(line: Line, section: str) -> int:
    known = {name: value for name, value in values(load()).items() if name.startswith(f"{section}." if section else "")}
    if line.json:
        print_json(known)
        return 0
    defaults = values(Settings())
    lines = [] if section else [f"# {home() / FILE}"]
    for name, value in known.items():
        own = "" if value == defaults.get(name) else "   (set)"
        lines += [f"{name.replace('.', ' ', 1).replace('_', '-')} = {_spelled(value)}{own}", f"    {_about(name)}"]
    if not section or section == "env":
        lines += [] if any(name.startswith("env.") for name in known) else ["env: no secrets", f"    {_about('env.')}"]
    result("\n".join(lines))
    return 0


def _about(name: str) -> str:
    return DESCRIPTIONS.get(name) or DESCRIPTIONS[name.partition(".")[0]]


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if value != "" else "(empty)"

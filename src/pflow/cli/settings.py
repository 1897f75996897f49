"""``pflow settings``: what a user decides once for all runs."""

from __future__ import annotations

import sys
from typing import Any

from pflow.app import settings as kept
from pflow.cli.errors import print_json
from pflow.cli.line import Line
from pflow.cli.screen import Screen, result
from pflow.errors import UsageError, suggest
from pflow.model.redact import HIDDEN


def settings(line: Line) -> int:
    """``pflow settings [show | SECTION [show | KEY [VALUE]]]``."""
    words = [part for word in line.words[:1] for part in word.split(".", 1)] + line.words[1:]
    words = words or ["show"]
    if words[0] == "show" and len(words) == 1:
        return _show(line, "")
    section = words[0]
    if section not in kept.SECTIONS:
        raise UsageError(f'there is no section "{section}"', suggest(section, kept.SECTIONS, "sections"))
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
    kept.change(name, value)
    if line.level:
        shown = "its default" if value is None else HIDDEN if name.startswith("env.") else value
        Screen().say(f"✓ {name} is {shown}")
    return 0


def _value(word: str) -> str:
    """A value; ``-`` is read from stdin, so that a secret need not stand in a shell's history."""
    return sys.stdin.read().rstrip("\n") if word == "-" else word


def _show_one(line: Line, name: str) -> int:
    value = kept.get(name).value
    if line.json:
        print_json({name: value})
    else:
        result(_spelled(value))
    return 0


def _show(line: Line, section: str) -> int:
    known = kept.known(section)
    if line.json:
        print_json({name: one.value for name, one in known.items()})
        return 0
    lines = [] if section else [f"# {kept.file()}"]
    for name, one in known.items():
        own = "   (set)" if one.own else ""
        spelled = name.replace(".", " ", 1).replace("_", "-")
        lines += [f"{spelled} = {_spelled(one.value)}{own}", f"    {kept.about(name)}"]
    if not section or section == "env":
        known_env = any(name.startswith("env.") for name in known)
        lines += [] if known_env else ["env: no secrets", f"    {kept.about('env')}"]
    result("\n".join(lines))
    return 0


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if value != "" else "(empty)"

"""``pflow registry``: the node types there are, and trying one by itself."""

from __future__ import annotations

import asyncio
import shlex
from typing import Any

import msgspec

from pflow import app
from pflow.app import types
from pflow.app.wording import one_line
from pflow.cli.drive import Drive
from pflow.cli.errors import print_json
from pflow.cli.inputs import pairs
from pflow.cli.line import Line
from pflow.cli.screen import Screen, result
from pflow.model.value import json_text


def list_types(line: Line) -> int:
    """``pflow registry list``."""
    return _listed(line, types.search())


def search(line: Line) -> int:
    """``pflow registry search WORDS``: every word must occur in name, description or params."""
    found = types.search(line.words)
    if not found and not line.json:
        Screen().say(f"no node type mentions {' and '.join(line.words)}; `pflow registry list` shows all")
        return 0
    return _listed(line, found)


def _listed(line: Line, kinds: list[dict[str, Any]]) -> int:
    if line.json:
        print_json(kinds)
    else:
        wide = max(len(kind["name"]) for kind in kinds)
        result("\n".join(f"{kind['name']:{wide}}  {kind['effect']:6}  {types.summary(kind)}" for kind in kinds))
    return 0


def describe(line: Line) -> int:
    """``pflow registry describe TYPE``."""
    kind = types.describe(line.words[0])
    if line.json:
        print_json(kind)
    else:
        result("\n".join(_page(kind)))
    return 0


def _page(kind: dict[str, Any]) -> list[str]:
    version = f"@{kind['version']}" if kind["version"] else ""
    lines = [f"{kind['name']}{version}  ({kind['effect']})", "", *kind["description"].splitlines(), "", "Params:"]
    lines += [f"  {_param_text(kind, param)}" for param in kind["params"]] or ["  none"]
    if kind["open"]:
        lines.append("  … and any others")
    outputs = kind["outputs"]
    lines += ["", f"Outputs: {'known when it has run' if outputs is None else ', '.join(outputs) or 'none'}"]
    if kind["main_out"]:
        lines.append(f"Main output: {kind['main_out']}")
    if kind["routes"]:
        lines.append(f"Routes: {', '.join(kind['routes'])}")
    if kind["examples"]:
        lines += ["", "Try:", *(f"  {_example(kind['name'], example)}" for example in kind["examples"])]
    return [*lines, "", f"From: {kind['origin'] or 'this program'}"]


def _param_text(kind: dict[str, Any], param: dict[str, Any]) -> str:
    name = param["name"]
    others = [alias for alias, canonical in kind["aliases"].items() if canonical == name]
    also = f" (also: {', '.join(others)})" if others else ""
    rest = "required" if param["required"] else f"= {json_text(param['default'])}"
    field = kind.get("schema", {}).get("properties", {}).get(name)
    said = one_line(str(field["description"]), 100) if isinstance(field, dict) and "description" in field else ""
    return f"{name.rstrip('_')}{also}: {param['type']}  {rest}" + (f"  {said}" if said else "")


def _example(name: str, example: dict[str, Any]) -> str:
    words = [f"{key}={value if isinstance(value, str) else json_text(value)}" for key, value in example.items()]
    return " ".join(["pflow registry run", name, *(shlex.quote(word) for word in words)])


def run(line: Line) -> int:
    """``pflow registry run TYPE key=value …``."""
    workflow, given = types.alone(line.words[0], pairs(line))
    return Drive(line).complete(lambda options: app.run(workflow, given, **options))


def verify(line: Line) -> int:
    """``pflow registry verify TYPE``: exit code 1 for a promise that is not kept."""
    found = asyncio.run(types.verify(line.words[0]))
    if line.json:
        print_json(msgspec.to_builtins(found))
    else:
        good = f"✓ {found.type} is pure: it answered the same twice, and touched nothing"
        result(good if found.pure else f"✗ {found.type} is not pure: it {found.reason}")
    return 0 if found.pure else 1


def accept(line: Line) -> int:
    """``pflow registry accept TYPE``."""
    name = types.accept(line.words[0])
    Screen().say(f"✓ {name} is taken as quiet: it may be retried and restarted, until its source changes")
    return 0

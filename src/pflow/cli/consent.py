"""Consent: on a terminal, a workflow that may change the world is shown and confirmed, the first time it is run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from pflow.app.explain import Row, explain
from pflow.cli.screen import Screen, one_line
from pflow.cli.words import Line
from pflow.model.value import json_text
from pflow.model.workflow import Workflow
from pflow.planning.plan import Plan
from pflow.storage.files import home, read_json, write_json

FILE = "confirmed.json"


def given(line: Line, workflow: Workflow, plan: Callable[[], Plan], screen: Screen) -> bool:
    """Whether the workflow may be run; asked once, of a person who is there."""
    present = sys.stdin is not None and sys.stdin.isatty() and screen.stream.isatty()
    if not present or line.has("yes") or line.has("print"):
        return True
    name = os.path.abspath(workflow.file) if workflow.file else workflow.name
    known = _known()
    if name in known:
        return True
    rows = [row for row in explain(plan()) if row.effect == "impure"]
    if rows and not _asked(workflow, rows, screen):
        return False
    write_json(home() / FILE, sorted({*known, name})[-10_000:])
    return True


def _asked(workflow: Workflow, rows: list[Row], screen: Screen) -> bool:
    screen.say(f"{workflow.name} is new here, and some of its nodes may change the world outside:")
    for row in rows:
        params = ", ".join(f"{key}: {json_text(value)}" for key, value in row.params.items())
        screen.say(f"  {row.id}  {row.type}  {one_line(params, 120)}")
    screen.put("run it? [Y/n] ")
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() in ("", "y", "yes")


def _known() -> set[str]:
    path: Path = home() / FILE
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return set()
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()

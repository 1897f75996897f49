"""Consent: asked of a person at the terminal before a new workflow may change the world."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pflow.app.wording import one_line
from pflow.cli.line import Line
from pflow.cli.screen import Screen
from pflow.model.value import json_text
from pflow.model.workflow import Workflow

if TYPE_CHECKING:
    from pflow.app.explain import Row


def given(line: Line, workflow: Workflow, screen: Screen) -> bool:
    """Whether the workflow may be run; asked once, of a person who is there."""
    if not can_ask(line, screen):
        return True
    from pflow.app.consent import confirm, unconfirmed

    rows = unconfirmed(workflow)
    if rows and not _asked(workflow, rows, screen):
        return False
    confirm(workflow)
    return True


def _asked(workflow: Workflow, rows: list[Row], screen: Screen) -> bool:
    screen.say(f"{workflow.name} is new here, and some of its nodes may change the world outside:")
    for row in rows:
        params = ", ".join(f"{key}: {json_text(value)}" for key, value in row.params.items())
        screen.say(f"  {row.id}  {row.type}  {one_line(params, 120)}")
    return yes("run it?", screen)


def can_ask(line: Line, screen: Screen) -> bool:
    """Whether a person is there, and wants to be asked."""
    present = sys.stdin is not None and sys.stdin.isatty() and screen.stream.isatty()
    return present and not line.has("yes") and not line.has("print")


def yes(question: str, screen: Screen) -> bool:
    """Whether the person at the terminal agrees."""
    screen.put(f"{question} [Y/n] ")
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() in ("", "y", "yes")

"""Consent: asked of a person at the terminal before a new workflow may change the world, and before a run goes on
with the copy of a workflow that has changed since."""

from __future__ import annotations

import sys

from pflow.app.consent import confirm, unconfirmed
from pflow.app.explain import Row
from pflow.app.stopped import Stopped
from pflow.app.wording import one_line, shortened
from pflow.cli.line import Line
from pflow.cli.screen import Screen
from pflow.model.value import json_text
from pflow.model.workflow import Workflow


def given(line: Line, workflow: Workflow, screen: Screen) -> bool:
    """Whether the workflow may be run; asked once, of a person who is there."""
    if not _can_ask(line, screen):
        return True
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
    return _yes("run it?", screen)


def to_go_on(line: Line, taken: Stopped, screen: Screen) -> bool:
    """Whether a run may go on with the documents that it keeps; what changed of them since is told."""
    found = taken.drift()
    if not found:
        return True
    for one in found:
        screen.say(f"ℹ {shortened(str(one))}")
    screen.say("  the run goes on with the copy that it keeps")
    main = found[0]
    anew = f"with that copy: pflow {main.kept}" if main.gone else f"with the file as it is now: pflow {main.file}"
    screen.say(f"  hint: to start anew {anew}")
    return not _can_ask(line, screen) or _yes("go on with the copy?", screen)


def _can_ask(line: Line, screen: Screen) -> bool:
    """Whether a person is there, and wants to be asked."""
    present = sys.stdin is not None and sys.stdin.isatty() and screen.stream.isatty()
    return present and not line.has("yes") and not line.has("print")


def _yes(question: str, screen: Screen) -> bool:
    screen.put(f"{question} [Y/n] ")
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() in ("", "y", "yes")

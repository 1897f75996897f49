"""Commands about runs that are not driven here: runs, status, cancel."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from pflow import app
from pflow.app.runs import Glance, folder_of, state, survey
from pflow.app.wording import one_line, shortened
from pflow.cli.errors import print_json
from pflow.cli.line import Line
from pflow.cli.screen import Screen, lasted, result
from pflow.model.visit import short

NEWEST = 20
PATIENCE = 5.0  # seconds that a live run gets to heed a cancel
MARKS = {"completed": "✓", "failed": "✗", "running": "…", "paused": "⏸", "waiting": "⏸", "interrupted": "⏸"}


def runs(line: Line) -> int:
    """``pflow runs``."""
    found = survey(most=None if line.has("all") else NEWEST)
    if line.json:
        print_json([msgspec.to_builtins(glance) for glance in found])
    elif found:
        result(_table(found))
    else:
        Screen().say("there are no runs yet; start one: pflow FILE")
    return 0


def _table(found: list[Glance]) -> str:
    wide = max(len(glance.run_id) for glance in found)
    lines = [f"  {'RUN':{wide}}  {'STATUS':11}  {'NODES':>7}  STARTED           WORKFLOW"]
    for one in found:
        mark = MARKS.get(one.status, "-")
        nodes = f"{one.nodes_completed}/{one.nodes_total}"
        since, name = clock(one.started_at), one_line(one.workflow, 60)
        lines.append(f"{mark} {one.run_id:{wide}}  {one.status:11}  {nodes:>7}  {since}  {name}")
    return "\n".join(lines)


def status(line: Line) -> int:
    """``pflow status RUN``."""
    view = state(folder_of(line.words[0]))
    if line.json:
        print_json(view)
    else:
        result("\n".join(_story(view)))
    return 0


def _story(view: dict[str, Any]) -> list[str]:
    since = clock(view["started_at"])
    lines = [
        f"{view['run_id']}: {view['status']}",
        f"  {view['workflow']}, started {since}, {view['nodes_completed']} of {view['nodes_total']} nodes completed",
    ]
    for visit, step in view["steps"].items():
        lines.append("  " + _step(visit, step))
    for ask in view["waiting"]:
        choices = f" ({'|'.join(ask['choices'])})" if ask["choices"] else ""
        what = f"asks: {shortened(ask['question'], 500)}{choices}" if ask["question"] else "waits for what you say"
        lines.append(f"  ⏸ node '{short(ask['visit'])}' {what}")
    for held in view.get("held", ()):
        lines.append(f"  ⏸ node '{short(held['visit'])}' is held: {shortened(held['message'], 500)}")
    if view["status"] != "running":
        for doubt in view["doubts"]:
            where = f"node '{short(doubt['visit'])}' was cut off in attempt {doubt['attempt']}"
            lines.append(f"  ⏸ {where}, and it may have taken effect")
    lines += _advice(view)
    return lines


def _step(visit: str, step: dict[str, Any]) -> str:
    state = step["status"]
    parts = [f"{MARKS.get(state, 'ℹ')} {short(visit)}", state]
    if step.get("cached"):
        parts.append("cached")
    if step.get("duration_ms"):
        parts.append(lasted(step["duration_ms"]))
    if step["attempts"] > 1:
        parts.append(f"{step['attempts']} attempts")
    detail = step.get("error", {}).get("message") or step.get("reason")
    return "  ".join(parts) + (f": {one_line(detail)}" if detail else "")


def _advice(view: dict[str, Any]) -> list[str]:
    run_id = view["run_id"]
    if view["status"] in ("failed", "interrupted", "cancelled"):
        return [f"  next: pflow resume {run_id}"]
    if view["status"] == "paused":
        doubt = " --budget USD" * bool(view.get("held"))
        doubt += " --on-doubt retry|skip|fail" * bool(view["doubts"])
        return [
            f"  next: pflow {'reply' if view['waiting'] else 'resume'} {run_id}{doubt}"
            + " TEXT" * bool(view["waiting"])
        ]
    return []


def clock(seconds: float) -> str:
    """A time for people, where they are."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def cancel(line: Line) -> int:
    """``pflow cancel RUN``."""
    folder = folder_of(line.words[0])
    told = app.cancel(folder, "cancelled by its user", patience=PATIENCE)
    if told:
        Screen().say(f"ℹ {told} was told to cancel {folder.name}, and has not answered yet")
    elif line.level:
        Screen().say(f"✓ Cancelled {folder.name}")
    return 0

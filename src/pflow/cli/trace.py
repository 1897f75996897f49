"""``pflow trace``: what happened in a run, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pflow.app import runs
from pflow.app.runs import folder_of
from pflow.app.trace import trace as trace_of
from pflow.app.wording import one_line, shortened
from pflow.cli.errors import print_json
from pflow.cli.line import Line
from pflow.cli.runs import clock
from pflow.cli.screen import lasted, result
from pflow.model.value import json_text

_MARKS = {"completed": "✓", "failed": "✗", "skipped": "ℹ", "cancelled": "ℹ"}


def trace(line: Line) -> int:
    """``pflow trace [RUN]``."""
    view = trace_of(folder_of(line.words[0]) if line.words else runs.last())
    if line.json:
        print_json(view)
    else:
        result("\n".join(_story(view)))
    return 0


def _story(view: dict[str, Any]) -> list[str]:
    state = view["status"].upper() if view["status"] == "failed" else view["status"]
    lines = [
        f"{view['run_id']}: {state}",
        f"  {view['workflow']} ({view['dialect']}) {view['file']}".rstrip(),
        f"  started {clock(view['started_at'])}, took {lasted(view['duration_ms'])}",
    ]
    if view["forked"]:
        lines.append(f"  forked from {view['forked']}")
    lines += [f"  input {name}: {one_line(json_text(value))}" for name, value in view["inputs"].items()]
    lines.append("")
    lines += [_row(entry) for entry in view["timeline"] if entry["kind"] != "began"]
    lines += _marker(view)
    lines.append(f"\n  {view['path']}/trace.jsonl")
    return lines


def _row(entry: dict[str, Any]) -> str:
    mark, text = _PHRASES[entry["kind"]](entry)
    return f"  {lasted(entry['offset_ms']):>8}  {mark} {text}"


def _phrase_ended(entry: dict[str, Any]) -> tuple[str, str]:
    state = entry["status"]
    took = [lasted(entry["duration_ms"])] if entry["duration_ms"] else []
    tries = [f"{entry['attempts']} attempts"] if entry["attempts"] > 1 else []
    cached = ["cached"] if entry.get("cached") else []
    inside = ", ".join([*cached, *took, *tries])
    why = entry.get("error", {}).get("message") or entry.get("reason", "")
    word = "FAILED" if state == "failed" else state
    text = f"{entry['node_id']} {word}" + (f" ({inside})" if inside else "") + (f": {one_line(why)}" if why else "")
    return _MARKS[state], text


def _phrase_asked(one: dict[str, Any]) -> tuple[str, str]:
    if "pulls" in one:
        return "ℹ", f"{one['node_id']} pulls {one['pulls']}"
    return "⏸", f"{one['node_id']} " + (
        f"asks: {one_line(one['question'])}" if one["question"] else "waits for its user"
    )


_PHRASES: dict[str, Callable[[dict[str, Any]], tuple[str, str]]] = {
    "ended": _phrase_ended,
    "tried": lambda one: (
        "✗",
        f"{one['node_id']} attempt {one['attempt']} failed: {one_line(one['error']['message'])}",
    ),
    "asked": lambda one: _phrase_asked(one),
    "replied": lambda one: ("ℹ", f"{one['node_id']} was answered: {one_line(json_text(one['value']))}"),
    "doubt": lambda one: ("ℹ", f"{one['node_id']} was in doubt after attempt {one['attempt']}: {one['decision']}"),
    "cancelled": lambda one: ("✗", f"cancelled: {one['why']}" if one["why"] else "cancelled"),
    "reopened": lambda one: ("↻", "resumed"),
    "finished": lambda one: (_MARKS.get(one["status"], "ℹ"), f"run {one['status']}"),
}


def _marker(view: dict[str, Any]) -> list[str]:
    """Where it failed or was cut off: the node, what it said, what it was given, what it saw."""
    lines: list[str] = []
    failure = view["failure"]
    if failure is not None:
        lines += ["", f"  FAILED at {failure['node_id'] or 'the end'}: {shortened(failure.get('message', ''))}"]
        if failure.get("hint"):
            lines.append(f"    hint: {shortened(failure['hint'])}")
        lines += _given(failure)
        for name, value in failure["context"].items():
            lines.append(f"    {name}: {shortened(value if isinstance(value, str) else json_text(value))}".rstrip())
        lines += _around(failure)
    for one in view["unfinished"]:
        number = one["attempts"][-1]["attempt"] if one["attempts"] else 1
        lines += ["", f"  LEFT at {one['node_id']}, attempt {number}", *_given(one), *_around(one)]
    return lines


def _given(scene: dict[str, Any]) -> list[str]:
    """What a node was given: resolved, and as written where that is not the same."""
    inputs, params = scene["inputs"] or {}, scene["params"] or {}
    lines = [f"    {name}: {one_line(json_text(value), 500)}" for name, value in inputs.items()]
    written = {name: value for name, value in params.items() if inputs.get(name) != value}
    return lines + [f"    {name} as written: {one_line(json_text(value), 500)}" for name, value in written.items()]


def _around(scene: dict[str, Any]) -> list[str]:
    lines = [f"    shared {name}: {one_line(json_text(value), 200)}" for name, value in scene["shared"].items()]
    tries = [one for one in scene["attempts"] if len(scene["attempts"]) > 1]
    return lines + [
        f"    attempt {one['attempt']}: {one['outcome']}"
        + (f" after {lasted(one['ended_ms'])}" if "ended_ms" in one else "")
        + (f": {one_line(one['error'].get('message', ''))}" if one.get("error") else "")
        for one in tries
    ]

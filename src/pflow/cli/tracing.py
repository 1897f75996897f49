"""``pflow trace``: what happened in a run, from its journal alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pflow.app.documents import kept_workflow
from pflow.app.history import last, recall, records, status
from pflow.app.scene import Scenes
from pflow.app.secrets import redactor
from pflow.app.targets import folder_of
from pflow.app.wording import one_line, sentence, shortened
from pflow.cli.complaints import print_json
from pflow.cli.looking import clock
from pflow.cli.screen import lasted, result
from pflow.cli.words import Line
from pflow.errors import PflowError
from pflow.kernel.telling import shown
from pflow.model.redact import HIDDEN
from pflow.model.run import (
    PULL,
    AnyRecord,
    Asked,
    Began,
    Cancelled,
    Doubt,
    Ended,
    Failure,
    Finished,
    Opened,
    Reopened,
    Replied,
    Tried,
)
from pflow.model.value import json_text, portable
from pflow.model.visit import short
from pflow.storage.runs import RunFolder

_MARKS = {"completed": "✓", "failed": "✗", "skipped": "ℹ", "cancelled": "ℹ"}


def trace(line: Line) -> int:
    """``pflow trace [RUN]``."""
    folder = RunFolder(folder_of(line.words[0])) if line.words else last()
    view = trace_view(folder)
    if line.json:
        print_json(view)
    else:
        result("\n".join(_story(view)))
    return 0


def trace_view(folder: RunFolder) -> dict[str, Any]:
    """A run's story as data."""
    found = records(folder)
    opened = found[0]
    assert isinstance(opened, Opened)
    failure = next((one.failure for one in reversed(found) if isinstance(one, Finished)), None)
    timeline = [entry for record in found if (entry := _entry(record, opened.t))]
    scenes = Scenes(folder)
    view = {
        "run_id": folder.id,
        "workflow": opened.workflow,
        "dialect": opened.dialect,
        "file": opened.path,
        "status": status(folder, recall(folder)),
        "started_at": opened.t,
        "updated_at": found[-1].t,
        "duration_ms": round((found[-1].t - opened.t) * 1000, 3),
        "inputs": _inputs(folder, opened),
        "forked": opened.forked or None,
        "timeline": timeline,
        "failure": _failure(scenes, failure) if failure is not None else None,
        "unfinished": [{"node_id": short(visit), "visit": visit, **scenes.of(visit)} for visit in scenes.unfinished()],
        "path": str(folder.path),
    }
    shown_view: dict[str, Any] = redactor(None, {}, None).value(view)
    return shown_view


def _inputs(folder: RunFolder, opened: Opened) -> dict[str, Any]:
    """The inputs, without the secret ones; where nobody can say which these are, none is shown."""
    try:
        declared = kept_workflow(folder, opened).inputs
    except PflowError:
        return dict.fromkeys(opened.inputs, HIDDEN)
    secret = {item.name for item in declared if item.secret}
    return {name: HIDDEN if name in secret else portable(value) for name, value in opened.inputs.items()}


def _failure(scenes: Scenes, failure: Failure) -> dict[str, Any]:
    """Where a run failed, with what the node was given and what it saw."""
    visit = failure.chain[-1] if failure.chain else ""
    extra = {"context": failure.context, "stack_trace": failure.stack_trace}
    own = {"node_id": short(visit) or None, "visit": visit or None, **shown(failure), **extra}
    return own | (scenes.of(visit) if visit else {"params": None, "inputs": None, "shared": {}, "attempts": []})


# The timeline.


def _entry(record: AnyRecord, start: float) -> dict[str, Any] | None:
    describe = _ENTRIES.get(type(record))
    if describe is None:
        return None
    visit = getattr(record, "visit", "")
    at = {"offset_ms": round((record.t - start) * 1000, 3)}
    return at | ({"node_id": short(visit), "visit": visit} if visit else {}) | describe(record)


def _ended(record: Ended) -> dict[str, Any]:
    outcome = record.outcome
    view = {"kind": "ended", "status": outcome.status, "attempts": outcome.attempts, "duration_ms": outcome.ms}
    extra = {
        "cached": outcome.reused,
        "reason": sentence(outcome.reason),
        "route": outcome.route,
        "error": shown(outcome.failure),
    }
    return view | {key: value for key, value in extra.items() if value}


_ENTRIES: dict[type, Callable[[Any], dict[str, Any]]] = {
    Began: lambda record: {"kind": "began", "attempt": record.attempt},
    Tried: lambda record: {"kind": "tried", "attempt": record.attempt, "error": shown(record.failure)},
    Ended: _ended,
    Asked: lambda record: _asked(record),
    Replied: lambda record: {"kind": "replied", "value": portable(record.value)},
    Doubt: lambda record: {"kind": "doubt", "attempt": record.attempt, "decision": record.decision},
    Cancelled: lambda record: {"kind": "cancelled", "why": record.why},
    Reopened: lambda record: {"kind": "reopened"},
    Finished: lambda record: {"kind": "finished", "status": record.status},
}


# For people.


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


def _asked(record: Asked) -> dict[str, Any]:
    if record.port.startswith(PULL):
        return {"kind": "asked", "pulls": record.port.removeprefix(PULL)}
    return {"kind": "asked", "question": record.question, "choices": list(record.choices)}


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

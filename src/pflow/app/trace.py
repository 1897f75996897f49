"""The trace: what happened in a run, from its records: a timeline, and the scene where it failed or was left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pflow.app.documents import kept_workflow
from pflow.app.options import Options
from pflow.app.resolved import given, node_folder
from pflow.app.runs import find, records, story_from
from pflow.app.secrets import redactor
from pflow.app.story import outcome_view
from pflow.errors import PflowError
from pflow.kernel.events import shown
from pflow.kernel.run import Run
from pflow.kernel.scope import outputs_of
from pflow.model.records import (
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
    Shared,
    Stored,
    Tried,
)
from pflow.model.redact import HIDDEN
from pflow.model.value import portable
from pflow.model.visit import is_nested, is_within, node_of, prefix_of, short
from pflow.storage.files import read_json
from pflow.storage.runs import RunFolder


def trace(run: str | Path) -> dict[str, Any]:
    """A run's whole story as data."""
    folder = RunFolder(find(run))
    found = records(folder)
    opened = found[0]
    assert isinstance(opened, Opened)
    story, session = story_from(folder, found, Options())
    scenes = Scenes(folder.path, found, session.run if session else None)
    view = {
        "run_id": story.run_id,
        "workflow": story.workflow,
        "dialect": story.dialect,
        "file": story.file,
        "status": story.status,
        "started_at": story.started_at,
        "updated_at": story.updated_at,
        "duration_ms": round((story.updated_at - story.started_at) * 1000, 3),
        "inputs": _inputs(folder, opened),
        "forked": opened.forked or None,
        "timeline": [entry for record in found if (entry := _entry(record, opened.t))],
        "failure": _failure(scenes, story.error) if story.error is not None else None,
        "unfinished": [{"node_id": short(visit), "visit": visit, **scenes.of(visit)} for visit in scenes.unfinished()],
        "path": str(folder.path),
    }
    hidden: dict[str, Any] = redactor(None, {}, None).value(view)
    return hidden


def visit_files(run: str | Path, visit: str) -> dict[str, Any]:
    """What the views of a run show of a visit: what it was given, and what came of it."""
    folder, made = find(run), {}
    for name in ("input", "output"):
        try:
            made[name] = read_json(folder / node_folder(visit) / f"{name}.json")
        except (OSError, ValueError):
            continue
    hidden: dict[str, Any] = redactor(None, {}, None).value(made)
    return hidden


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
    extra = {"context": failure.details, "stack_trace": failure.stack_trace}
    own = {"node_id": short(visit) or None, "visit": visit or None, **shown(failure), **extra}
    return own | (scenes.of(visit) if visit else {"params": None, "inputs": None, "shared": {}, "attempts": []})


class Scenes:
    """What one run's records tell about its visits."""

    def __init__(self, folder: Path, found: Sequence[AnyRecord], run: Run | None) -> None:
        self._folder = folder
        self._records = found
        self._run = run  # None where its workflow or its node types are not what they were

    def of(self, visit: str) -> dict[str, Any]:
        """Params as written, inputs as resolved, the values around it when it ended, and its attempts."""
        own = self._run is not None and not is_nested(visit)
        planned = self._run.root.plan.nodes.get(node_of(visit)) if self._run is not None and own else None
        return {
            "params": portable(planned.node.params) if planned is not None else None,
            "inputs": given(self._folder, visit, self._run),
            "shared": self._shared(visit),
            "attempts": self._attempts(visit),
        }

    def unfinished(self) -> list[str]:
        """The visits that a run was at when it was left, as far as its records tell."""
        if isinstance(self._records[-1], Finished):
            return []
        at_work: dict[str, None] = dict.fromkeys(self._run.root.started) if self._run is not None else {}
        for record in self._records:
            if isinstance(record, (Began, Tried)):
                at_work[record.visit] = None
            elif isinstance(record, Ended):
                at_work.pop(record.visit, None)
        return [visit for visit in at_work if not any(is_within(other, visit) for other in at_work if other != visit)]

    def _shared(self, visit: str) -> dict[str, Any]:
        """What nodes around the visit had left behind, and what was stored, until it ended."""
        prefix = prefix_of(visit)
        seen: dict[str, Any] = {}
        for record in self._records:
            if isinstance(record, Ended):
                if record.visit == visit:
                    seen.pop(node_of(visit), None)
                elif prefix_of(record.visit) == prefix:
                    seen[node_of(record.visit)] = portable(outputs_of(record.outcome))
            elif isinstance(record, Shared):
                seen[record.key] = portable(record.value)
            elif isinstance(record, Stored) and record.space == "values":
                seen[f"store:{record.key}"] = portable(record.value)
        return seen

    def _attempts(self, visit: str) -> list[dict[str, Any]]:
        opened = self._records[0]
        assert isinstance(opened, Opened)
        made: dict[int, dict[str, Any]] = {}
        for record in self._records:
            if getattr(record, "visit", None) != visit:
                continue
            at = round((record.t - opened.t) * 1000, 3)
            if isinstance(record, Began):
                made[record.attempt] = {"attempt": record.attempt, "began_ms": at, "outcome": "cut off"}
            elif isinstance(record, Tried):
                made.setdefault(record.attempt, {"attempt": record.attempt}).update(
                    ended_ms=at, outcome="failed", error=shown(record.failure)
                )
            elif isinstance(record, Ended) and record.outcome.attempts:
                number = record.outcome.attempts
                told = {"error": shown(record.outcome.failure)} if record.outcome.failure else {}
                made.setdefault(number, {"attempt": number}).update(ended_ms=at, outcome=record.outcome.status, **told)
        return [made[number] for number in sorted(made)]


# The timeline.


def _entry(record: AnyRecord, start: float) -> dict[str, Any] | None:
    describe = _ENTRIES.get(type(record))
    if describe is None:
        return None
    visit = getattr(record, "visit", "")
    at = {"offset_ms": round((record.t - start) * 1000, 3)}
    return at | ({"node_id": short(visit), "visit": visit} if visit else {}) | describe(record)


def _ended(record: Ended) -> dict[str, Any]:
    view = outcome_view(record.outcome)
    view.pop("usage", None)
    return {"kind": "ended", **view}


def _asked(record: Asked) -> dict[str, Any]:
    if record.port.startswith(PULL):
        return {"kind": "asked", "pulls": record.port.removeprefix(PULL)}
    return {"kind": "asked", "question": record.question, "choices": list(record.choices)}


_ENTRIES: dict[type, Callable[[Any], dict[str, Any]]] = {
    Began: lambda record: {"kind": "began", "attempt": record.attempt},
    Tried: lambda record: {"kind": "tried", "attempt": record.attempt, "error": shown(record.failure)},
    Ended: _ended,
    Asked: _asked,
    Replied: lambda record: {"kind": "replied", "value": portable(record.value)},
    Doubt: lambda record: {"kind": "doubt", "attempt": record.attempt, "decision": record.decision},
    Cancelled: lambda record: {"kind": "cancelled", "why": record.why},
    Reopened: lambda record: {"kind": "reopened"},
    Finished: lambda record: {"kind": "finished", "status": record.status},
}

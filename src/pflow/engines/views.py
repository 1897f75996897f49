"""Views of a run: the files that show its state to people and scripts, refreshed behind the journal."""

from __future__ import annotations

import asyncio
from pathlib import Path, PurePosixPath
from time import perf_counter
from typing import Any

import msgspec

from pflow.engines.inputs import rebuilt
from pflow.kernel.run import Run
from pflow.kernel.scope import Ready, outputs_of
from pflow.kernel.telling import shown
from pflow.lang.json_in_text import objects
from pflow.model.conversation import brief
from pflow.model.redact import Redactor
from pflow.model.run import Outcome
from pflow.model.value import portable
from pflow.model.visit import is_nested, node_of, parts_of
from pflow.storage.files import safe_name
from pflow.storage.views import Views

SOONEST = 0.05  # seconds between refreshes
RATIO = 20  # a refresh takes at most one part in so many of the time


class Viewer:
    """Keeps the views of one run; what a refresh costs decides how soon the next may come."""

    def __init__(self, run: Run, folder: Path, redactor: Redactor | None = None) -> None:
        self._run = run
        self._redact = (redactor or Redactor()).value
        self._folder = folder
        self._files = Views(folder)
        self._dirty: dict[str, Ready | None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._pause = SOONEST

    def touch(self, visit: str, ready: Ready | None) -> None:
        """A visit started, or (without ``ready``) changed."""
        if ready is not None or visit not in self._dirty:
            self._dirty[visit] = ready
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause, self.refresh)

    def repair(self) -> None:
        """Write everything, since whoever wrote the views last may have died over it."""
        self._dirty |= dict.fromkeys(self._run.memory.ended)
        missing = rebuilt(self._run, lambda visit: not (self._folder / _input(visit)).exists())
        self._files.write(self._redact({_input(visit): portable(brief(params)) for visit, params in missing}))
        self.refresh()

    def refresh(self) -> None:
        """Write what changed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        began = perf_counter()
        dirty, self._dirty = self._dirty, {}
        views = {name: view for visit, ready in dirty.items() for name, view in self._of_visit(visit, ready)}
        self._files.write(self._redact(views | self._of_run()))
        self._pause = max(SOONEST, RATIO * (perf_counter() - began))

    def _of_run(self) -> dict[str, Any]:
        run, opened = self._run, self._run.memory.opened
        outputs = run.root.values if run.root.plan.workflow.flat else run.root.outputs()
        values = {name: portable(brief(made)) for name, made in outputs.items()}
        if run.root.live is not None:  # the session's conversations, each whole and once
            values["contexts"] = {name: made.whole() for name, made in run.root.live.contexts.items()}
        metadata: dict[str, Any] = msgspec.to_builtins(opened) if opened is not None else {}
        for key in ("k", "c"):
            metadata.pop(key, None)
        return {"state.json": state(run), "context.json": values, "metadata.json": metadata}

    def _of_visit(self, visit: str, ready: Ready | None) -> list[tuple[str, Any]]:
        folder = node_folder(visit)
        made: list[tuple[str, Any]] = []
        if ready is not None:
            made.append((_input(visit), portable(ready.params)))
        outcome = self._run.memory.ended.get(visit)
        if outcome is not None:
            made.append((f"{folder}/output.json", portable(brief(outputs_of(outcome)))))
            answer = _answer(outcome)
            if answer is not None:
                made.append((f"{folder}/agent_response.json", answer))
        return made


def state(run: Run) -> dict[str, Any]:
    """A run's state, as ``state.json`` and ``pflow status`` show it."""
    memory, opened = run.memory, run.memory.opened
    steps = {visit: step_view(outcome) for visit, outcome in memory.ended.items()}
    for visit in run.root.started:
        steps[visit] = {"status": "running", "attempts": memory.next_attempt(visit)}
    finished = memory.finished
    return {
        "run_id": run.run_id,
        "workflow": opened.workflow if opened else "",
        "dialect": opened.dialect if opened else "",
        "status": run.status,
        "started_at": opened.t if opened else 0.0,
        "updated_at": memory.updated,
        "nodes_total": len(run.root.plan.graph.ids),
        "nodes_completed": len(
            {
                node_of(visit)
                for visit, one in memory.ended.items()
                if not is_nested(visit) and one.status == "completed"
            }
        ),
        "steps": steps,
        "waiting": [
            {"visit": ask.visit, "question": ask.question, "choices": list(ask.choices)}
            for ask in memory.asked.values()
        ],
        "doubts": [{"visit": visit, "attempt": attempt} for visit, attempt in memory.begun.items()],
        "error": shown(finished.failure) if finished and finished.failure else None,
    }


def step_view(outcome: Outcome) -> dict[str, Any]:
    """One step's entry."""
    view: dict[str, Any] = {"status": outcome.status, "attempts": outcome.attempts, "duration_ms": outcome.ms}
    extra = {"cached": outcome.reused, "reason": outcome.reason, "route": outcome.route, "usage": outcome.usage}
    view |= {key: value for key, value in extra.items() if value}
    if outcome.failure is not None:
        view["error"] = shown(outcome.failure)
    return view


def _answer(outcome: Outcome) -> dict[str, Any] | None:
    """What an agent said, as it said it: its text, the data in it, and what it used; None for other nodes."""
    made = outcome.outputs
    if outcome.failure is not None and "answer" in outcome.failure.context:
        return {"text": outcome.failure.context["answer"], "error": shown(outcome.failure)}
    if not isinstance(made.get("text"), str) or "usage" not in made:
        return None
    data = next(iter(reversed(list(objects(made["text"])))), None)  # the last: an example comes before the answer
    return {"text": made["text"], "data": data, "usage": portable(made["usage"])}


def _input(visit: str) -> str:
    return f"{node_folder(visit)}/input.json"


def node_folder(visit: str) -> str:
    """The folder of a visit's views: ``nodes/a`` for ``a#1``, ``nodes/a#2`` for its second, nested ones inside."""
    path = PurePosixPath()
    for part, n in parts_of(visit):
        name = safe_name(part) + (f"#{n}" if n > 1 else "")
        path = path / "nodes" / name if n else path / name
    return str(path)

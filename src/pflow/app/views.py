"""Views of a run: the files that show its state to people and scripts, refreshed behind the journal."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec

from pflow.app.resolved import input_file, node_folder, resolved
from pflow.app.story import state_view, story_of
from pflow.documents.json_in_text import objects
from pflow.kernel.events import shown
from pflow.kernel.run import Run
from pflow.kernel.scope import Ready, outputs_of
from pflow.model.conversation import brief
from pflow.model.records import Outcome
from pflow.model.redact import Redactor
from pflow.model.value import portable
from pflow.storage.files import encode_json, write_atomic

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
        missing = resolved(self._run, lambda visit: not (self._folder / input_file(visit)).exists())
        self._files.write(self._redact({input_file(visit): portable(brief(params)) for visit, params in missing}))
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
        if run.root.streams is not None:  # the session's conversations, each whole and once
            values["contexts"] = {name: made.whole() for name, made in run.root.streams.contexts.items()}
        state = state_view(story_of(run.memory, run.status, run.run_id, self._folder, run))
        metadata: dict[str, Any] = msgspec.to_builtins(opened) if opened is not None else {}
        for key in ("k", "c"):
            metadata.pop(key, None)
        return {"state.json": state, "context.json": values, "metadata.json": metadata}

    def _of_visit(self, visit: str, ready: Ready | None) -> list[tuple[str, Any]]:
        folder = node_folder(visit)
        made: list[tuple[str, Any]] = []
        if ready is not None:
            made.append((input_file(visit), portable(ready.params)))
        outcome = self._run.memory.ended.get(visit)
        if outcome is not None:
            made.append((f"{folder}/output.json", portable(brief(outputs_of(outcome)))))
            answer = _answer(outcome)
            if answer is not None:
                made.append((f"{folder}/agent_response.json", answer))
        return made


def _answer(outcome: Outcome) -> dict[str, Any] | None:
    """What an agent said, as it said it: its text, the data in it, and what it used; None for other nodes."""
    made = outcome.outputs
    if outcome.failure is not None and "answer" in outcome.failure.details:
        return {"text": outcome.failure.details["answer"], "error": shown(outcome.failure)}
    if not isinstance(made.get("text"), str) or "usage" not in made:
        return None
    data = next(iter(reversed(list(objects(made["text"])))), None)  # the last: an example comes before the answer
    return {"text": made["text"], "data": data, "usage": portable(made["usage"])}


class Views:
    """The views in one run's folder, written when they differ from what this process wrote last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, bytes] = {}

    def write(self, views: Mapping[str, Any]) -> int:
        """Write each value to the file it is named for, such as ``nodes/a/output.json``; tell how many changed.

        Ids within a name have been through ``safe_name``.
        """
        return sum(self._write(name, encode_json(value, indent=2)) for name, value in views.items())

    def _write(self, name: str, data: bytes) -> bool:
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if self._digests.get(name) == digest:
            return False
        write_atomic(self._folder / name, data)
        self._digests[name] = digest
        return True

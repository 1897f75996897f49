"""The scene of a visit: what it was given, what stood in the run's values, and how its attempts went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pflow.app.history import inspect, records
from pflow.engines.views import node_folder
from pflow.errors import PflowError
from pflow.kernel.run import Run
from pflow.kernel.scope import outputs_of
from pflow.kernel.telling import shown
from pflow.model.run import AnyRecord, Began, Ended, Finished, Opened, Shared, Tried
from pflow.model.value import portable
from pflow.model.visit import is_within, node_of, prefix_of
from pflow.storage.files import read_json
from pflow.storage.runs import RunFolder


class Scenes:
    """What one run's journal tells about its visits."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._records: Sequence[AnyRecord] = records(folder)
        try:
            self._run: Run | None = inspect(folder.path)
        except PflowError:  # its workflow or its node types are not what they were
            self._run = None

    def of(self, visit: str) -> dict[str, Any]:
        """Params as written, inputs as resolved, the values around it when it ended, and its attempts."""
        planned = self._run.root.plan.nodes.get(node_of(visit)) if self._run is not None else None
        return {
            "params": portable(planned.node.params) if planned is not None else None,
            "inputs": self._inputs(visit),
            "shared": self._shared(visit),
            "attempts": self._attempts(visit),
        }

    def unfinished(self) -> list[str]:
        """The visits that a run was at when it was left, as far as its journal tells."""
        if any(isinstance(record, Finished) for record in self._records[-1:]):
            return []
        at_work: dict[str, None] = dict.fromkeys(self._run.root.started) if self._run is not None else {}
        for record in self._records:
            if isinstance(record, (Began, Tried)):
                at_work[record.visit] = None
            elif isinstance(record, Ended):
                at_work.pop(record.visit, None)
        return [visit for visit in at_work if not any(is_within(other, visit) for other in at_work if other != visit)]

    def _inputs(self, visit: str) -> Any:
        """As the view shows them; where the process died before it was written, they are worked out again."""
        try:
            return read_json(self._folder.path / node_folder(visit) / "input.json")
        except (OSError, ValueError):
            pass
        planned = self._run.root.plan.nodes.get(node_of(visit)) if self._run is not None else None
        if planned is None or self._run is None:
            return None
        try:
            return portable(planned.params.bind(self._run.root.values))
        except PflowError:  # this is what it failed with
            return None

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

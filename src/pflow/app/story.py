"""The story of a run: how it stands, in the one shape from which every view of it is made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from pflow.app.wording import sentence
from pflow.kernel.events import shown
from pflow.kernel.memory import Memory
from pflow.kernel.run import Run
from pflow.model.records import Asked, Failure, Outcome, RunStatus
from pflow.model.visit import is_nested, node_of
from pflow.nodes.step import add_usage

ENDED = ("completed", "failed", "cancelled")


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands."""

    run_id: str
    status: RunStatus
    workflow: str = ""
    dialect: str = ""
    file: str = ""  # the workflow's own, where it has one
    path: Path | None = None  # the run's folder, where it has one
    started_at: float = 0.0
    updated_at: float = 0.0
    nodes_total: int = 0
    visits: dict[str, Outcome]  # in the order in which they ended
    at_work: dict[str, int] = {}  # the run's own visits that have not ended → the attempt they are at
    waiting: tuple[Asked, ...] = ()  # open questions
    doubts: tuple[tuple[str, int], ...] = ()  # visits that may have taken effect, with the attempt that was cut off
    held: dict[str, Failure] = {}  # visits that go on when the run is resumed with more
    error: Failure | None = None
    usage: dict[str, Any] = {}

    @property
    def own(self) -> dict[str, Outcome]:
        """The workflow's own visits; those inside of them left out."""
        return {visit: one for visit, one in self.visits.items() if not is_nested(visit)}

    @property
    def nodes_completed(self) -> int:
        """How many of the workflow's own nodes have completed."""
        return len({node_of(visit) for visit, one in self.own.items() if one.status == "completed"})


def story_of(memory: Memory, status: RunStatus, run_id: str, path: Path | None, run: Run | None = None) -> Story:
    """The story that a run's records tell; more of it where its workflow can be planned, so that there is a ``run``."""
    opened, finished = memory.opened, memory.finished
    known = {node_of(visit) for visit in memory.ended if not is_nested(visit)}
    return Story(
        run_id=run_id,
        status=status,
        workflow=opened.workflow if opened else "",
        dialect=opened.dialect if opened else "",
        file=opened.path if opened else "",
        path=path,
        started_at=opened.t if opened else 0.0,
        updated_at=memory.updated,
        nodes_total=len(run.root.plan.graph.ids if run else known),
        visits=dict(memory.ended),
        at_work={visit: memory.next_attempt(visit) for visit in run.root.started} if run else {},
        waiting=tuple(memory.asked.values()),
        doubts=tuple({**memory.begun, **(run.people.doubts if run else {})}.items()),
        held={**memory.held, **(run.people.held if run else {})},
        error=finished.failure if finished else None,
        usage=used_by(memory),
    )


# What a run used.


def used_by(memory: Memory) -> dict[str, Any]:
    """What a run used so far; also by visits that are held, and have not ended."""
    total = total_usage(memory.ended.values())
    for visit, usage in memory.used.items():
        if visit not in memory.ended:
            add_usage(total, {key: number for key, number in usage.items() if isinstance(number, (int, float))})
    return total


def total_usage(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """What all visits used together; what was reused cost nothing."""
    total: dict[str, Any] = {}
    for outcome in outcomes:
        for key, number in outcome.usage.items() if not outcome.reused else ():
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                total[key] = total.get(key, 0) + number
    return total


def cost_of(usage: dict[str, Any]) -> float:
    """The money in a report of usage, in US dollars."""
    for key in ("cost_usd", "total_cost_usd", "cost"):
        number = usage.get(key)
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return float(number)
    return 0.0


# The story as data.


def state_view(story: Story) -> dict[str, Any]:
    """A story as ``state.json`` and ``pflow status`` show it."""
    return {
        "run_id": story.run_id,
        "workflow": story.workflow,
        "dialect": story.dialect,
        "status": story.status,
        "started_at": story.started_at,
        "updated_at": story.updated_at,
        "nodes_total": story.nodes_total,
        "nodes_completed": story.nodes_completed,
        "steps": _steps(story),
        "waiting": [
            {"visit": ask.visit, "question": ask.question, "choices": list(ask.choices)} for ask in story.waiting
        ],
        "doubts": [{"visit": visit, "attempt": attempt} for visit, attempt in story.doubts],
        "held": [{"visit": visit, "message": why.message} for visit, why in story.held.items()],
        "error": shown(story.error) or None,
    }


def _steps(story: Story) -> dict[str, Any]:
    """Every visit by its id; in a run that nobody drives, what was under way is not."""
    asking = {asked.visit for asked in story.waiting}
    steps = {visit: outcome_view(outcome) for visit, outcome in story.visits.items()}
    for visit, attempt in story.at_work.items():
        left = "waiting" if visit in asking else "interrupted"
        steps[visit] = {"status": "running" if story.status == "running" else left, "attempts": attempt}
    return steps


def outcome_view(outcome: Outcome) -> dict[str, Any]:
    """How a visit ended, with what there is to say of it."""
    view: dict[str, Any] = {"status": outcome.status, "attempts": outcome.attempts, "duration_ms": outcome.ms}
    extra = {
        "cached": outcome.reused,
        "reason": sentence(outcome.reason),
        "route": outcome.route,
        "usage": outcome.usage,
        "error": shown(outcome.failure),
    }
    return view | {key: value for key, value in extra.items() if value}

"""Replay: the road of a live run without appending and launching, so that a resumed run is where it stopped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pflow.kernel.scope import Scope, cancelled
from pflow.model.run import (
    Answer,
    AnyRecord,
    Asked,
    Cancelled,
    Command,
    Ended,
    Fact,
    Feed,
    Finish,
    Reopened,
    Start,
    Stop,
)
from pflow.model.visit import is_nested

if TYPE_CHECKING:
    from pflow.kernel.run import Run


def replay(run: Run, records: Iterable[AnyRecord]) -> None:
    """Take over what a journal says."""
    _heed(run.root, run.root.wake())
    for record in records:
        run.memory.fold(record)
        if isinstance(record, (Cancelled, Reopened)) or (
            isinstance(record, (Ended, Asked)) and not is_nested(record.visit)
        ):
            follow(run.root, record)


def follow(scope: Scope, fact: Fact) -> None:
    """Let a scope take in a recorded fact: nothing is launched."""
    if not scope.awake:
        _heed(scope, scope.wake())
    if type(fact) is Ended:
        scope.fold(fact.visit, fact.outcome)
        if scope.live is not None:
            scope.live.ended(fact.visit, fact.outcome)
    if type(fact) is Asked and scope.live is not None:
        scope.live.ask(fact)
    if type(fact) is Reopened:
        scope.finish = None
    _heed(scope, scope.scheduler.on(fact))


def ended_badly(run: Run) -> bool:
    """Whether a replayed run can only go on by being reopened."""
    finish = run.memory.finished or run.root.finish
    return bool(run.root.stopping) or (finish is not None and finish.status != "completed")


def reopen(run: Run) -> None:
    """Go on after a failure or a cancel: what ended badly is tried again under the same ids."""
    now, root = run.clock.now, run.root
    for visit, why in list(root.stopping.items()):  # it died before these could be drained
        _catch_up(run, Ended(now(), visit, cancelled(why, run.memory.next_attempt(visit))))
    _catch_up(run, Reopened(now(), run.run_id))


def _catch_up(run: Run, fact: Fact) -> None:
    run.journal.append(fact)
    run.memory.fold(fact)
    follow(run.root, fact)


def _heed(scope: Scope, commands: list[Command]) -> None:
    """Note what commands mean for a scope that is being replayed."""
    for command in commands:
        if type(command) is Start:
            scope.started[command.visit.id] = command.visit
        elif type(command) is Stop:
            scope.stopping[command.visit] = command.why
        elif type(command) is Finish:
            scope.finish = command
        elif type(command) is Feed and scope.live is not None:
            scope.live.feed(command.visit, command.values)
        elif type(command) is Answer and scope.live is not None:
            scope.live.answer(command)

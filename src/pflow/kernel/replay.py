"""Replay: the road of a live run without appending and launching, so that a resumed run is where it stopped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pflow.kernel.scope import cancelled
from pflow.model.records import AnyRecord, Asked, Cancelled, Ended, Fact, Reopened
from pflow.model.visit import is_nested

if TYPE_CHECKING:
    from pflow.kernel.run import Run


def replay(run: Run, records: Iterable[AnyRecord]) -> None:
    """Take over what a journal says; nested scopes take up theirs when their visits are executed again."""
    for command in run.root.wake():
        run.root.note(command)
    for record in records:
        run.memory.fold(record)
        if isinstance(record, (Cancelled, Reopened)) or (
            isinstance(record, (Ended, Asked)) and not is_nested(record.visit)
        ):
            run.root.replay(record)


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
    run.note(fact)
    run.root.replay(fact)

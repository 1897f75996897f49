"""Runs that were: looking into them, forking them, and sending them messages."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from pflow.app.documents import kept_workflow
from pflow.app.running import DOCUMENT, Options, Session, registry_for
from pflow.engines.local import Held
from pflow.errors import RunError, UsageError
from pflow.kernel.run import Run
from pflow.model.run import AnyRecord, Finished, Opened, Reopened, Stored
from pflow.planning.build import build
from pflow.storage import inbox, runs
from pflow.storage.journal import Memory
from pflow.storage.journal import read as read_journal


def find(run_id: str | Path, home: Path | None = None) -> runs.RunFolder:
    """The folder of a run, by its id, the start of its id, or its path."""
    return runs.RunFolder(run_id if isinstance(run_id, Path) else runs.find(run_id, home))


def records(folder: runs.RunFolder) -> list[AnyRecord]:
    """What a run's journal says, without touching it; the first record is its opening."""
    found = list(read_journal(folder.journal))
    if not found or not isinstance(found[0], Opened):
        raise RunError(f"run {folder.id} has no beginning: it was stopped before anything was done", "start a new run")
    return found


def inspect(run_id: str | Path, **options: Any) -> Run:
    """A run's state as its journal tells it, without taking the run over; not to be driven."""
    chosen = Options(**options)
    folder = find(run_id, chosen.home)
    found = records(folder)
    opened = found[0]
    assert isinstance(opened, Opened)
    workflow = kept_workflow(folder, opened)
    registry = registry_for(workflow, chosen)
    session = Session(build(workflow, registry), opened, chosen, registry, Memory(), None)
    session.run.replay(found)
    return session.run


def fork(run_id: str | Path, at: str, **options: Any) -> str:
    """A new run that is the old one up to just before it came to ``at`` (a node, or a visit ``node#n``)."""
    chosen = Options(**options)
    source = find(run_id, chosen.home)
    found = records(source)
    opened = found[0]
    assert isinstance(opened, Opened)
    cut = _first_mention(found, at)
    target = runs.create(source.path.parent, runs.new_id(opened.workflow, time.time()))
    held = Held.create(target, chosen.durable)
    try:
        for name in opened.documents.values():
            held.journal.require(target.copy_document(source, name))
        held.log.append(msgspec.structs.replace(opened, t=time.time(), run=target.id, forked=f"{source.id}@{at}"))
        for record in found[1:cut]:
            if isinstance(record, Stored) and record.key.startswith(DOCUMENT):
                held.journal.require(target.copy_document(source, record.value))
            if not isinstance(record, (Finished, Reopened)):
                held.log.append(record)
        held.log.sync()
    finally:
        held.close()
    return target.id


def reply(run_id: str | Path, value: Any, node: str | None = None, home: Path | None = None) -> None:
    """Leave an answer for a run that asks; whoever drives it takes it, now or when it is resumed."""
    message = {"kind": "reply", "value": value}
    inbox.post(find(run_id, home).path, message if node is None else message | {"node": node})


def cancel(run_id: str | Path, why: str = "", home: Path | None = None) -> None:
    """Tell whoever drives a run to end it for good."""
    inbox.post(find(run_id, home).path, {"kind": "cancel", "why": why})


def _first_mention(found: list[AnyRecord], at: str) -> int:
    """Where a run first came to a node or visit."""
    visits = [getattr(record, "visit", "") for record in found]
    wanted = at if "#" in at else f"{at}#1"
    if wanted in visits:
        return visits.index(wanted)
    known = dict.fromkeys(visit.partition("/")[0] for visit in visits if visit)
    raise UsageError(f'the run never came to "{at}"', f"it came to: {', '.join(known) or 'nothing yet'}")

"""Runs that were: looking into them, forking them, and sending them messages."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from pflow.app.documents import kept_workflow
from pflow.app.options import Options
from pflow.app.running import Session, registry_for, replayed, started_where, taken
from pflow.app.secrets import redactor
from pflow.engines.local import Held
from pflow.engines.views import Viewer, state
from pflow.errors import PflowError, RunError, UsageError
from pflow.kernel.memory import Memory as Recollection
from pflow.kernel.replay import replay
from pflow.kernel.run import Run
from pflow.model.redact import HIDDEN
from pflow.model.run import AnyRecord, Ended, Failure, Finished, Loaded, Opened, Outcome, Reopened, RunStatus
from pflow.model.visit import is_nested, is_within, meant, node_of, prefix_of, top_of
from pflow.model.workflow import Workflow
from pflow.planning.build import build
from pflow.storage import inbox, lease, runs
from pflow.storage.files import home as default_home
from pflow.storage.files import read_json
from pflow.storage.journal import Memory, as_it_stands
from pflow.storage.journal import read as read_journal

ENDED = ("completed", "failed", "cancelled")


class Glance(msgspec.Struct, frozen=True):
    """A run at a glance: a row of ``pflow runs``."""

    run_id: str
    workflow: str
    dialect: str
    status: RunStatus
    started_at: float
    updated_at: float
    nodes_completed: int
    nodes_total: int
    path: str


# Looking.


def find(run_id: str | Path, home: Path | None = None) -> runs.RunFolder:
    """The folder of a run, by its id, the start of its id, or its path."""
    return runs.RunFolder(run_id if isinstance(run_id, Path) else runs.find(run_id, home))


def last(home: Path | None = None) -> runs.RunFolder:
    """The newest run."""
    found = runs.list_runs(home)
    if not found:
        raise UsageError("there are no runs yet", "start one: pflow FILE")
    return runs.RunFolder(found[0])


def records(folder: runs.RunFolder) -> list[AnyRecord]:
    """What a run's journal says, without touching it and with secrets hidden; the first record is its opening."""
    return _begun(folder, list(read_journal(folder.journal)))


def first_record(folder: runs.RunFolder) -> Opened:
    """How a run was begun."""
    opened = _begun(folder, list(islice(read_journal(folder.journal), 1)))[0]
    assert isinstance(opened, Opened)
    return opened


def _begun(folder: runs.RunFolder, found: list[AnyRecord]) -> list[AnyRecord]:
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
    chosen = msgspec.structs.replace(started_where(opened, chosen), secrets=_placeholders(workflow))
    registry = registry_for(workflow, chosen)
    session = Session(build(workflow, registry), opened, chosen, registry, Memory(), None)
    replay(session.run, found)
    return session.run


def _placeholders(workflow: Workflow) -> dict[str, str]:
    """What stands for secrets in a run that is looked at, and not driven."""
    return {item.name: HIDDEN for item in workflow.inputs if item.secret}


def look(run_id: str | Path, **options: Any) -> dict[str, Any]:
    """A run's state as ``state.json`` shows it, true at this moment."""
    folder = find(run_id, Options(**options).home)
    memory = recall(folder)
    try:
        view = state(inspect(folder.path, **options))
    except PflowError:  # its workflow or its node types are not what they were: what is known without them
        view = _bare(folder, memory)
    now = status(folder, memory)
    if now != "running":
        waiting = {visit for visit, _, _ in memory.asked}
        view["steps"] = {visit: _at_rest(step, visit in waiting) for visit, step in view["steps"].items()}
        view["held"] = [{"visit": visit, "message": why.message} for visit, why in memory.held.items()]
    shown: dict[str, Any] = redactor(None, {}, Options(**options).home).value(view)
    return shown | {"status": now, "path": str(folder.path)}


def _at_rest(step: dict[str, Any], waiting: bool) -> dict[str, Any]:
    """A step of a run that nobody drives: what was under way is not."""
    return step if step["status"] != "running" else step | {"status": "waiting" if waiting else "interrupted"}


def recall(folder: runs.RunFolder) -> Recollection:
    """What a run's journal adds up to, without its workflow."""
    memory = Recollection()
    for record in records(folder):
        memory.fold(record)
    return memory


def status(folder: runs.RunFolder, memory: Recollection) -> RunStatus:
    """How a run stands, whether or not somebody drives it."""
    if memory.finished is not None:
        return memory.finished.status
    if lease.alive(folder.path):
        return "running"
    return "paused" if memory.asked or _view(folder).get("status") == "paused" else "interrupted"


def survey(home: Path | None = None, most: int | None = None) -> list[Glance]:
    """The newest runs, at a glance; folders without a readable journal are left out."""
    found: list[Glance] = []
    for path in runs.list_runs(home):
        if most is not None and len(found) >= most:
            break
        glance = _glance(runs.RunFolder(path), home)
        if glance is not None:
            found.append(glance)
    return found


def _glance(folder: runs.RunFolder, home: Path | None) -> Glance | None:
    """From the view where it is whole and as new as the journal, else from the journal."""
    found = _shown(folder) if _is_fresh(folder) else None
    try:
        if found is None:
            found = msgspec.convert(look(folder.path, home=home), Glance)
        elif found.status not in ENDED:
            found = msgspec.structs.replace(found, status=status(folder, recall(folder)))
    except (PflowError, msgspec.ValidationError):
        return None
    return found


def _shown(folder: runs.RunFolder) -> Glance | None:
    try:
        return msgspec.convert(_view(folder) | {"path": str(folder.path)}, Glance)
    except msgspec.ValidationError:
        return None


def _is_fresh(folder: runs.RunFolder) -> bool:
    try:
        return folder.state.stat().st_mtime_ns >= folder.journal.stat().st_mtime_ns
    except OSError:
        return False


def _view(folder: runs.RunFolder) -> dict[str, Any]:
    """What ``state.json`` says; nothing where it cannot be read."""
    try:
        view = read_json(folder.state)
    except (OSError, ValueError):
        return {}
    return view if isinstance(view, dict) else {}


def _bare(folder: runs.RunFolder, memory: Recollection) -> dict[str, Any]:
    opened = memory.opened
    assert opened is not None
    ended = {visit: outcome for visit, outcome in memory.ended.items() if not is_nested(visit)}
    known = {"run_id": folder.id, "workflow": opened.workflow, "dialect": opened.dialect, "started_at": opened.t}
    view = {
        "nodes_total": len(ended),
        "steps": {},
        "waiting": [],
        "doubts": [],
        "error": None,
        **_view(folder),
        **known,
    }
    done = {node_of(visit) for visit, outcome in ended.items() if outcome.status == "completed"}
    return view | {"updated_at": memory.updated, "nodes_completed": len(done)}


# Forking.


def fork(run_id: str | Path, at: str, **options: Any) -> str:
    """A new run that is the old one up to just before it came to ``at`` (a node, or a visit ``node#n``)."""
    chosen = Options(**options)
    source = find(run_id, chosen.home)
    found = _begun(source, list(read_journal(source.journal, as_it_stands)))
    opened = found[0]
    assert isinstance(opened, Opened)
    cut = _first_mention(found, at)
    target = runs.create(source.path.parent, runs.new_id(opened.workflow, time.time()))
    held = Held.create(target, chosen.durable)  # what was sealed stays sealed
    try:
        for name in opened.documents.values():
            held.journal.require(target.copy_document(source, name))
        held.log.append(msgspec.structs.replace(opened, t=time.time(), run=target.id, forked=f"{source.id}@{at}"))
        for record in found[1:cut]:
            if isinstance(record, Loaded):
                held.journal.require(target.copy_document(source, record.name))
            if not isinstance(record, (Finished, Reopened)):
                held.log.append(record)
        held.log.sync()
    finally:
        held.close()
    home = chosen.home or default_home()
    if target.path.parent != home / "runs":
        runs.register(target.id, target.path, home)
    return target.id


def _first_mention(found: list[AnyRecord], at: str) -> int:
    """Where a run first came to a node or visit: its first record, or the first one of what ran inside it."""
    visits = [getattr(record, "visit", "") for record in found]
    wanted = meant(at)
    for position, visit in enumerate(visits):
        if is_within(visit, wanted):
            return position
    scope = prefix_of(wanted)
    inside = [visit for visit in visits if visit.startswith(scope)] if scope else []
    known = dict.fromkeys(inside or (top_of(visit) for visit in visits if visit))
    raise UsageError(f'the run never came to "{at}"', f"it came to: {', '.join(known) or 'nothing yet'}")


# Messages.


def reply(
    run_id: str | Path, value: Any, node: str | None = None, home: Path | None = None, visit: str | None = None
) -> None:
    """Leave an answer for a run that asks; whoever drives it takes it, now or when it is resumed."""
    whom = {"node": node, "visit": visit}
    message = {"kind": "reply", "value": value} | {key: name for key, name in whom.items() if name is not None}
    inbox.post(find(run_id, home).path, message)


def cancel(run_id: str | Path, why: str = "", home: Path | None = None) -> str:
    """End a run for good: whoever drives it is told, and where nobody does it is ended here.

    Returns the name of the message to the live process, or nothing when the run has ended.
    """
    folder = find(run_id, home)
    finished = recall(folder).finished
    if finished is not None:
        raise UsageError(f"run {folder.id} has ended already: {finished.status}", "`pflow trace` shows how")
    if lease.alive(folder.path):
        return inbox.post(folder.path, {"kind": "cancel", "why": why})
    _cancel_here(folder, why, home)
    return ""


def _cancel_here(folder: runs.RunFolder, why: str, home: Path | None) -> None:
    """Record the cancel of a run that nobody drives: what was under way ends with it."""
    opened = records(folder)[0]
    assert isinstance(opened, Opened)
    chosen = Options(home=home, secrets=_placeholders(kept_workflow(folder, opened)))
    held = taken(folder, chosen)
    try:
        session = replayed(held, chosen)
        run = session.run
        run.cancel(why)
        for visit in list(run.root.started):
            attempt = run.memory.begun.get(visit) or run.memory.tried.get(visit, 0)
            failure = Failure("cancelled", "stopped: cancelled")
            run.post(run.root, Ended(run.clock.now(), visit, Outcome("cancelled", failure=failure, attempts=attempt)))
        held.log.sync()
        Viewer(run, folder.path, session.redactor).repair()
    finally:
        held.close()

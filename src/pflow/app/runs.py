"""Runs that were, or are: found, listed, looked into, answered and cancelled."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

import msgspec

from pflow.app.documents import kept_workflow
from pflow.app.drift import Drift, drift
from pflow.app.driver import NoJournal
from pflow.app.options import Keywords, Options
from pflow.app.secrets import redactor
from pflow.app.session import Session, registry_for
from pflow.app.stopped import started_where, take
from pflow.app.story import ENDED, Story, state_view, story_of
from pflow.app.views import Viewer
from pflow.errors import PflowError, RunError, UsageError
from pflow.kernel.memory import Memory
from pflow.kernel.replay import replay
from pflow.model.records import AnyRecord, Asked, Ended, Failure, Opened, Outcome, RunStatus
from pflow.model.redact import HIDDEN
from pflow.model.visit import node_of, short
from pflow.model.workflow import Input, Workflow
from pflow.planning.build import build
from pflow.storage import inbox, lease, runs
from pflow.storage.files import read_json
from pflow.storage.journal import read as read_journal

_PAUSE = 0.02  # seconds between looks whether a cancel was heeded


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


def find(run: str | Path, home: Path | None = None) -> Path:
    """The folder of a run, by its id, the start of its id, or its path."""
    return run if isinstance(run, Path) else runs.find(run, home)


def folder_of(word: str) -> Path:
    """The folder of the run that a word means: an id, its start, or a path."""
    path = Path(word)
    return path if "/" in word and path.is_dir() else find(word)


def last(home: Path | None = None) -> Path:
    """The folder of the newest run."""
    found = runs.list_runs(home)
    if not found:
        raise UsageError("there are no runs yet", "start one: pflow FILE")
    return found[0]


def records(folder: runs.RunFolder) -> list[AnyRecord]:
    """What a run's journal says, without touching it and with secrets hidden; the first record is its opening."""
    return begun(folder, list(read_journal(folder.journal)))


def opening_of(run: str | Path, home: Path | None = None) -> Opened:
    """How a run was begun."""
    folder = runs.RunFolder(find(run, home))
    opened = begun(folder, list(islice(read_journal(folder.journal), 1)))[0]
    assert isinstance(opened, Opened)
    return opened


def begun(folder: runs.RunFolder, found: list[AnyRecord]) -> list[AnyRecord]:
    """Records that begin with the opening of a run."""
    if not found or not isinstance(found[0], Opened):
        raise RunError(f"run {folder.id} has no beginning: it was stopped before anything was done", "start a new run")
    return found


def drift_of(run: str | Path, home: Path | None = None) -> list[Drift]:
    """How the documents of a run differ now from the copies that it keeps."""
    folder = find(run, home)
    return drift(folder, records(runs.RunFolder(folder)))


def secret_inputs(run: str | Path, home: Path | None = None) -> dict[str, Input]:
    """The inputs of a run that are not kept with it, by name."""
    folder = runs.RunFolder(find(run, home))
    return {item.name: item for item in kept_workflow(folder, opening_of(folder.path)).inputs if item.secret}


# Looking.


def inspect(run: str | Path, **options: Unpack[Keywords]) -> Session:
    """A run as its journal tells it, without taking it over; not to be driven."""
    chosen = Options(**options)
    folder = runs.RunFolder(find(run, chosen.home))
    return replayed(folder, records(folder), chosen)


def replayed(folder: runs.RunFolder, found: list[AnyRecord], options: Options) -> Session:
    """A session in the state that records tell, not to be driven."""
    opened = found[0]
    assert isinstance(opened, Opened)
    workflow = kept_workflow(folder, opened)
    chosen = msgspec.structs.replace(started_where(opened, options), secrets=_placeholders(workflow))
    registry = registry_for(workflow, chosen)
    session = Session(build(workflow, registry), opened, chosen, registry, NoJournal(), None)
    replay(session.run, found)
    return session


def _placeholders(workflow: Workflow) -> dict[str, str]:
    """What stands for secrets in a run that is looked at, and not driven."""
    return {item.name: HIDDEN for item in workflow.inputs if item.secret}


def story(run: str | Path, **options: Unpack[Keywords]) -> Story:
    """How a run stands, true at this moment."""
    chosen = Options(**options)
    folder = runs.RunFolder(find(run, chosen.home))
    return story_from(folder, records(folder), chosen)[0]


def story_from(folder: runs.RunFolder, found: list[AnyRecord], options: Options) -> tuple[Story, Session | None]:
    """The story that records tell, with the session that they lead to where its workflow and types are as they were."""
    try:
        session = replayed(folder, found, options)
        memory, run = session.run.memory, session.run
    except PflowError:
        session, memory, run = None, recollection(found), None
    made = story_of(memory, status(folder, memory), folder.id, folder.path, run)
    return (made if run else _as_seen_last(made, _view(folder))), session


def _as_seen_last(made: Story, view: dict[str, Any]) -> Story:
    """A story with what only its workflow would tell, as the view shows it: how many nodes, and which are under way."""
    steps = view.get("steps", {})
    under_way = ("running", "waiting", "interrupted")
    left = {visit: step.get("attempts", 1) for visit, step in steps.items() if step.get("status") in under_way}
    left = {visit: attempt for visit, attempt in left.items() if visit not in made.visits}
    return msgspec.structs.replace(made, nodes_total=max(made.nodes_total, view.get("nodes_total", 0)), at_work=left)


def recollection(found: list[AnyRecord]) -> Memory:
    """What records add up to, without their workflow."""
    memory = Memory()
    for record in found:
        memory.fold(record)
    return memory


def status(folder: runs.RunFolder, memory: Memory) -> RunStatus:
    """How a run stands, whether or not somebody drives it."""
    if memory.finished is not None:
        return memory.finished.status
    if lease.alive(folder.path):
        return "running"
    return "paused" if memory.asked or memory.held or _view(folder).get("status") == "paused" else "interrupted"


def state(run: str | Path, **options: Unpack[Keywords]) -> dict[str, Any]:
    """A run's state as data, with secrets hidden."""
    made = story(run, **options)
    shown: dict[str, Any] = redactor(None, {}, Options(**options).home).value(state_view(made))
    return shown | {"path": str(made.path)}


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
    shown = _shown(folder) if _is_fresh(folder) else None
    try:
        if shown is None:
            return msgspec.convert(state(folder.path, home=home), Glance)
        if shown.status not in ENDED:
            shown = msgspec.structs.replace(shown, status=status(folder, recollection(records(folder))))
        return shown
    except (PflowError, msgspec.ValidationError):
        return None


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


# Messages.


def driver(run: str | Path, home: Path | None = None) -> str:
    """Who drives a run right now; nothing where nobody does."""
    folder = find(run, home)
    return str(lease.holder(folder)) if lease.alive(folder) else ""


def waiting(run: str | Path, home: Path | None = None) -> list[Asked]:
    """The questions that a run asks."""
    return list(recollection(records(runs.RunFolder(find(run, home)))).asked.values())


def question(run: str | Path, node: str | None, how: str, home: Path | None = None) -> Asked:
    """The question that is meant, by its node or its visit in either spelling; of several of one visit, the first."""
    asked = waiting(run, home)
    found = [one for one in asked if node in (None, node_of(one.visit), short(one.visit), one.visit)]
    if not found:
        names, run_id = ", ".join(dict.fromkeys(short(one.visit) for one in asked)), find(run, home).name
        hint = f"these ask: {names}" if names else f"`pflow status {run_id}` shows how it stands"
        raise UsageError(f"node {node!r} asks nothing" if node else f"run {run_id} asks nothing", hint)
    visits = dict.fromkeys(one.visit for one in found)
    if len(visits) > 1:
        names = ", ".join(sorted(map(short, visits)))
        raise UsageError(f"{len(visits)} nodes ask", f"say which with {how}: {names}")
    return found[0]


def reply(
    run: str | Path, value: Any, node: str | None = None, home: Path | None = None, visit: str | None = None
) -> None:
    """Leave an answer for a run that asks; whoever drives it takes it, now or when it is resumed."""
    whom = {"node": node, "visit": visit}
    message = {"kind": "reply", "value": value} | {key: name for key, name in whom.items() if name is not None}
    inbox.post(find(run, home), message)


def cancel(run: str | Path, why: str = "", home: Path | None = None, patience: float = 0.0) -> str:
    """End a run for good: whoever drives it is told, and where nobody does it is ended here.

    Returns who was told and has not heeded it within so many seconds of ``patience``; nothing where it has ended.
    """
    folder = runs.RunFolder(find(run, home))
    finished = recollection(records(folder)).finished
    if finished is not None:
        raise UsageError(f"run {folder.id} has ended already: {finished.status}", "`pflow trace` shows how")
    until = time.monotonic() + patience
    while lease.alive(folder.path):
        name = inbox.post(folder.path, {"kind": "cancel", "why": why})
        while (folder.inbox / name).exists() and lease.alive(folder.path):
            if time.monotonic() >= until:
                return str(lease.holder(folder.path))
            time.sleep(_PAUSE)
        if not (folder.inbox / name).exists():
            return ""
        inbox.remove(folder.path, name)  # it went away without a look at its inbox
    _cancel_here(folder, why, home)
    return ""


def _cancel_here(folder: runs.RunFolder, why: str, home: Path | None) -> None:
    """Record the cancel of a run that nobody drives: what was under way ends with it."""
    secrets = _placeholders(kept_workflow(folder, opening_of(folder.path)))
    taken = take(folder.path, secrets, home)
    session = taken.session(Options(home=home, secrets=secrets))
    try:
        run = session.run
        run.cancel(why)
        for visit in list(run.root.started):
            attempt = run.memory.begun.get(visit) or run.memory.tried.get(visit, 0)
            failure = Failure("cancelled", "stopped: cancelled")
            run.post(run.root, Ended(run.clock.now(), visit, Outcome("cancelled", failure=failure, attempts=attempt)))
        taken.held.log.sync()
        Viewer(run, folder.path, session.redactor).repair()
    finally:
        taken.release()

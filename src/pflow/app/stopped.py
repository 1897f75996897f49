"""A run that was stopped: its folder, records and workflow, each read once, for whoever goes on with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import msgspec

from pflow.app.documents import kept_workflow
from pflow.app.drift import Drift, drift
from pflow.app.driver import Driver
from pflow.app.options import Keywords, Options, Result
from pflow.app.secrets import revealed, seal
from pflow.app.session import Session, registry_for
from pflow.kernel.replay import ended_badly, reopen, replay
from pflow.model.records import Opened
from pflow.model.workflow import Workflow
from pflow.planning.build import build
from pflow.storage import runs


class Stopped:
    """A run in the hands of this process, as it was left."""

    def __init__(self, held: Driver, workflow: Workflow) -> None:
        self.held = held
        self.workflow = workflow

    def drift(self) -> list[Drift]:
        """How its documents differ now from the copies that it keeps."""
        return drift(self.held.folder.path, self.held.records)

    def session(self, options: Options) -> Session:
        """A session in the state in which the run stopped; where there cannot be one, the run is let go."""
        try:
            registry = registry_for(self.workflow, started_where(self.held.opened, options))
            plan = build(self.workflow, registry)
            made = Session(plan, self.held.opened, options, registry, self.held.log, self.held)
            replay(made.run, self.held.records)
        except BaseException:
            self.held.close()
            raise
        return made

    def release(self) -> None:
        """Let others have the run."""
        self.held.close()


def take(run: str | Path, secrets: Mapping[str, Any], home: Path | None = None, durable: bool = True) -> Stopped:
    """Take a run; raises ``RunBusy`` when another process has it."""
    held = Driver.open(runs.RunFolder(run if isinstance(run, Path) else runs.find(run, home)), durable)
    try:
        workflow = kept_workflow(held.folder, held.opened)
        held.read(seal(workflow, revealed(workflow, held.opened.inputs, secrets, home), home))
    except BaseException:
        held.close()
        raise
    return Stopped(held, workflow)


async def resume(run: str | Path | Stopped, **options: Unpack[Keywords]) -> Result:
    """Go on with a run that was stopped, failed or waits; a complete one is left as it is."""
    chosen = Options(**options)
    taken = run if isinstance(run, Stopped) else take(run, chosen.secrets, chosen.home, chosen.durable)
    session = taken.session(chosen)
    memory = session.run.memory
    if memory.finished is not None and memory.finished.status == "completed":
        taken.held.repair(session.run, session.redactor)
        taken.held.close()
        return session.result()
    if ended_badly(session.run):
        reopen(session.run)
    return await session.drive()


def started_where(opened: Opened, options: Options) -> Options:
    """The options with the folder in which a run was started, where its local node types are found again."""
    if options.workspace is not None or not opened.cwd:
        return options
    return msgspec.structs.replace(options, workspace=Path(opened.cwd))

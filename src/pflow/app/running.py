"""Load → plan → run: what every front end calls, and nothing below it.

workflow = load("flow.yaml")            any dialect; WorkflowError tells every problem at once
result = await run(workflow, inputs)    a new run, in a folder of its own
result = await resume(run_id)           goes on where a run stopped; a no-op when it is complete
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pflow.app.documents import kept_workflow, load, parse
from pflow.engines.local import Held
from pflow.errors import UsageError
from pflow.kernel.clock import Clock
from pflow.kernel.desk import Guide
from pflow.kernel.feed import Hub
from pflow.kernel.run import Run
from pflow.kernel.scope import declared_outputs
from pflow.model.event import Envelope
from pflow.model.run import Asked, Decision, Failure, Opened, Outcome, RunStatus, Stored
from pflow.model.workflow import Workflow
from pflow.nodes.registry import Registry, local_folders
from pflow.planning import inputs as planned_inputs
from pflow.planning.build import build
from pflow.planning.plan import Plan, Values
from pflow.storage import runs, settings
from pflow.storage.files import home as default_home
from pflow.storage.journal import Memory
from pflow.version import __version__

IR = "ir"  # the dialect of a workflow that was made in Python
DOCUMENT = "document:"  # the store's keys for documents that were loaded on the way


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to run; everything has a default that suits a script."""

    on_event: Callable[[Envelope], None] | None = None
    hub: Hub | None = None
    types: tuple[Any, ...] = ()  # node types beside the registered ones
    jobs: int | None = None  # visits at once; None: as the workflow says
    on_doubt: Decision | None = None
    answer: Callable[[Asked], Awaitable[Any]] | None = None
    decide: Callable[[str, int], Awaitable[Decision | None]] | None = None
    home: Path | None = None
    workspace: Path | None = None
    keep: bool = True  # False: in memory only; nothing can be resumed
    durable: bool = True  # False: survives a crash of the process, not of the machine
    clock: Clock | None = None
    started: Callable[[Run], None] | None = None  # told of the run, to interrupt or cancel it


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a run went."""

    run_id: str
    status: RunStatus
    outputs: dict[str, Any]  # the declared ones, or every node's by its id
    visits: dict[str, Outcome]
    error: Failure | None = None
    usage: dict[str, Any] = {}
    path: Path | None = None
    duration: float = 0.0
    nodes_total: int = 0
    waiting: tuple[Asked, ...] = ()
    doubts: tuple[tuple[str, int], ...] = ()

    @property
    def success(self) -> bool:
        """Whether the run is complete."""
        return self.status == "completed"


def registry_for(workflow: Workflow, options: Options) -> Registry:
    """The node types that a workflow can use."""
    cwd = options.workspace or Path.cwd()
    beside = Path(workflow.file).absolute().parent if workflow.file else cwd
    return Registry(options.types, local_folders(beside, cwd, home=options.home or default_home()))


def plan(workflow: Workflow, options: Options | None = None, registry: Registry | None = None) -> Plan:
    """A workflow made ready to run; raises ``WorkflowError`` with every problem."""
    return build(workflow, registry or registry_for(workflow, options or Options()))


async def run(workflow: Workflow | str | Path, inputs: Mapping[str, Any] | None = None, **options: Any) -> Result:
    """Run a workflow; see ``Options`` for what can be said about how."""
    chosen = Options(**options)
    if not isinstance(workflow, Workflow):
        workflow = load(workflow)
    registry = registry_for(workflow, chosen)
    made = build(workflow, registry)
    given = planned_inputs.effective(workflow, inputs or {})
    opened = _opening(workflow, made, given, chosen)
    if not chosen.keep:
        session = Session(made, opened, chosen, registry, Memory(), None)
        session.run.open(opened)
        return await session.drive(session.run.drive)
    held = Held.create(runs.create(_root(chosen), opened.run), chosen.durable)
    opened = msgspec.structs.replace(opened, documents=_keep_document(held, workflow))
    session = Session(made, opened, chosen, registry, held.log, held)
    session.run.open(opened)
    return await session.drive(lambda: held.drive(session.run))


async def resume(run_id: str | Path, **options: Any) -> Result:
    """Go on with a run that was stopped, failed or waits; a complete one is left as it is."""
    chosen = Options(**options)
    folder = runs.RunFolder(run_id if isinstance(run_id, Path) else runs.find(run_id, chosen.home))
    held = Held.open(folder, chosen.durable)
    try:
        session = _replayed(held, chosen)
    except BaseException:
        held.close()
        raise
    memory = session.run.memory
    if memory.finished is not None and memory.finished.status == "completed":
        held.close()
        return session.result()
    finish = memory.finished or session.run.root.finish
    if finish is not None and finish.status != "completed":
        session.run.reopen()
    return await session.drive(lambda: held.drive(session.run))


def run_sync(workflow: Workflow | str | Path, inputs: Mapping[str, Any] | None = None, **options: Any) -> Result:
    """``run`` for callers without an event loop."""
    return asyncio.run(run(workflow, inputs, **options))


class Session:
    """One run of one plan under one set of options."""

    def __init__(
        self, plan: Plan, opened: Opened, options: Options, registry: Registry, log: Any, held: Held | None
    ) -> None:
        hub = options.hub or Hub()
        self._unsubscribe = hub.subscribe(options.on_event) if options.on_event else None
        self._options = options
        self._registry = registry
        self._held = held
        self._opened = opened
        guide = Guide(
            load=self._load,
            registry=registry,
            folder=held.folder.path if held else None,
            output_limit=settings.load(options.home).shell.output_limit,
            on_doubt=options.on_doubt,
            answer=options.answer,
            decide=options.decide,
        )
        self.run = Run(
            plan,
            planned_inputs.start(plan.workflow, opened.inputs),
            opened.run,
            log,
            width=opened.width,
            hub=hub,
            clock=options.clock,
            guide=guide,
            workspace=Path(opened.cwd) if opened.cwd else options.workspace,
        )

    async def drive(self, drive: Callable[[], Awaitable[None]]) -> Result:
        """Drive the run and tell how it went."""
        began = time.perf_counter()
        if self._options.started is not None:
            self._options.started(self.run)
        try:
            await drive()
        finally:
            if self._unsubscribe is not None:
                self._unsubscribe()
        return self.result(time.perf_counter() - began)

    def result(self, duration: float = 0.0) -> Result:
        """How the run stands."""
        run, memory = self.run, self.run.memory
        complete = run.status == "completed"
        return Result(
            run_id=run.run_id,
            status=run.status,
            outputs=declared_outputs(run.root) if complete else run.root.outputs(),
            visits=dict(memory.ended),
            error=memory.finished.failure if memory.finished else None,
            usage=total_usage(memory.ended.values()),
            path=self._held.folder.path if self._held else None,
            duration=duration,
            nodes_total=len(run.root.plan.graph.ids),
            waiting=tuple(memory.asked.values()),
            doubts=tuple(memory.begun.items()) if run.status == "paused" else (),
        )

    def _load(self, ref: Any, parent: Workflow, inputs: dict[str, Any]) -> tuple[Plan, Values]:
        """A workflow that a node of another one calls; its document is kept with the run."""
        workflow = ref if isinstance(ref, Workflow) else self._find(ref, parent)
        made = build(workflow, self._registry)
        return made, planned_inputs.start(workflow, planned_inputs.effective(workflow, inputs))

    def _find(self, ref: Any, parent: Workflow) -> Workflow:
        given = ref if isinstance(ref, dict) else {"ref": str(ref)}
        if "ir" in given:
            return parse(msgspec.json.encode(given["ir"]), f"{parent.file}#workflow_ir")
        if "name" in given:
            raise UsageError("there are no saved workflows yet", "give workflow_ref, a path")
        path = Path(parent.file).parent / given["ref"] if parent.file else Path(given["ref"])
        if self._held is None:
            return load(path)
        return self._kept(self._held, path)

    def _kept(self, held: Held, path: Path) -> Workflow:
        """The document as this run first saw it, whatever became of the file since."""
        key = f"{DOCUMENT}{path}"
        name = self._opened.documents.get(str(path)) or self.run.memory.stored.get(key)
        if name is not None:
            return parse((held.folder.path / name).read_bytes(), str(path))
        workflow = load(path)
        name = held.folder.save_document(path.name, workflow.text.encode())
        held.journal.require(held.folder.path / name)
        self.run.note(Stored(self.run.clock.now(), key, name))
        return workflow


def total_usage(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """What all visits used together; what was reused cost nothing."""
    total: dict[str, Any] = {}
    for outcome in outcomes:
        for key, number in outcome.usage.items() if not outcome.reused else ():
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                total[key] = total.get(key, 0) + number
    return total


def _root(options: Options) -> Path:
    home = options.home or default_home()
    chosen = settings.load(home).runs.dir
    return Path(chosen).expanduser() if chosen else home / "runs"


def _opening(workflow: Workflow, made: Plan, given: dict[str, Any], options: Options) -> Opened:
    now = options.clock.now() if options.clock else time.time()
    return Opened(
        now,
        run=runs.new_id(workflow.name, now),
        workflow=workflow.name,
        dialect=workflow.dialect,
        digest=made.digest,
        inputs=given,
        width=options.jobs or workflow.width,
        version=__version__,
        path=str(Path(workflow.file).absolute()) if workflow.file else "",
        cwd=str(options.workspace or Path.cwd()),
    )


def _keep_document(held: Held, workflow: Workflow) -> dict[str, str]:
    """Save the document as it is run; a workflow made in Python is saved as data."""
    if workflow.text:
        name = held.folder.save_document(
            os.path.basename(workflow.file) or "workflow", workflow.text.encode(), main=True
        )
    else:
        name = held.folder.save_document("workflow.ir", msgspec.json.encode(workflow), main=True)
    held.journal.require(held.folder.path / name)
    return {workflow.file: name}


def _replayed(held: Held, options: Options) -> Session:
    """A session in the state in which a run stopped."""
    opened = held.opened
    workflow = kept_workflow(held.folder, opened)
    registry = registry_for(workflow, options)
    session = Session(build(workflow, registry), opened, options, registry, held.log, held)
    session.run.replay(held.records)
    return session

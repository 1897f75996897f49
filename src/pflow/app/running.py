"""Running: from a workflow and its inputs to a result, and on from where a run stopped."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pflow import settings
from pflow.app import keeping, library
from pflow.app.agents import unknown_agents
from pflow.app.documents import kept_workflow, load, parse
from pflow.app.holding import Held
from pflow.app.options import Options, Result
from pflow.app.reuse import reuse_for
from pflow.app.secrets import hidden, provided, redactor, revealed, seal
from pflow.app.wording import told
from pflow.errors import Place, Problem, UsageError, WorkflowError
from pflow.kernel.desk import Guide
from pflow.kernel.feed import Hub
from pflow.kernel.memory import Memory as Recollection
from pflow.kernel.replay import ended_badly, reopen, replay
from pflow.kernel.run import Run
from pflow.kernel.scope import SPIN, declared_outputs
from pflow.llm.budget import Budget, Means, using
from pflow.mcp.offer import Synced
from pflow.mcp.pool import connections
from pflow.model.run import Loaded, Opened, Outcome
from pflow.model.workflow import Workflow
from pflow.nodes.purity import Standings
from pflow.nodes.registry import Registry, local_folders
from pflow.nodes.step import add_usage
from pflow.planning import inputs as planned_inputs
from pflow.planning.build import build
from pflow.planning.plan import Plan, Values
from pflow.storage import runs
from pflow.storage.files import at_home
from pflow.storage.files import home as default_home
from pflow.storage.journal import Memory
from pflow.storage.sealing import Seal
from pflow.version import __version__

BUILT_IN = ("core", "builtin", "builtins", "kernel", "pflow")  # packs that are always there
SESSIONS = Path(".dotrunner") / "sessions"
IR = "ir"  # the dialect of a workflow that was made in Python


def registry_for(workflow: Workflow, options: Options) -> Registry:
    """The node types that a workflow can use."""
    cwd = options.workspace or Path.cwd()
    beside = Path(workflow.file).absolute().parent if workflow.file else cwd
    home = options.home or default_home()
    folders = local_folders(beside, cwd, home=home)
    return Registry(options.types, folders, standings=Standings(home), offers=(Synced(home),))


def warnings(workflow: Workflow, registry: Registry) -> list[Problem]:
    """What is odd about a workflow, though it can be run."""
    found = list(workflow.warnings)
    for pack in workflow.packs:
        if pack not in registry.packs and pack not in BUILT_IN:
            text = f'the node pack "{pack}" is not installed here'
            hint = "every type that the workflow uses was found all the same"
            found.append(Problem(text, Place(workflow.file), hint, "pack", warning=True))
    return found


def started_where(opened: Opened, options: Options) -> Options:
    """The options with the folder in which a run was started, where its local node types are found again."""
    if options.workspace is not None or not opened.cwd:
        return options
    return msgspec.structs.replace(options, workspace=Path(opened.cwd))


def plan(workflow: Workflow, options: Options | None = None, registry: Registry | None = None) -> Plan:
    """A workflow made ready to run; raises ``WorkflowError`` with every problem."""
    chosen = options or Options()
    made = build(workflow, registry or registry_for(workflow, chosen))
    check_agents(made, chosen)
    return made


def check_agents(made: Plan, options: Options) -> None:
    """Raise ``WorkflowError`` where a workflow names agents that are nowhere."""
    problems = unknown_agents(made, options.workspace or Path.cwd(), options.home or default_home())
    if problems:
        raise WorkflowError(problems)


async def run(workflow: Workflow | str | Path, inputs: Mapping[str, Any] | None = None, **options: Any) -> Result:
    """Run a workflow; see ``Options`` for what can be said about how."""
    chosen = Options(**options)
    if not isinstance(workflow, Workflow):
        workflow = load(workflow)
    registry = registry_for(workflow, chosen)
    made, given = ready(workflow, registry, inputs or {}, chosen.home)
    check_agents(made, chosen)
    opened = opening(workflow, made, hidden(workflow, given), chosen)
    chosen = msgspec.structs.replace(chosen, secrets=given)
    if not chosen.keep:
        session = Session(made, opened, chosen, registry, Memory(), None)
        session.run.open(opened)
        return await session.drive(session.run.drive)
    held = Held.create(_folder(chosen, opened), chosen.durable, seal(workflow, given, chosen.home))
    opened = msgspec.structs.replace(opened, documents=_keep_document(held, workflow))
    session = Session(made, opened, chosen, registry, held.log, held)
    session.run.open(opened)
    if session.graph:
        keeping.restore(session.run, session.graph, chosen.home)
    return await session.drive(lambda: held.drive(session.run, session.redactor))


def ready(
    workflow: Workflow, registry: Registry, inputs: Mapping[str, Any], home: Path | None = None
) -> tuple[Plan, dict[str, Any]]:
    """The plan and the effective inputs; raises every problem of both at once."""
    problems: list[Problem] = []
    given: dict[str, Any] | None = None
    try:
        given = planned_inputs.effective(workflow, provided(workflow, inputs, home))
    except WorkflowError as error:
        problems += error.problems
    try:
        made = build(workflow, registry, given)
    except WorkflowError as error:
        raise WorkflowError([*problems, *error.problems]) from None
    if given is None:
        raise WorkflowError(problems)
    return made, given


async def resume(run_id: str | Path, **options: Any) -> Result:
    """Go on with a run that was stopped, failed or waits; a complete one is left as it is."""
    chosen = Options(**options)
    folder = runs.RunFolder(run_id if isinstance(run_id, Path) else runs.find(run_id, chosen.home))
    held = taken(folder, chosen)
    try:
        session = replayed(held, chosen)
    except BaseException:
        held.close()
        raise
    memory = session.run.memory
    if memory.finished is not None and memory.finished.status == "completed":
        held.repair(session.run, session.redactor)
        held.close()
        return session.result()
    if ended_badly(session.run):
        reopen(session.run)
    return await session.drive(lambda: held.drive(session.run, session.redactor))


def run_sync(workflow: Workflow | str | Path, inputs: Mapping[str, Any] | None = None, **options: Any) -> Result:
    """``run`` for callers without an event loop."""
    return asyncio.run(run(workflow, inputs, **options))


class Session:
    """One run of one plan under one set of options."""

    def __init__(
        self, plan: Plan, opened: Opened, options: Options, registry: Registry, log: Any, held: Held | None
    ) -> None:
        hub = options.hub or Hub()
        inputs = revealed(plan.workflow, opened.inputs, options.secrets, options.home)
        self.redactor = redactor(plan.workflow, inputs, options.home)
        hub.redact = lambda data: self.redactor.value(told(data))
        self._unsubscribe = hub.subscribe(options.on_event) if options.on_event else None
        self._options = options
        self._registry = registry
        self._held = held
        self._opened = opened
        self.graph = opened.path if plan.workflow.scheduler == "reactive" and held else ""  # whose store is kept
        guide = Guide(
            load=self._load,
            registry=registry,
            folder=held.folder.path if held else None,
            output_limit=settings.load(options.home).shell.output_limit,
            spin=opened.options.get("spin", SPIN),
            on_doubt=options.on_doubt,
            answer=options.answer,
            decide=options.decide,
        )
        self.run = Run(
            plan,
            planned_inputs.start(plan.workflow, inputs, opened.run, opened.t),
            opened.run,
            log,
            width=opened.width,
            hub=hub,
            clock=options.clock,
            reuse=reuse_for(plan, opened, options),
            guide=guide,
            workspace=Path(opened.cwd) if opened.cwd else options.workspace,
        )

    async def drive(self, drive: Callable[[], Awaitable[None]]) -> Result:
        """Drive the run and tell how it went."""
        began = time.perf_counter()
        if self._options.started is not None:
            self._options.started(self.run)
        try:
            with using(self._means()), at_home(self._options.home):
                async with connections(self._options.home, self.run.workspace):
                    await drive()
        finally:
            self.run.reuse.close(self.run.status == "completed")
            if self.graph:
                keeping.save(self.run, self.graph, self._options.home)
            if self._unsubscribe is not None:
                self._unsubscribe()
        return self.result(time.perf_counter() - began)

    def _means(self) -> Means:
        """What calls of models are made with; what the run has spent already counts."""
        own = settings.load(self._options.home)
        spent = used_by(self.run.memory).get("cost_usd", 0.0)
        pinned = self.run.memory.opened.options.get("budget") if self.run.memory.opened else None
        limit = pinned if self._options.budget is None else self._options.budget
        budget = Budget(limit, spent) if limit is not None else None
        return Means(self._options.model or own.model.default, own.env, budget)

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
            usage=used_by(memory),
            path=self._held.folder.path if self._held else None,
            duration=duration,
            nodes_total=len(run.root.plan.graph.ids),
            waiting=tuple(memory.asked.values()),
            held=dict(run.desk.held),
            doubts=tuple({**memory.begun, **run.desk.doubts}.items()) if run.status == "paused" else (),
        )

    def _load(self, ref: Any, parent: Workflow, inputs: dict[str, Any]) -> tuple[Plan, Values]:
        """A workflow that a node of another one calls; its document is kept with the run."""
        workflow = ref if isinstance(ref, Workflow) else self._find(ref, parent)
        given = planned_inputs.effective(workflow, inputs)
        values = planned_inputs.start(workflow, given, self.run.run_id, self._opened.t)
        return build(workflow, self._registry, given), values

    def _find(self, ref: Any, parent: Workflow) -> Workflow:
        given = ref if isinstance(ref, dict) else {"ref": str(ref)}
        if "ir" in given:
            return parse(msgspec.json.encode(given["ir"]), f"{parent.file}#workflow_ir")
        if "name" in given:
            path = library.get(str(given["name"]), self._options.home)
        else:
            path = Path(parent.file).parent / given["ref"] if parent.file else Path(given["ref"])
            self._check_inside(path, parent)
        if self._held is None:
            return load(path)
        return self._kept(self._held, path)

    def _check_inside(self, path: Path, parent: Workflow) -> None:
        """A routed workflow calls only what is in its own tree, or saved."""
        if parent.dialect != "dotrunner" or not self._opened.path:
            return
        tree = Path(self._opened.path).resolve().parent
        if not path.resolve().is_relative_to(tree):
            raise UsageError(
                f"{path} is outside the folder of the workflow", f"keep it below {tree}, or save it by name"
            )

    def _kept(self, held: Held, path: Path) -> Workflow:
        """The document as this run first saw it, whatever became of the file since."""
        own = os.path.abspath(self.run.workspace / path)  # however the workflow that names it was named
        main = next(iter(self._opened.documents.values()), None) if own == self._opened.path else None
        name = main or self.run.memory.loaded.get(own)
        if name is not None:
            return parse((held.folder.path / name).read_bytes(), str(path))
        workflow = load(path)
        name = held.folder.save_document(path.name, workflow.text.encode())
        held.journal.require(held.folder.path / name)
        self.run.note(Loaded(self.run.clock.now(), own, name))
        return workflow


def total_usage(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """What all visits used together; what was reused cost nothing."""
    total: dict[str, Any] = {}
    for outcome in outcomes:
        for key, number in outcome.usage.items() if not outcome.reused else ():
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                total[key] = total.get(key, 0) + number
    return total


def used_by(memory: Recollection) -> dict[str, Any]:
    """What a run used so far; also by visits that are held, and have not ended."""
    total = total_usage(memory.ended.values())
    for visit, usage in memory.used.items():
        if visit not in memory.ended:
            add_usage(total, {key: number for key, number in usage.items() if isinstance(number, (int, float))})
    return total


def _folder(options: Options, opened: Opened) -> runs.RunFolder:
    """A new run's folder; one outside the home is noted in its index, so that it is found again."""
    home = options.home or default_home()
    elsewhere = settings.load(home).runs.dir
    root = Path(elsewhere).expanduser() if elsewhere else home / "runs"
    if opened.dialect == "dotrunner":
        root = Path(opened.cwd) / SESSIONS
    folder = runs.create(root, opened.run)
    if root != home / "runs":
        runs.register(opened.run, folder.path, home)
    return folder


def opening(workflow: Workflow, made: Plan, given: dict[str, Any], options: Options) -> Opened:
    """The first record of a new run."""
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
        options=_options(workflow, options),
    )


def _options(workflow: Workflow, options: Options) -> dict[str, Any]:
    """What a resumed run must know again."""
    if workflow.scheduler == "reactive":
        made: dict[str, Any] = {"spin": settings.load(options.home).graph.spin}
    else:
        made = {"iterate": True} if options.iterate else {}
    return made if options.budget is None else {**made, "budget": options.budget}


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


def taken(folder: runs.RunFolder, options: Options) -> Held:
    """An existing run's folder in the hands of this process, its records with their secrets."""

    def unsealing(opened: Opened) -> Seal:
        workflow = kept_workflow(folder, opened)
        return seal(workflow, revealed(workflow, opened.inputs, options.secrets, options.home), options.home)

    return Held.open(folder, unsealing, options.durable)


def replayed(held: Held, options: Options) -> Session:
    """A session in the state in which a run stopped."""
    opened = held.opened
    workflow = kept_workflow(held.folder, opened)
    registry = registry_for(workflow, started_where(opened, options))
    session = Session(build(workflow, registry), opened, options, registry, held.log, held)
    replay(session.run, held.records)
    return session

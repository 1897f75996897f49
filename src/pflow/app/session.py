"""A session: one run under one set of options, in a folder of its own or in memory; what front ends hold of a run."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec

from pflow import settings
from pflow.app.documents import load, parse
from pflow.app.driver import Driver
from pflow.app.options import Options, Result
from pflow.app.reuse import reuse_for
from pflow.app.secrets import redactor, revealed
from pflow.app.story import Story, story_of, used_by
from pflow.app.wording import told
from pflow.errors import UsageError
from pflow.kernel.events import Hub
from pflow.kernel.ports import Guide, RecordLog
from pflow.kernel.run import Run
from pflow.kernel.scope import SPIN, declared_outputs
from pflow.llm.budget import Budget, Means, using
from pflow.mcp.offered import SyncedTypes
from pflow.mcp.pool import connections
from pflow.model.conversation import Conversation
from pflow.model.records import Loaded, Opened, Stored
from pflow.model.workflow import Workflow
from pflow.nodes.purity import Standings
from pflow.nodes.registry import Registry, local_folders
from pflow.planning import inputs as planned_inputs
from pflow.planning.build import build
from pflow.planning.plan import Plan, Values
from pflow.storage.files import at_home
from pflow.storage.files import home as default_home


def registry_for(workflow: Workflow, options: Options) -> Registry:
    """The node types that a workflow can use."""
    cwd = options.workspace or Path.cwd()
    beside = Path(workflow.file).absolute().parent if workflow.file else cwd
    home = options.home or default_home()
    folders = local_folders(beside, cwd, home=home)
    return Registry(options.types, folders, standings=Standings(home), offers=(SyncedTypes(home),))


class Session:
    """One run of one plan under one set of options."""

    def __init__(
        self, plan: Plan, opened: Opened, options: Options, registry: Registry, log: RecordLog, held: Driver | None
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
        self._graph = opened.path if plan.workflow.scheduler == "reactive" and held else ""  # whose store is kept
        self._workflows: dict[Any, Workflow] = {}  # those that nodes call, by how they are named
        self._plans: dict[tuple[int, frozenset[str]], Plan] = {}  # and their plans, by the inputs that are given
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

    def open(self, opened: Opened) -> None:
        """Begin a new run; one of a graph finds what earlier ones have kept."""
        self.run.open(opened)
        if self._graph:
            from pflow.app.graph_store import restore

            restore(self.run, self._graph, self._options.home)

    async def drive(self) -> Result:
        """Drive the run as far as it goes, and tell how it went."""
        began = time.perf_counter()
        if self._options.started is not None:
            self._options.started(self)
        try:
            with using(self._means()), at_home(self._options.home):
                async with connections(self._options.home, self.run.workspace):
                    await (self.run.drive() if self._held is None else self._held.drive(self.run, self.redactor))
        finally:
            self.run.reuse.close(self.run.status == "completed")
            if self._graph:
                from pflow.app.graph_store import save

                save(self.run, self._graph, self._options.home)
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

    # ── for whoever shows the run, and tells it what to do ──

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.run_id

    @property
    def plan(self) -> Plan:
        """What the run goes by."""
        return self.run.root.plan

    @property
    def nodes_total(self) -> int:
        """How many nodes the workflow has, those inside of loops left out."""
        return len(self.plan.graph.ids)

    @property
    def values(self) -> dict[str, Any]:
        """What each of the workflow's own nodes left behind."""
        return self.run.root.outputs()

    @property
    def leaving(self) -> bool:
        """Whether nothing more is begun."""
        return self.run.leaving

    @property
    def lost(self) -> Path | None:
        """The folder in which outcomes could not be kept for later runs."""
        return self.run.reuse.lost

    @property
    def contexts(self) -> list[Conversation]:
        """The conversations of a graph, each as it is now."""
        return list(self.run.root.streams.contexts.values()) if self.run.root.streams else []

    def attempts(self, visit: str) -> tuple[int, int]:
        """The number of a visit's next attempt, and how many there were before the run was reopened."""
        return self.run.memory.next_attempt(visit), self.run.memory.failed_before.get(visit, 0)

    def hide(self, value: dict[str, Any]) -> dict[str, Any]:
        """A value to be shown: without the run's secrets."""
        hidden: dict[str, Any] = self.redactor.value(value)
        return hidden

    def interrupt(self) -> None:
        """Leave the run where it is; it can be resumed."""
        self.run.interrupt()

    def cancel(self, why: str = "") -> None:
        """End the run for good."""
        self.run.cancel(why)

    def follow(self, model: str) -> None:
        """Have main conversations go on with another model."""
        self.run.note(Stored(self.run.clock.now(), "session", "model", model))

    def story(self) -> Story:
        """How the run stands."""
        return story_of(self.run.memory, self.run.status, self.run_id, self._path, self.run)

    def result(self, duration: float = 0.0) -> Result:
        """How the run stands, with its outputs."""
        told = {name: getattr(story, name) for story in [self.story()] for name in Story.__struct_fields__}
        outputs = declared_outputs(self.run.root) if self.run.status == "completed" else self.values
        return Result(**told, outputs=outputs, duration=duration)

    @property
    def _path(self) -> Path | None:
        return self._held.folder.path if self._held else None

    # ── workflows that nodes call ──

    def _load(self, ref: Any, parent: Workflow, inputs: dict[str, Any]) -> tuple[Plan, Values]:
        """A workflow that a node of another one calls; its document is kept with the run."""
        workflow = ref if isinstance(ref, Workflow) else self._called(ref, parent)
        given = planned_inputs.effective(workflow, inputs)
        values = planned_inputs.start(workflow, given, self.run.run_id, self._opened.t)
        key = (id(workflow), frozenset(given))
        plan = self._plans.get(key) or build(workflow, self._registry, given)
        if workflow is not ref:  # what is kept may be known by its identity; what a node has made may not
            self._plans[key] = plan
        return plan, values

    def _called(self, ref: Any, parent: Workflow) -> Workflow:
        """The workflow that a reference means; read once a run."""
        given = ref if isinstance(ref, dict) else {"ref": str(ref)}
        key = (parent.file, msgspec.json.encode(given, order="sorted"))
        found = self._workflows.get(key)
        if found is None:
            found = self._workflows[key] = self._find(given, parent)
        return found

    def _find(self, given: dict[str, Any], parent: Workflow) -> Workflow:
        if "ir" in given:
            return parse(msgspec.json.encode(given["ir"]), f"{parent.file}#workflow_ir")
        if "name" in given:
            from pflow.app import library

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

    def _kept(self, held: Driver, path: Path) -> Workflow:
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

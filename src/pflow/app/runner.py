"""Running: from a workflow and its inputs to a result, and on from where a run stopped."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import msgspec

from pflow import settings
from pflow.app.agents import unknown_agents
from pflow.app.documents import load
from pflow.app.driver import Driver, NoJournal
from pflow.app.options import Keywords, Options, Result
from pflow.app.secrets import hidden, provided, seal
from pflow.app.session import Session, registry_for
from pflow.errors import Place, Problem, WorkflowError
from pflow.model.records import Opened
from pflow.model.workflow import Workflow
from pflow.nodes.registry import Registry
from pflow.planning import inputs as planned_inputs
from pflow.planning.build import build
from pflow.planning.plan import Plan
from pflow.storage import runs
from pflow.storage.files import home as default_home
from pflow.version import __version__

BUILT_IN = ("core", "builtin", "builtins", "kernel", "pflow")  # packs that are always there
SESSIONS = Path(".dotrunner") / "sessions"


def warnings(workflow: Workflow, registry: Registry) -> list[Problem]:
    """What is odd about a workflow, though it can be run."""
    found = list(workflow.warnings)
    for pack in workflow.packs:
        if pack not in registry.packs and pack not in BUILT_IN:
            text = f'the node pack "{pack}" is not installed here'
            hint = "every type that the workflow uses was found all the same"
            found.append(Problem(text, Place(workflow.file), hint, "pack", warning=True))
    return found


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


async def run(
    workflow: Workflow | str | Path, inputs: Mapping[str, Any] | None = None, **options: Unpack[Keywords]
) -> Result:
    """Run a workflow; see ``Options`` for what can be said about how."""
    chosen = Options(**options)
    if not isinstance(workflow, Workflow):
        workflow = load(workflow)
    registry = registry_for(workflow, chosen)
    made, given = ready(workflow, registry, inputs or {}, chosen.home)
    check_agents(made, chosen)
    opened = opening(workflow, made, hidden(workflow, given), chosen)
    chosen = msgspec.structs.replace(chosen, secrets=given)
    held: Driver | None = None
    if chosen.keep:
        held = Driver.create(_folder(chosen, opened), chosen.durable, seal(workflow, given, chosen.home))
        opened = msgspec.structs.replace(opened, documents=_keep_document(held, workflow))
    session = Session(made, opened, chosen, registry, held.log if held else NoJournal(), held)
    session.open(opened)
    return await session.drive()


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


def run_sync(
    workflow: Workflow | str | Path, inputs: Mapping[str, Any] | None = None, **options: Unpack[Keywords]
) -> Result:
    """``run`` for callers without an event loop."""
    return asyncio.run(run(workflow, inputs, **options))


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


def _keep_document(held: Driver, workflow: Workflow) -> dict[str, str]:
    """Save the document as it is run; a workflow made in Python is saved as data."""
    if workflow.text:
        name = held.folder.save_document(
            os.path.basename(workflow.file) or "workflow", workflow.text.encode(), main=True
        )
    else:
        name = held.folder.save_document("workflow.ir", msgspec.json.encode(workflow), main=True)
    held.journal.require(held.folder.path / name)
    return {workflow.file: name}

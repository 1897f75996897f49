"""Which reuse policy a run gets."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pflow import settings
from pflow.app.secrets import redactor
from pflow.errors import UsageError, suggest
from pflow.model.run import Opened
from pflow.model.visit import meant
from pflow.planning.plan import Plan
from pflow.reuse.policy import Never, Reuse
from pflow.storage.files import home as default_home

if TYPE_CHECKING:
    from pflow.app.options import Options
    from pflow.reuse.by_inputs import ByInputs
    from pflow.reuse.by_iteration import ByIteration

NEVER_REUSED = ("hifide",)  # dialects whose scheduler never caches


def reuse_for(plan: Plan, opened: Opened, options: Options) -> Reuse:
    """The policy that options and settings ask for."""
    workspace = Path(opened.cwd) if opened.cwd else Path.cwd()
    home = options.home or default_home()
    by_iteration = _by_iteration(plan, opened, options, workspace, home)
    by_inputs = _by_inputs(plan, options, workspace, home)
    if by_inputs is not None and by_iteration is not None:
        from pflow.reuse.both import Both

        return Both(by_inputs, by_iteration)
    return by_inputs or by_iteration or Never()


def _by_inputs(plan: Plan, options: Options, workspace: Path, home: Path) -> ByInputs | None:
    if (not options.use_cache and not options.reset_cache) or plan.workflow.dialect in NEVER_REUSED:
        return None
    from pflow.reuse.by_inputs import ByInputs

    flow = plan.workflow
    made = ByInputs(home / "cache", os.path.abspath(flow.file) if flow.file else flow.name, workspace)
    if options.reset_cache:
        made.reset()
    return made if options.use_cache else None


def _by_iteration(plan: Plan, opened: Opened, options: Options, workspace: Path, home: Path) -> ByIteration | None:
    if (
        not (options.iterate or opened.options.get("iterate"))
        or not opened.path
        or plan.workflow.dialect in NEVER_REUSED
    ):
        return None
    chosen = settings.load(home).cache
    if not chosen.iteration_mode:
        return None
    from pflow.reuse.by_iteration import ByIteration
    from pflow.reuse.store import Store, folder_of, stamp

    store = Store(folder_of(Path(opened.path), home))
    if "workflow_path" not in store.metadata:
        store.update(workflow_path=opened.path, created_at=stamp(time.time()))
    if store.metadata.get("workflow_hash") != opened.digest:
        store.update(workflow_hash=opened.digest)
    return ByIteration(
        store,
        workspace,
        ttl=settings.parse_duration(chosen.ttl),
        rerun=below(plan, options.rerun),
        again=meant(opened.forked.partition("@")[2]),
        most=chosen.max_mb * 2**20,
        now=options.clock.now if options.clock else time.time,
        redact=redactor(plan.workflow, options.secrets, home).text,
    )


def below(plan: Plan, nodes: tuple[str, ...]) -> frozenset[str]:
    """These nodes and all that come after them."""
    for node in nodes:
        if node not in plan.nodes:
            raise UsageError(f'--rerun: there is no node "{node}"', suggest(node, plan.nodes, "nodes"))
    found = set(nodes)
    for node in plan.order:
        if found.intersection(plan.nodes[node].upstream):
            found.add(node)
    return frozenset(found)

"""Which reuse policy a run gets."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pflow import settings
from pflow.app.secrets import redactor
from pflow.errors import UsageError, suggest
from pflow.model.records import Opened
from pflow.model.visit import meant
from pflow.planning.plan import Plan
from pflow.reuse.policy import Never, Reuse
from pflow.storage.files import home as default_home

if TYPE_CHECKING:
    from pflow.app.options import Options
    from pflow.reuse.iterations import Iterations
    from pflow.reuse.store import Store

NEVER_REUSED = ("hifide",)  # dialects whose scheduler never caches


def reuse_for(plan: Plan, opened: Opened, options: Options) -> Reuse:
    """The policy that options and settings ask for."""
    if plan.workflow.dialect in NEVER_REUSED:
        return Never()
    home, flow = options.home or default_home(), plan.workflow
    name = os.path.abspath(flow.file) if flow.file else flow.name
    common = _common(name, options, home)
    iterating = opened.path and (options.iterate or opened.options.get("iterate"))
    chosen = settings.load(home).cache if iterating else None
    own = _own(opened, home) if chosen is not None and chosen.iteration_mode else None
    if own is None and common is None:
        return Never()
    from pflow.reuse.cache import Cache, Terms

    terms = Terms()
    if own is not None and chosen is not None:
        terms = Terms(
            ttl=settings.parse_duration(chosen.ttl),
            rerun=below(plan, options.rerun),
            again=meant(opened.forked.partition("@")[2]),
            most=chosen.max_mb * 2**20,
            now=options.clock.now if options.clock else time.time,
            redact=redactor(flow, options.secrets, home).text,
        )
    return Cache(name, Path(opened.cwd) if opened.cwd else Path.cwd(), own, common, terms)


def _common(flow: str, options: Options, home: Path) -> Store | None:
    if not options.use_cache and not options.reset_cache:
        return None
    from pflow.reuse.store import Store

    store = Store(home / "cache")
    if options.reset_cache:
        store.drop(flow)
    return store if options.use_cache else None


def _own(opened: Opened, home: Path) -> Iterations:
    from pflow.reuse.iterations import Iterations, folder_of, stamp

    store = Iterations(folder_of(Path(opened.path), home))
    if "workflow_path" not in store.metadata:
        store.update(workflow_path=opened.path, created_at=stamp(time.time()))
    if store.metadata.get("workflow_hash") != opened.digest:
        store.update(workflow_hash=opened.digest)
    return store


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

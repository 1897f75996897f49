"""Looking into the iteration cache of a workflow file, and clearing it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pflow.app.documents import load
from pflow.app.forecast import Prospect, forecast
from pflow.app.options import Options
from pflow.app.reuse import reuse_for
from pflow.app.runner import opening, ready
from pflow.app.session import registry_for
from pflow.app.wording import ago
from pflow.errors import UsageError, suggest
from pflow.model.visit import visit_id
from pflow.model.workflow import Workflow
from pflow.planning import inputs as planned_inputs
from pflow.planning.plan import Plan
from pflow.reuse.iterations import ROOT, Iterations, folder_of, name_of
from pflow.reuse.recipe import KINDS, recipe_of
from pflow.storage.files import home as default_home


class NodeCache(msgspec.Struct, frozen=True):
    """What is cached of one node."""

    node: str
    status: str  # cached, failed, none
    age: float | None = None
    note: str = ""


class CacheStatus(msgspec.Struct, frozen=True):
    """What is cached of a workflow file."""

    workflow: str
    folder: Path
    nodes: tuple[NodeCache, ...]
    size: int


def status(path: Path, home: Path | None = None) -> CacheStatus:
    """The state of a workflow file's cache, node by node."""
    workflow = load(path)
    store = Iterations(folder_of(path, home))
    known = store.metadata.get("nodes", {})
    rows = tuple(_node(store, node.id, known.get(name_of(visit_id("", node.id)), {})) for node in workflow.nodes)
    return CacheStatus(str(path), store.folder, rows, store.size())


def _node(store: Iterations, node: str, known: Any) -> NodeCache:
    if isinstance(known, dict) and known.get("status") == "failed":
        return NodeCache(node, "failed", note=str(known.get("error", "")))
    entry = store.newest(visit_id("", node))
    if entry is None:
        return NodeCache(node, "none", note="not cached")
    age = max(0.0, time.time() - entry.at)
    return NodeCache(node, "cached", age, ago(age))


def clear(path: Path, home: Path | None = None) -> bool:
    """Forget everything about a workflow file; False when there was nothing."""
    return Iterations(folder_of(path, home)).clear()


def clear_all(home: Path | None = None) -> int:
    """Forget every workflow's iterations; tells how many there were."""
    root = (home or default_home()) / ROOT
    return sum(Iterations(folder).clear() for folder in root.iterdir()) if root.is_dir() else 0


def prospects(workflow: Workflow, inputs: Mapping[str, Any], options: Options) -> tuple[Plan, dict[str, Prospect]]:
    """What running a workflow file now would do, with the reasons."""
    made, given = ready(workflow, registry_for(workflow, options), inputs, options.home)
    opened = opening(workflow, made, given, options)
    reuse = reuse_for(made, opened, msgspec.structs.replace(options, iterate=True))
    return made, forecast(made, planned_inputs.start(workflow, given, "", opened.t), reuse)


class Why(msgspec.Struct, frozen=True):
    """Why a node would be reused or executed, field by field."""

    prospect: Prospect
    fields: tuple[tuple[str, str, str], ...]  # what, then, now


def why(path: Path, node: str, inputs: Mapping[str, Any], options: Options) -> Why:
    """Compare a node as it is now with the time that it ran most like this."""
    made, found = prospects(load(path), inputs, options)
    if node not in found:
        raise UsageError(f'there is no node "{node}"', suggest(node, made.nodes, "nodes"))
    prospect = found[node]
    if prospect.reason.then:
        then, now = _named(prospect.reason.then), _named(prospect.reason.now)
    else:
        last = Iterations(folder_of(path, options.home)).newest(visit_id("", node))
        then, now = _flat(last.parts.get("recipe", {}) if last else {}), _flat(recipe_of(made.nodes[node]))
    named = [name for name in sorted({*then, *now}) if (then.get(name), now.get(name)) != (None, None)]
    fields = [(name, _short(then.get(name)), _short(now.get(name))) for name in named]
    return Why(prospect, tuple(fields))


def _named(parts: Mapping[str, Any]) -> dict[str, Any]:
    """What an outcome depends on under one name each; the recipe's own names stand alone."""
    rest = {word: parts.get(part, {}) for part, word in KINDS.items() if part != "recipe"}
    return {**_flat(parts.get("recipe", {})), **_flat(rest)}


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict) and value:
        return {
            name: leaf
            for key, item in value.items()
            for name, leaf in _flat(item, f"{path}.{key}" if path else key).items()
        }
    return {path: value} if path else {}


def _short(value: Any) -> str:
    text = "–" if value is None else str(value)
    return text if len(text) <= 80 else text[:79] + "…"

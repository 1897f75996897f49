"""Recipes: what the outcome of a visit depends on, part by part, so that a difference can be named.

``recipe`` is the node as written, and its type; ``inputs`` are the values that it reads and no node made; ``files`` and
``shared`` are what else it may read; ``upstream`` are the lineages of what it comes after or reads; ``resolved`` stands
for the params of a pure one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pflow.model.reason import Reason, Why
from pflow.model.value import digest, plain
from pflow.planning.plan import Planned
from pflow.reuse.named_files import ABSENT, Files
from pflow.reuse.policy import Call

MISSING = object()
# The parts in the order in which a difference is told, and what is told then.
KINDS: dict[str, Why] = {
    "recipe": "config", "inputs": "input", "files": "file", "shared": "shared", "upstream": "upstream",
}  # fmt: skip
Parts = dict[str, Any]


def recipe_of(planned: Planned) -> dict[str, Any]:
    """A node as written, and its type as it is now: name, version, and for a stranger's the digest of its source."""
    kind, batch = planned.type, planned.node.batch
    made: dict[str, Any] = {"type": kind.name, "version": kind.version, "params": planned.params.value}
    made["batch"] = None if batch is None else plain(msgspec.to_builtins(batch))
    return made if kind.trusted else {**made, "source": kind.source}


class Recipes:
    """The parts of visits, as they were when first asked for, which is before the visit."""

    def __init__(self, files: Files, changed: set[str]) -> None:
        self.changed = changed  # files that some node of the workflow made or changed: none of them is ever an input
        self._files = files
        self._before: dict[str, dict[str, str]] = {}  # visit → the files it names, as they were before it
        self._parts: dict[str, Parts] = {}

    def of(self, call: Call) -> Parts:
        """Everything that a visit's outcome may depend on."""
        found = self._parts.get(call.visit.id)
        if found is None:
            found = self._parts[call.visit.id] = self._taken(call)
        return found

    def after(self, call: Call) -> Parts:
        """The parts as the next run will see them: a file that changed meanwhile was an output."""
        parts = self.of(call)
        before = self._before[call.visit.id].items()
        self.changed |= {path for path, old in before if self._files.digest(path) != old}
        files = {path: old for path, old in parts["files"].items() if path not in self.changed}
        return {**parts, "files": files}

    def forget(self, call: Call) -> None:
        """Look at everything again when it is next asked for."""
        self._parts.pop(call.visit.id, None)
        self._before.pop(call.visit.id, None)

    def common_key(self, call: Call) -> str:
        """The key of a pure visit in any flow and folder: of files, only those count that its type says it reads."""
        files = self._files.read(call.planned.type, call.params)
        return _pure_key({**self.of(call), "resolved": digest(call.params), "files": files})

    def _taken(self, call: Call) -> Parts:
        planned = call.planned
        named = {path: self._files.digest(path) for path in self._files.named(planned.type, call.params)}
        self._before[call.visit.id] = named
        files = {path: found for path, found in named.items() if found != ABSENT and path not in self.changed}
        recipe = recipe_of(planned)
        if planned.type.declared.depends is not None:
            file = call.plan.workflow.file
            folder = Path(file).absolute().parent if file else None
            recipe["depends"] = planned.type.declared.depends(call.params, self._files.workspace, folder)
        read = {ref.root for ref in planned.params.references} - call.upstream.keys()
        inputs = {root: digest(value) for root in sorted(read) if (value := _seen(call, root)) is not MISSING}
        shared = {name: digest(call.shared.get(name)) for name in planned.type.declared.shared}
        resolved = digest(call.params) if planned.effect == "pure" else ""
        return {
            "recipe": recipe, "inputs": inputs, "files": files, "shared": shared, "upstream": call.upstream,
            "resolved": resolved,
        }  # fmt: skip


def _seen(call: Call, root: str) -> Any:
    try:
        return call.values[root]
    except KeyError:
        return MISSING


def key(call: Call, parts: Parts) -> str:
    """What must be the same for an entry to serve."""
    if call.planned.effect == "pure":
        return _pure_key(parts)
    return digest([parts["recipe"], parts["inputs"], parts["files"], parts["shared"], parts["upstream"]])


def _pure_key(parts: Parts) -> str:
    kind = {name: parts["recipe"].get(name) for name in ("type", "version", "source")}
    return digest([kind, parts["resolved"], parts["files"], parts["shared"]])


def lineage(call: Call, parts: Parts, execution: str) -> str:
    """Where an outcome comes from: that of a pure visit is the same whenever it is worked out."""
    return digest([_pure_key(parts), parts["upstream"]]) if call.planned.effect == "pure" else execution


def nearest(known: list[Parts], new: Parts) -> Parts | None:
    """Of earlier parts those that share most with these; of two that share as much, the first."""
    return min(known, key=lambda old: len(differences(old, new)), default=None)


def compare(old: Parts, new: Parts) -> Reason:
    """The first kind of difference between two visits, with names."""
    for part, kind in KINDS.items():
        changed = differences(old.get(part, {}), new[part])
        if changed:
            return Reason(kind, tuple(changed), old, new)
    return Reason("resolved" if old.get("resolved") != new["resolved"] else "dropped", (), old, new)


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """The paths at which two values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for name in sorted({*old, *new}):
            here = f"{path}.{name}" if path else str(name)
            if name not in old or name not in new:
                found.append(here)
            else:
                found += differences(old[name], new[name], here)
        return found
    return [] if digest(old) == digest(new) else [path]

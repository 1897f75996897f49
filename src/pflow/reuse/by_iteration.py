"""Reuse by iteration: running a file again executes only what changed, and what comes after it.

A visit's recipe is its type, version, params as written, and the inputs and files it reads. An impure or quiet visit is
reused when its recipe **and the lineage of everything upstream** are the same; a pure one when its type and its
resolved params are. Every answer says why, part by part.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pflow.model.run import Outcome
from pflow.model.value import digest, plain
from pflow.model.visit import is_within, node_of, top_of
from pflow.model.workflow import Batch
from pflow.reuse.claims import Claims
from pflow.reuse.key import type_parts
from pflow.reuse.named_files import ABSENT, Files
from pflow.reuse.policy import Abandoned, Call, Miss, Recalled
from pflow.reuse.store import Store, name_of, stamp

WAIT = 0.05  # seconds between looks at a visit that another run is at
MISSING = object()
Parts = dict[str, Any]


class ByIteration:
    """The iteration cache of one workflow file, for one run."""

    active = True
    claims = True

    def __init__(
        self,
        store: Store,
        workspace: Path,
        *,
        ttl: float,
        rerun: frozenset[str] = frozenset(),
        again: str = "",
        most: int = 512 * 2**20,
        now: Callable[[], float] = time.time,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.store = store
        self._redact = redact
        self._files = Files(workspace)
        self._workspace = workspace
        self._ttl = ttl
        self._rerun = rerun  # nodes
        self._again = again  # a visit that is to be executed, with all inside of it; what is below goes by lineage
        self._most = most
        self._now = now
        self._claims = Claims(store.folder / "claims")
        self._changed = store.changed()
        self._before: dict[str, dict[str, str]] = {}  # visit → the files it names, as they were before it
        self._parts: dict[str, Parts] = {}  # visit → what it depends on, as it was before it
        self._nodes: dict[str, Any] = {}  # how each visit fared
        self._wrote = False

    @property
    def lost(self) -> Path | None:
        """The folder in which outcomes could not be kept."""
        return None if self.store.writable else self.store.folder

    # ── recall ──

    def recall(self, call: Call) -> Recalled | Miss:
        """An earlier outcome of this visit, if nothing that it depends on has changed."""
        began = time.perf_counter()
        off = self._off(call)
        if off is not None:
            return off
        parts = self.parts(call)
        entry = self.store.read(call.visit.id, _key(call, parts))
        if entry is None:
            return self._why(call, parts)
        stale = self._stale(call, entry)
        if stale is not None:
            return stale
        age = self._now() - entry.get("at", 0.0)
        outcome = Outcome(
            "completed",
            entry["outputs"],
            entry.get("route"),
            reason=f"cached {ago(age)}",
            reused=True,
            lineage=self._lineage(call, parts, entry),
            attempts=0,
            ms=round((time.perf_counter() - began) * 1000, 3),
            saved={"ms": entry.get("execution_time_ms", 0.0), **entry.get("usage", {})},
        )
        known = {"config_hash": entry["config_hash"], "status": "completed", "cached_at": entry["cached_at"]}
        self._nodes[name_of(call.visit.id)] = known
        del self._parts[call.visit.id]
        return Recalled(outcome, entry.get("writes", {}))

    def _off(self, call: Call) -> Miss | None:
        if call.planned.node.policy.cache is False:
            return Miss("off", "its cache is off (exec.cache: false)")
        if call.visit.node in self._rerun or node_of(top_of(call.visit.id)) in self._rerun:
            return Miss("rerun", "--rerun")
        if self._again and is_within(call.visit.id, self._again):
            return Miss("rerun", "--at")
        return None

    def _stale(self, call: Call, entry: dict[str, Any]) -> Miss | None:
        at = entry.get("at", 0.0)
        if self._now() - at > self._ttl:
            return Miss("expired", f"the cached result is {ago(self._now() - at)[:-4]} old, older than the cache's ttl")
        kind = call.planned.type
        fleeting = kind.declared.volatile and call.planned.node.policy.cache is not True
        if fleeting and at <= self.store.metadata.get("completed", 0.0):
            return Miss("fresh", "the workflow has completed since; it judges a world that no param names")
        for name in kind.declared.writes:
            for path in self._files.named(kind, {name: call.params.get(name)}):
                if self._files.digest(path) == ABSENT:
                    return Miss("gone", f"its file {call.params[name]} is gone")
        return None

    def _why(self, call: Call, parts: Parts) -> Miss:
        """Name what is different from the earlier time that was most like this one."""
        last = nearest(self.store.all(call.visit.id), parts)
        if last is None:
            known = self.store.metadata.get("nodes", {}).get(name_of(call.visit.id), {})
            failed = isinstance(known, dict) and known.get("status") == "failed"
            return Miss("new", "it failed last time" if failed else "no earlier result")
        return msgspec.structs.replace(compare(last, parts), then=last, now=parts)

    def _lineage(self, call: Call, parts: Parts, entry: dict[str, Any]) -> str:
        if call.planned.effect == "pure":
            return digest([_key(call, parts), call.upstream])
        return str(entry["lineage"])

    # ── claim ──

    async def claim(self, call: Call) -> Recalled | Abandoned | None:
        """Have a visit to ourselves; what another run is at is waited for, and reused."""
        name = _claim(call, self.parts(call))
        taken = self._claims.take(name)
        while taken is False:
            await asyncio.sleep(WAIT)
            taken = self._claims.take(name)
            self._look_again(call)
        found = self.recall(call)  # somebody may have done it since we looked
        if isinstance(found, Recalled):
            self._claims.release(name, settled=True)
            return found
        if not call.planned.intent:
            return None
        if isinstance(taken, Abandoned):
            return taken
        edited = self._claims.others(name_of(call.visit.id), name)
        return msgspec.structs.replace(edited[-1], edited=True) if edited else None

    def _look_again(self, call: Call) -> None:
        """Another run has been at work: files may have changed, and its entries count."""
        self._parts.pop(call.visit.id, None)
        self.store.refresh()
        self._changed |= self.store.changed()

    def sign(self, call: Call, attempt: int) -> None:
        """An impure attempt is about to begin."""
        self._claims.sign(_claim(call, self.parts(call)), call.run_id, attempt)

    # ── remember ──

    def remember(self, call: Call, outcome: Outcome, writes: Mapping[str, Any]) -> Outcome:
        """Keep how a visit ended, and give its claim up."""
        parts = self.parts(call)
        del self._parts[call.visit.id]
        claim = _claim(call, parts)
        lineage = f"{call.run_id}/{call.visit.id}/{outcome.attempts}"
        if outcome.status == "completed":
            parts = self._after(call, parts)
            if call.planned.effect == "pure":
                lineage = digest([_key(call, parts), call.upstream])
            if call.planned.node.policy.cache is not False and not call.planned.type.composite:
                self._write(call, parts, outcome, writes, lineage)
        failure = outcome.failure.kind if outcome.failure is not None else "doubt"
        told = outcome.status == "completed" or (outcome.status == "failed" and failure not in ("timeout", "doubt"))
        self._claims.release(claim, settled=told or not call.planned.intent)
        self._note(call, parts, outcome.status, self._now(), outcome)
        return msgspec.structs.replace(outcome, lineage=lineage)

    def _after(self, call: Call, parts: Parts) -> Parts:
        """The parts as the next run will see them: a file that changed meanwhile was an output."""
        before = self._before.pop(call.visit.id, {})
        changed = {path for path, old in before.items() if self._files.digest(path) != old}
        if changed - self._changed:
            self._changed |= changed
            self.store.update(changed_files=sorted(self._changed))
        files = {path: old for path, old in parts["files"].items() if path not in self._changed}
        return {**parts, "files": files}

    def _write(self, call: Call, parts: Parts, outcome: Outcome, writes: Mapping[str, Any], lineage: str) -> None:
        now = self._now()
        key = _key(call, parts)
        entry = {
            "node_id": call.visit.node,
            "node_type": call.planned.type.name,
            "visit": call.visit.id,
            "config_hash": digest(parts["recipe"]),
            "outputs": outcome.outputs,
            "route": outcome.route,
            "writes": plain(dict(writes)),
            "usage": outcome.usage,
            "lineage": lineage,
            "execution_time_ms": outcome.ms,
            "cached_at": stamp(now),
            "at": now,
            "run_id": call.run_id,
            "parts": parts,
        }
        self.store.write(call.visit.id, key, entry)
        self._wrote = True

    def _note(self, call: Call, parts: Parts, status: str, at: float, outcome: Outcome | None = None) -> None:
        note = {"config_hash": digest(parts["recipe"]), "status": status, "cached_at": stamp(at)}
        if outcome is not None and outcome.failure is not None:
            note = {**note, "error": self._redact(outcome.failure.message)}
            del note["cached_at"]
        self._nodes[name_of(call.visit.id)] = note

    def close(self, completed: bool) -> None:
        """The run is over: write down how it went, give claims up, and drop what is too much."""
        self._claims.close()
        if self._nodes:
            nodes = {**self.store.metadata.get("nodes", {}), **self._nodes}
            done = {"completed": self._now()} if completed else {}
            self.store.update(nodes=nodes, last_accessed=stamp(self._now()), **done)
        if self._wrote:
            self.store.prune(self._most)

    # ── keys ──

    def parts(self, call: Call) -> Parts:
        """Everything that a visit's outcome may depend on, part by part, as it was when first asked."""
        found = self._parts.get(call.visit.id)
        if found is None:
            found = self._parts[call.visit.id] = self._taken(call)
        return found

    def _taken(self, call: Call) -> Parts:
        planned = call.planned
        named = {path: self._files.digest(path) for path in self._files.named(planned.type, call.params)}
        self._before[call.visit.id] = named
        files = {path: found for path, found in named.items() if found != ABSENT and path not in self._changed}
        batch = planned.node.batch
        recipe = {**type_parts(planned.type), "params": planned.params.value, "batch": _batch(batch)}
        if planned.type.declared.depends is not None:
            file = call.plan.workflow.file
            folder = Path(file).absolute().parent if file else None
            recipe["depends"] = planned.type.declared.depends(call.params, self._workspace, folder)
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


def _batch(batch: Batch | None) -> Any:
    return None if batch is None else plain(msgspec.to_builtins(batch))


def _key(call: Call, parts: Parts) -> str:
    """What must be the same for an entry to serve."""
    if call.planned.effect == "pure":
        kind = {name: parts["recipe"].get(name) for name in ("type", "version", "source")}
        return digest([kind, parts["resolved"], parts["files"], parts["shared"]])
    return digest([parts["recipe"], parts["inputs"], parts["files"], parts["shared"], parts["upstream"]])


def _claim(call: Call, parts: Parts) -> str:
    return f"{name_of(call.visit.id)}.{digest([parts['recipe'], parts['inputs'], parts['upstream']])[:24]}"


def nearest(found: list[dict[str, Any]], new: Parts) -> Parts | None:
    """The parts of the entry that shares most with these; of two that share as much, those of the first."""
    known = [entry["parts"] for entry in found if isinstance(entry.get("parts"), dict)]
    return min(known, key=lambda old: len(differences(old, new)), default=None)


def compare(old: Parts, new: Parts) -> Miss:
    """The first kind of difference between two visits, with names."""
    config = differences(old.get("recipe", {}), new["recipe"])
    if config:
        return Miss("config", f"config changed: {', '.join(config)}")
    for part, word in (("inputs", "input"), ("files", "file"), ("shared", "shared key")):
        changed = differences(old.get(part, {}), new[part])
        if changed:
            return Miss("file" if part == "files" else "input", f"{word} changed: {', '.join(changed)}")
    upstream = differences(old.get("upstream", {}), new["upstream"])
    if upstream:
        return Miss("upstream", f"upstream changed: {', '.join(upstream)}")
    return (
        Miss("input", "resolved params changed") if old.get("resolved") != new["resolved"] else Miss("new", "dropped")
    )


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """The paths at which two values differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in sorted({*old, *new}):
            here = f"{path}.{key}" if path else str(key)
            if key not in old or key not in new:
                found.append(here)
            else:
                found += differences(old[key], new[key], here)
        return found
    return [] if digest(old) == digest(new) else [path]


def ago(seconds: float) -> str:
    """A time that has passed, in words."""
    for size, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {word} ago"
    return f"{max(0, int(seconds))} s ago"

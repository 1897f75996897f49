"""The cache: running again executes only what changed, and what comes after it.

Outcomes are looked for in one or two places. The *common* store has those of pure nodes of all flows
(``--use-cache``); the file's *own* has those of every node. Among its own an impure or quiet visit is found when its
recipe **and the lineage of everything upstream** are the same, a pure one when its type and its resolved params are.
Every answer says why, part by part.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pflow.model.reason import Reason
from pflow.model.records import Outcome
from pflow.model.value import digest, plain
from pflow.model.visit import is_within, node_of, top_of
from pflow.reuse.iterations import Iterations, name_of, stamp
from pflow.reuse.named_files import Files
from pflow.reuse.policy import Abandoned, Call, Recalled
from pflow.reuse.recipe import Parts, Recipes, compare, key, lineage, nearest
from pflow.reuse.store import Entry, Store

WAIT = 0.05  # seconds between looks at a visit that another run is at
IMPURE = Reason("off", ("impure",))


class Terms(msgspec.Struct, frozen=True):
    """What a run asks of the cache of its file."""

    ttl: float = 0.0
    rerun: frozenset[str] = frozenset()  # nodes
    again: str = ""  # a visit that is to be executed, with all inside of it; what is below goes by lineage
    most: int = 512 * 2**20
    now: Callable[[], float] = time.time
    redact: Callable[[str], str] = str

    def off(self, call: Call) -> Reason | None:
        """Why a visit is not even looked for."""
        if call.visit.node in self.rerun or node_of(top_of(call.visit.id)) in self.rerun:
            return Reason("rerun", ("--rerun",))
        if self.again and is_within(call.visit.id, self.again):
            return Reason("rerun", ("--at",))
        return None


class Cache:
    """Earlier outcomes of one flow, and of all, for one run."""

    active = True

    def __init__(
        self, flow: str, workspace: Path, own: Iterations | None, common: Store | None, terms: Terms | None = None
    ) -> None:
        self.claims = own is not None
        self._flow = flow
        self._own = own
        self._common = common
        self._terms = terms or Terms()
        self._files = Files(workspace)
        self._recipes = Recipes(self._files, own.changed() if own else set())
        self._keys: dict[str, str] = {}  # visit → its key in common, as it was before it
        self._seen: dict[str, tuple[str, Any]] = {}  # visit → the entry that was looked for, and its version
        self._nodes: dict[str, Any] = {}  # how each visit fared
        self._wrote = False

    @property
    def lost(self) -> Path | None:
        """The folder in which outcomes could not be kept."""
        return next((store.lost for store in (self._own, self._common) if store and store.lost), None)

    # ── recall ──

    def recall(self, call: Call) -> Recalled | Reason:
        """An earlier outcome, if nothing that it depends on has changed."""
        began = time.perf_counter()
        if call.planned.node.policy.cache is False:
            return Reason("off", ("setting",))
        found = self._in_common(call, self._common) if self._common and _is_common(call) else IMPURE
        if isinstance(found, Reason) and self._own:
            found = self._in_own(call, self._own)
        if isinstance(found, Reason):
            return found
        entry, reason = found
        outcome = Outcome(
            "completed", entry.outputs, entry.route, reason=reason, reused=True, attempts=0,
            lineage=lineage(call, self._recipes.of(call), entry.lineage),
            ms=round((time.perf_counter() - began) * 1000, 3),
            saved={"ms": entry.execution_time_ms, **entry.usage},
        )  # fmt: skip
        self._recipes.forget(call)
        return Recalled(outcome, entry.writes)

    def _in_common(self, call: Call, common: Store) -> tuple[Entry, Reason] | Reason:
        name = self._keys[call.visit.id] = self._recipes.common_key(call)
        entry = common.read(name)
        return (entry, Reason("same-inputs")) if entry else Reason("new")

    def _in_own(self, call: Call, own: Iterations) -> tuple[Entry, Reason] | Reason:
        off = self._terms.off(call)
        if off is not None:
            return off
        visit, parts = call.visit.id, self._recipes.of(call)
        name = own.name(visit, key(call, parts))
        self._seen[visit] = name, own.version(name)
        entry = own.read(name)
        if entry is None:
            return _why(own, visit, parts)
        age = self._terms.now() - entry.at
        stale = self._stale(call, entry, age, own)
        if stale is not None:
            return stale
        known = {"config_hash": entry.config_hash, "status": "completed", "cached_at": entry.cached_at}
        self._nodes[name_of(visit)] = known
        return entry, Reason("cached", age=age)

    def _stale(self, call: Call, entry: Entry, age: float, own: Iterations) -> Reason | None:
        if age > self._terms.ttl:
            return Reason("expired", age=age)
        kind = call.planned.type
        fleeting = kind.declared.volatile and call.planned.node.policy.cache is not True
        if fleeting and entry.at <= own.metadata.get("completed", 0.0):
            return Reason("fresh")
        gone = self._files.gone(kind, call.params)
        return Reason("gone", (gone,)) if gone else None

    # ── claim ──

    async def claim(self, call: Call) -> Recalled | Abandoned | None:
        """Have a visit to ourselves; what another run is at is waited for, and reused."""
        own = self._own
        if own is None:
            return None
        name = self._claim(call)
        waited = False
        while (taken := own.claims.take(name)) is False:
            await asyncio.sleep(WAIT)
            waited = True
        if waited:  # files may have changed, and the entries of the other run count
            self._recipes.forget(call)
            own.refresh()
            self._recipes.changed |= own.changed()
        entry, version = self._seen.get(call.visit.id, ("", None))
        if waited or (entry and own.version(entry) != version):
            found = self.recall(call)  # somebody may have done it since we looked
            if isinstance(found, Recalled):
                own.claims.release(name, settled=True)
                return found
        if not call.planned.intent:
            return None
        if isinstance(taken, Abandoned):
            return taken
        edited = own.claims.others(name_of(call.visit.id), name)
        return msgspec.structs.replace(edited[-1], edited=True) if edited else None

    def sign(self, call: Call, attempt: int) -> None:
        """An impure attempt is about to begin."""
        if self._own:
            self._own.claims.sign(self._claim(call), call.run_id, attempt)

    def _claim(self, call: Call) -> str:
        parts = self._recipes.of(call)
        return f"{name_of(call.visit.id)}.{digest([parts['recipe'], parts['inputs'], parts['upstream']])[:24]}"

    # ── remember ──

    def remember(self, call: Call, outcome: Outcome, writes: Mapping[str, Any]) -> Outcome:
        """Keep how a visit ended, and give its claim up."""
        if self._own is None and not _is_common(call):
            return outcome
        parts, execution = self._recipes.of(call), f"{call.run_id}/{call.visit.id}/{outcome.attempts}"
        if outcome.status != "completed":
            made = msgspec.structs.replace(outcome, lineage=execution)
        else:
            parts = self._after(call)
            made = msgspec.structs.replace(outcome, lineage=lineage(call, parts, execution))
            if call.planned.node.policy.cache is not False:
                self._keep(call, parts, made, writes)
        if self._own:
            self._own.claims.release(self._claim(call), settled=_is_settled(call, made))
            self._note(call, parts, made)
        self._recipes.forget(call)
        return made

    def _after(self, call: Call) -> Parts:
        known = len(self._recipes.changed)
        parts = self._recipes.after(call)
        if self._own and len(self._recipes.changed) > known:
            self._own.update(changed_files=sorted(self._recipes.changed))
        return parts

    def _keep(self, call: Call, parts: Parts, outcome: Outcome, writes: Mapping[str, Any]) -> None:
        now = self._terms.now()
        entry = Entry(
            outputs=outcome.outputs, writes=plain(dict(writes)), route=outcome.route, lineage=outcome.lineage,
            parts=parts, usage=outcome.usage, execution_time_ms=outcome.ms, config_hash=digest(parts["recipe"]),
            node_id=call.visit.node, node_type=call.planned.type.name, visit=call.visit.id, run_id=call.run_id,
            flow=self._flow, at=now, cached_at=stamp(now),
        )  # fmt: skip
        if self._common and _is_common(call):
            name = self._keys.pop(call.visit.id, "")  # none where it was on trial until now
            self._common.write(name or self._recipes.common_key(call), entry)
        if self._own:
            self._own.keep(call.visit.id, key(call, parts), entry)
            self._wrote = True

    def _note(self, call: Call, parts: Parts, outcome: Outcome) -> None:
        note = {"config_hash": digest(parts["recipe"]), "status": outcome.status}
        if outcome.failure is not None:
            note["error"] = self._terms.redact(outcome.failure.message)
        else:
            note["cached_at"] = stamp(self._terms.now())
        self._nodes[name_of(call.visit.id)] = note

    def close(self, completed: bool) -> None:
        """The run is over: write down how it went, give claims up, and drop what is too much."""
        own = self._own
        if own is None:
            return
        own.claims.close()
        if self._nodes:
            now = self._terms.now()
            nodes = {**own.metadata.get("nodes", {}), **self._nodes}
            own.update(nodes=nodes, last_accessed=stamp(now), **({"completed": now} if completed else {}))
        if self._wrote:
            own.prune(self._terms.most)


def _is_common(call: Call) -> bool:
    """Whether its outcome may serve other flows; what was on trial may have been found pure just now."""
    return call.planned.effect == "pure" or call.planned.type.standing == "pure"


def _why(own: Iterations, visit: str, parts: Parts) -> Reason:
    """Name what is different from the earlier time that was most like this one."""
    last = nearest([entry.parts for entry in own.past(visit)], parts)
    if last is not None:
        return compare(last, parts)
    known = own.metadata.get("nodes", {}).get(name_of(visit), {})
    return Reason("failed" if isinstance(known, dict) and known.get("status") == "failed" else "new")


def _is_settled(call: Call, outcome: Outcome) -> bool:
    """Whether it is known how a visit went; what timed out may have taken effect."""
    failure = outcome.failure.kind if outcome.failure is not None else "doubt"
    told = outcome.status == "completed" or (outcome.status == "failed" and failure not in ("timeout", "doubt"))
    return told or not call.planned.intent

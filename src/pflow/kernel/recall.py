"""Between the kernel and its reuse policy: claims of visits, and outcomes that are remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pflow.kernel.scope import Ready, Scope
from pflow.model.records import Ended, Outcome, Shared
from pflow.model.value import digest
from pflow.reuse.policy import Recalled

if TYPE_CHECKING:
    from pflow.kernel.run import Run


async def claim(run: Run, scope: Scope, ready: Ready) -> Outcome | None:
    """Have a visit to this run alone; an outcome when another run has done it, or when a doubt was settled so."""
    assert ready.call is not None
    found = await run.reuse.claim(ready.call)
    if found is None:
        return None
    if isinstance(found, Recalled):
        return take(run, found)
    if found.edited:
        text = f"an earlier form of it was cut off in run {found.run_id} and may have taken effect; it was edited since"
        run.say(scope, ready, "log", {"level": "warn", "message": text})
        return None
    if found.run_id == run.run_id:
        return None  # our own, and settled already
    text = f"it was cut off in run {found.run_id} and may have taken effect"
    run.say(scope, ready, "log", {"level": "warn", "message": text})
    return await run.people.settle(scope, ready, 0)


def take(run: Run, found: Recalled) -> Outcome:
    """Take over an earlier outcome, with what was stored on the way to it."""
    for key, value in found.writes.items():
        run.note(Shared(run.clock.now(), key, value))
    return found.outcome


def remember(run: Run, ready: Ready, outcome: Outcome) -> Outcome:
    """An outcome with its lineage, kept for later runs where the policy sees fit."""
    assert ready.call is not None
    if outcome.reused:
        return outcome  # another run made it while this one waited
    if not ready.planned.type.composite:
        return run.reuse.remember(ready.call, outcome, ready.writes)
    scopes = run.memory.nested.get(ready.visit.id, {})
    ends = {fact.visit: fact.outcome for facts in scopes.values() for fact in facts if isinstance(fact, Ended)}
    children = sorted((visit, one.lineage) for visit, one in ends.items())
    lineage = digest([ready.call.upstream, [list(child) for child in children], digest(outcome.outputs)])
    reused = bool(ends) and outcome.status == "completed" and all(one.reused for one in ends.values())
    return msgspec.structs.replace(outcome, lineage=lineage, reused=reused)

"""A visit, start to end, for every dialect: guard → bind → recall → attempts → outcome."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from pflow.kernel import recall, trial
from pflow.kernel.advice import advised
from pflow.kernel.attempt import attempt, delay_before
from pflow.kernel.look import look
from pflow.kernel.scope import Ready, Scope
from pflow.kernel.step import Step
from pflow.model.records import Failure, Outcome, Visit
from pflow.reuse.policy import Recalled

if TYPE_CHECKING:
    from pflow.kernel.run import Run


def prepare(run: Run, scope: Scope, visit: Visit) -> Ready | Outcome:
    """Guard, bind, recall: synchronous, and enough to end a visit that needs no execution."""
    seen, memory = look(scope, visit, run.run_id, run.reuse, run.memory.shared), run.memory
    if seen.outcome is not None:
        return _at_once(run, visit, seen.outcome, seen.writes or {})
    planned = scope.plan.nodes[visit.node]
    attempt, wait_until = memory.next_attempt(visit.id), memory.wait_until.get(visit.id, 0.0)
    ready = Ready(visit, planned, seen.params, attempt, wait_until, seen.call, seen.why)
    if memory.used:
        ready.used.update(memory.used.get(visit.id, {}))
    return ready


def _at_once(run: Run, visit: Visit, outcome: Outcome, writes: dict[str, Any]) -> Outcome:
    if outcome.failure is not None:
        return msgspec.structs.replace(outcome, failure=advised(outcome.failure, visit.node))
    return recall.take(run, Recalled(outcome, writes))


async def execute(run: Run, scope: Scope, ready: Ready) -> Outcome:
    """Attempt a visit until it succeeds or its policy gives up."""
    started = perf_counter()
    visit, kind, policy = ready.visit, ready.planned.type, ready.planned.node.policy
    if visit.id in run.memory.begun and not ready.begun:
        settled = await run.people.settle(scope, ready, run.memory.begun[visit.id])
        if settled is not None:
            return settled
    if run.reuse.claims and ready.call is not None and not kind.composite:
        taken = await recall.claim(run, scope, ready)
        if taken is not None:
            return taken
    if ready.wait_until:
        await run.clock.sleep(ready.wait_until - run.clock.now())
    tried = kind.on_trial and trial.matters(run, ready)
    if tried:
        await trial.on_examples(run, scope, ready)
    first = run.memory.failed_before.get(visit.id, 0)  # attempts before a reopening do not count again
    while True:
        run.begin(ready)
        step = Step(run, scope, visit, ready.attempt, ready.params) if kind.wants_step else None
        if step is not None and kind.watched:
            step.may_share = frozenset(kind.declared.shared)
        made = await attempt(kind, step, ready.params, policy.timeout, f"{run.run_id}:{visit.id}")
        if step is not None:
            run.keep(ready, step)
        if not isinstance(made, Failure):
            if tried and kind.on_trial:
                await trial.on_visit(run, scope, ready, made[0], perf_counter() - started)
            return Outcome("completed", *made, attempts=ready.attempt, ms=_ms(started), usage=ready.used)
        if kind.on_trial:
            trial.failed(run, scope, ready, made)
        if made.kind == "budget":
            await run.people.hold(ready, made)  # nothing was done: it goes on when there is more to spend
            continue
        delay = delay_before(policy, made, ready.attempt - first)
        if delay is None:
            failure = advised(made, visit.node, policy.timeout)
            return Outcome("failed", failure=failure, attempts=ready.attempt, ms=_ms(started), usage=ready.used)
        await run.try_again(scope, ready, made, delay)


def _ms(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)

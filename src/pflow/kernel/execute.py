"""A visit, start to end, for every dialect: guard → bind → recall → attempts → outcome."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from pflow.errors import BindingError, ExpressionError, UsageError
from pflow.kernel import reusing, trial
from pflow.kernel.attempt import attempt, delay_before
from pflow.kernel.scope import Ready, Scope
from pflow.kernel.step import Step
from pflow.lang.expression import describe
from pflow.model.run import Failure, Outcome, Visit
from pflow.model.value import digest
from pflow.reuse.policy import Call, Recalled

if TYPE_CHECKING:
    from pflow.kernel.run import Run


def prepare(run: Run, scope: Scope, visit: Visit) -> Ready | Outcome:
    """Guard, bind, recall: synchronous, and enough to end a visit that needs no execution."""
    planned = scope.plan.nodes[visit.node]
    try:
        if planned.guard is not None and not planned.guard.test(scope.values):
            reason = f"when: {describe(planned.node.guard or [])} does not hold"
            lineage = digest(["skipped", scope.upstream(planned)]) if run.reuse.active else ""
            return Outcome("skipped", reason=reason, lineage=lineage, attempts=0)
        params: dict[str, Any] = planned.params.bind(scope.values)
        if planned.converts:
            params = planned.type.convert(params)
    except (BindingError, ExpressionError, UsageError) as error:
        failure = Failure("binding", error.message, error.hint, type(error).__name__)
        return Outcome("failed", failure=advised(failure, visit.node, None), attempts=0)
    ready = Ready(visit, planned, params, run.memory.next_attempt(visit.id), run.memory.wait_until.get(visit.id, 0.0))
    if run.memory.used:
        ready.used.update(run.memory.used.get(visit.id, {}))
    if run.reuse.active and scope.live is None:  # graphs are never cached
        upstream = scope.upstream(planned)
        ready.call = Call(run.run_id, visit, scope.plan, planned, params, upstream, scope.values, run.memory.shared)
        if not planned.type.composite:
            found = run.reuse.recall(ready.call)
            if isinstance(found, Recalled):
                return reusing.take(run, found)
            ready.why = found
    return ready


async def execute(run: Run, scope: Scope, ready: Ready) -> Outcome:
    """Attempt a visit until it succeeds or its policy gives up."""
    started = perf_counter()
    visit, kind, policy = ready.visit, ready.planned.type, ready.planned.node.policy
    if visit.id in run.memory.begun and not ready.begun:
        settled = await run.desk.settle(scope, ready, run.memory.begun[visit.id])
        if settled is not None:
            return settled
    if run.reuse.claims and ready.call is not None and not kind.composite:
        taken = await reusing.claim(run, scope, ready)
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
            await run.desk.hold(ready, made)  # nothing was done: it goes on when there is more to spend
            continue
        delay = delay_before(policy, made, ready.attempt - first)
        if delay is None:
            failure = advised(made, visit.node, policy.timeout)
            return Outcome("failed", failure=failure, attempts=ready.attempt, ms=_ms(started), usage=ready.used)
        await run.try_again(scope, ready, made, delay)


def advised(failure: Failure, node: str, timeout: float | None) -> Failure:
    """A failure with what may be done about it."""
    from pflow.agents.recovery import suggestions_for

    return msgspec.structs.replace(failure, suggestions=suggestions_for(failure, node, timeout))


def _ms(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)

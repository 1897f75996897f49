"""A visit, start to end, for every dialect: guard → bind → recall → attempts → outcome."""

from __future__ import annotations

from asyncio import CancelledError
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pflow.errors import BindingError, ExpressionError, UsageError
from pflow.kernel.attempt import call, delay_before, failure_of, outputs
from pflow.kernel.scope import Ready, Scope
from pflow.lang.expression import describe
from pflow.model.run import Failure, Outcome, Visit
from pflow.nodes.step import StepContext

if TYPE_CHECKING:
    from pflow.kernel.run import Run


def prepare(run: Run, scope: Scope, visit: Visit) -> Ready | Outcome:
    """Guard, bind, recall: synchronous, and enough to end a visit that needs no execution."""
    planned = scope.plan.nodes[visit.node]
    try:
        if planned.guard is not None and not planned.guard.test(scope.values):
            return Outcome("skipped", reason=f"when: {describe(planned.node.guard or [])} does not hold", attempts=0)
        params: dict[str, Any] = planned.params.bind(scope.values)
        if planned.converts:
            params = planned.type.convert(params)
    except (BindingError, ExpressionError, UsageError) as error:
        failure = Failure("binding", error.message, error.hint, type(error).__name__)
        return Outcome("failed", failure=failure, attempts=0)
    if run.reuse.active and not planned.type.composite:
        recalled = run.reuse.recall(visit, planned, params)
        if isinstance(recalled, Outcome):
            return recalled
    return Ready(visit, planned, params, run.memory.next_attempt(visit.id), run.memory.wait_until.get(visit.id, 0.0))


async def execute(run: Run, scope: Scope, ready: Ready) -> Outcome:
    """Attempt a visit until it succeeds or its policy gives up."""
    started = perf_counter()
    visit, kind, policy = ready.visit, ready.planned.type, ready.planned.node.policy
    if visit.id in run.memory.begun and not ready.begun:
        settled = await run.settle_doubt(ready)
        if settled is not None:
            return settled
    if ready.wait_until:
        await run.clock.sleep(ready.wait_until - run.clock.now())
    first = run.memory.failed_before.get(visit.id, 0)  # attempts before a reopening do not count again
    while True:
        run.begin(ready)
        step = StepContext(run.door, visit, ready.attempt, ready.params, scope) if kind.wants_step else None
        try:
            returned = await call(kind, step, ready.params, policy.timeout, f"{run.run_id}:{visit.id}")
            made, route = outputs(returned)
        except CancelledError:
            if step is not None:
                step.cancelled = True
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the one around node code: a failure is data
            failure = failure_of(error)
        else:
            if step is not None:
                run.keep(ready, step)
            return Outcome("completed", made, route, attempts=ready.attempt, ms=_ms(started), usage=ready.used)
        if step is not None:
            step.cancelled = True  # whatever it left running has nothing more to say
            run.keep(ready, step)
        delay = delay_before(policy, failure, ready.attempt - first)
        if delay is None:
            return Outcome("failed", failure=failure, attempts=ready.attempt, ms=_ms(started), usage=ready.used)
        await run.try_again(scope, ready, failure, delay)


def _ms(started: float) -> float:
    return round((perf_counter() - started) * 1000, 3)

"""Composite visits: workflows that run inside a visit, in the same journal, each with a scheduler of its own.

A visit that is executed again (after a crash, for another attempt, in a reopened run) takes its nested scopes up where
their recorded facts left them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from pflow.errors import NodeError
from pflow.kernel.attempt import Failed, call, outputs
from pflow.kernel.scope import Scope, declared_outputs
from pflow.model.conversation import spelled_out
from pflow.model.records import Cancelled, Failure
from pflow.model.value import digest, plain
from pflow.model.visit import item_prefix, workflow_prefix
from pflow.nodes.step import Iteration, add_usage
from pflow.planning.plan import Values

if TYPE_CHECKING:
    from pflow.kernel.run import Run
    from pflow.kernel.step import Step

DEPTH = 10  # workflows inside workflows


async def run_workflow(step: Step, ref: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Run a workflow inside a step, isolated from the one around it."""
    run, outer = step.run, step.scope
    if run.guide.load is None:
        raise NodeError("this run cannot load workflows", "give it a loader")
    if outer.depth >= DEPTH:
        raise NodeError(f"workflows are nested deeper than {DEPTH}", "does one call itself?", kind="validation")
    plan, values = run.guide.load(ref, outer.plan.workflow, plain(dict(inputs)))
    k, step.nested = step.nested, step.nested + 1
    prefix = workflow_prefix(step.visit, k)
    label = f"{outer.label}{step.node_id}/"
    scope = Scope(plan, values, prefix, label, plan.workflow.width, outer.depth + 1, run.guide.spin)
    scope.base = _base(step)
    await _drive(step, scope)
    made: dict[str, Any] = spelled_out(declared_outputs(scope))
    return made


async def run_each(
    step: Step, items: list[Any], name: str, body: list[str], width: int, fail_fast: bool
) -> list[Iteration]:
    """Run a part of the step's own workflow once for each item; a failure ends all of it, or its item only."""
    outer = step.scope
    plan = outer.plan.bodies[step.node_id]
    base = _base(step)
    made: list[Iteration | None] = [None] * len(items)
    numbers, done = iter(range(len(items))), count(1)  # shared by the workers below: each takes the next

    async def work() -> None:
        for i in numbers:
            values = Values({name: items[i], "__index__": i}, outer.values)
            label = f"{outer.label}{step.node_id}[{i}]/"
            scope = Scope(plan, values, item_prefix(step.visit, i), label, outer.width, outer.depth)
            scope.base, scope.outer = base, outer
            failure = None
            try:
                await _drive(step, scope)
            except Failed as error:
                if fail_fast:
                    raise
                failure = error.failure
            own = {node_id: scope.values[node_id] for node_id in body if node_id in scope.values}
            made[i] = Iteration(own, failure)
            step.progress(next(done), len(items))

    if width == 1 or not items:
        await work()
    else:
        await _together([work() for _ in range(min(width, len(items)))])
    return [one for one in made if one is not None]


async def _together(works: list[Coroutine[Any, Any, None]]) -> None:
    """Run at once; the first failure stops the others, and all have ended before it is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()


async def call_type(step: Step, type_name: str, params: dict[str, Any]) -> dict[str, Any]:
    """Execute another node type as a part of the step; what it stores and uses counts as the step's."""
    kind = step.registry.get(type_name)
    own = kind.convert({kind.canonical(key): value for key, value in params.items()})
    inner = step.inner(own)
    try:
        returned = await call(kind, inner if kind.wants_step else None, own, None, step.idempotency_key)
    finally:
        add_usage(step.used, inner.used)  # what failed was paid for, too
    step.asks, step.nested = inner.asks, inner.nested
    step.writes.update(inner.writes)
    return outputs(returned)[0]


async def _drive(step: Step, scope: Scope) -> None:
    """Run a scope to its end; raises what it failed with."""
    run = step.run
    for fact in list(run.memory.below(step.visit, scope.prefix)):
        scope.replay(fact)
    done = scope.done = asyncio.get_running_loop().create_future()
    with run.waits.aside(step.visit):
        try:
            run.enter(scope)
            # Waited for, not awaited: a cancel of this visit must not cancel the future, which tells when the visits
            # inside have ended. They are stopped through their scheduler, like any others, and drained.
            await asyncio.wait({done})
        except asyncio.CancelledError:
            if not run.leaving:
                await _drain(run, scope, done)
            raise
    finish = scope.finish
    if finish is not None and finish.status != "completed":
        raise Failed(finish.failure or Failure("cancelled", "a workflow inside this node was cancelled"))


def _base(step: Step) -> str:
    """The lineage of what a nested scope is given: that of everything before its visit."""
    scope = step.scope
    return digest(scope.upstream(scope.plan.nodes[step.node_id])) if step.run.reuse.active else ""


async def _drain(run: Run, scope: Scope, done: asyncio.Future[None]) -> None:
    """The visit around it was stopped: stop what is below, and wait until all of it has ended."""
    run.tell(scope, Cancelled(run.clock.now(), run.run_id, "stopped"))
    if not done.done():
        await asyncio.wait({done})

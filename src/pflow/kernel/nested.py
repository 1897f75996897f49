"""Composite visits: workflows that run inside a visit, in the same journal, each with a scheduler of its own.

A visit that is executed again (after a crash, for another attempt, in a reopened run) takes its nested scopes up where
their recorded facts left them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pflow.errors import NodeError
from pflow.kernel.attempt import Failed, call, outputs
from pflow.kernel.scope import Scope, declared_outputs
from pflow.model.run import Cancelled, Failure, Visit
from pflow.model.value import plain
from pflow.nodes.step import StepContext
from pflow.planning.plan import Values

if TYPE_CHECKING:
    from pflow.kernel.run import Run

DEPTH = 10  # workflows inside workflows


async def run_workflow(run: Run, step: StepContext, ref: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Run a workflow inside a step, isolated from the one around it."""
    outer: Scope = step.scope
    if run.guide.load is None:
        raise NodeError("this run cannot load workflows", "give it a loader")
    if outer.depth >= DEPTH:
        raise NodeError(f"workflows are nested deeper than {DEPTH}", "does one call itself?", kind="validation")
    plan, values = run.guide.load(ref, outer.plan.workflow, plain(dict(inputs)))
    k, step.nested = step.nested, step.nested + 1
    prefix = f"{step.visit}/~{k}/" if k else f"{step.visit}/"
    scope = Scope(plan, values, prefix, f"{outer.label}{step.node_id}/", plan.workflow.width, outer.depth + 1)
    await _drive(run, step, scope)
    return declared_outputs(scope)


async def run_each(
    run: Run, step: StepContext, items: list[Any], name: str, body: list[str]
) -> list[dict[str, dict[str, Any]]]:
    """Run a part of the step's own workflow once for each item, one after the other."""
    outer: Scope = step.scope
    plan = outer.plan.bodies[step.node_id]
    made = []
    for i, item in enumerate(items):
        values = Values({name: item, "__index__": i}, outer.values)
        label = f"{outer.label}{step.node_id}[{i}]/"
        scope = Scope(plan, values, f"{step.visit}/{i}/", label, outer.width, outer.depth)
        await _drive(run, step, scope)
        made.append({node_id: scope.values[node_id] for node_id in body if node_id in scope.values})
        step.progress(i + 1, len(items))
    return made


async def call_type(run: Run, step: StepContext, type_name: str, params: dict[str, Any]) -> dict[str, Any]:
    """Execute another node type as a part of the step; what it stores and uses counts as the step's."""
    if run.guide.registry is None:
        raise NodeError("this run knows no other node types", "give it a registry")
    kind = run.guide.registry.get(type_name)
    own = kind.convert({kind.canonical(key): value for key, value in params.items()})
    inner = StepContext(run.door, Visit(step.visit, step.node_id), step.attempt, own, step.scope)
    returned = await call(kind, inner if kind.wants_step else None, own, None, step.idempotency_key)
    step.writes.update(inner.writes)
    step.usage(**inner.used)
    return outputs(returned)[0]


async def _drive(run: Run, step: StepContext, scope: Scope) -> None:
    """Run a scope to its end; raises what it failed with."""
    for fact in list(run.memory.below(step.visit, scope.prefix)):
        run.follow(scope, fact)
    done = scope.done = asyncio.get_running_loop().create_future()
    weight = 0 if scope_is_composite(step) else 1  # a plain node that runs a workflow only waits meanwhile
    run.busy -= weight
    try:
        run.enter(scope)
        await asyncio.wait({done})  # waited for, not awaited: a cancel must not cancel it
    except asyncio.CancelledError:
        if not run.leaving:
            await _drain(run, scope, done)
        raise
    finally:
        run.busy += weight
    finish = scope.finish
    if finish is not None and finish.status != "completed":
        raise Failed(finish.failure or Failure("cancelled", "a workflow inside this node was cancelled"))


async def _drain(run: Run, scope: Scope, done: asyncio.Future[None]) -> None:
    """The visit around it was stopped: stop what is below, and wait until all of it has ended."""
    run.tell(scope, Cancelled(run.clock.now(), run.run_id, "stopped"))
    if not done.done():
        await asyncio.wait({done})


def scope_is_composite(step: StepContext) -> bool:
    """Whether the step's own type is one that only runs others."""
    scope: Scope = step.scope
    return scope.plan.nodes[step.node_id].type.composite

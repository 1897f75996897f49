"""Control: choose a route, do nothing, fail on purpose, repeat."""

from __future__ import annotations

import json
from typing import Any

from pflow.nodes import NodeError, Routed, StepContext, flow_safe, node, same, truth, type_name


@flow_safe
@node(
    "control.if",
    version="1",
    inline=True,
    effect="pure",
    main_out="value",
    outputs=("value",),
    routes=("true", "false"),
    examples=[{"condition": True}, {"condition": "no"}],
)
def choose(condition: Any) -> Routed:
    """Take the route ``true`` or ``false``; the texts ``no``, ``false``, ``0`` and nothing are false."""
    holds = truth(condition)
    return Routed({"value": holds}, "true" if holds else "false")


@flow_safe
@node(
    "control.switch",
    version="1",
    inline=True,
    effect="pure",
    main_out="value",
    outputs=("value",),
    examples=[{"value": 2, "cases": {"one": 1, "two": 2}}],
)
def switch(value: Any, cases: dict[str, Any], default: str = "default") -> Routed:
    """Take the route of the first case that equals the value; ``value`` is then that route's label."""
    label = next((label for label, match in cases.items() if same(match, value)), default)
    return Routed({"value": label}, label)


@flow_safe
@node("control.noop", version="1", inline=True, effect="pure", outputs=(), examples=[{}])
def noop() -> None:
    """Do nothing: a place where branches meet."""


@flow_safe
@node("control.fail", version="1", inline=True, effect="pure", outputs=(), examples=[{"message": "not yet"}])
def fail(message: str = "failed on purpose") -> None:
    """Fail with a message."""
    raise NodeError(message)


@node("control.foreach", version="1", composite=True, effect="quiet", main_out="iterations", outputs=("iterations",))
async def foreach(step: StepContext, items: list[Any], body: list[str], as_: str = "item") -> dict[str, Any]:
    """Run the nodes of ``body`` once for each item, one item after the other; they see it under the name ``as``."""
    made = await step.run_each(items, as_, body)
    return {"iterations": [{"item": item, "outputs": one.outputs} for item, one in zip(items, made, strict=True)]}


@node(
    "control.batch",
    version="1",
    composite=True,
    effect="quiet",
    main_out="results",
    outputs=("results", "count", "success_count", "error_count", "errors", "batch_metadata"),
)
async def batch(
    step: StepContext, items: Any, node: str, as_: str = "item", width: int = 1, fail_fast: bool = True
) -> dict[str, Any]:
    """Run one node once for each item of a list, ``width`` at a time; the order of the items is kept."""
    listed = _as_list(items)
    made = await step.run_each(listed, as_, [node], width, fail_fast)
    results, errors = [], []
    for i, (item, one) in enumerate(zip(listed, made, strict=True)):
        if one.failure is None:
            results.append({"item": item, **one.outputs.get(node, {})})
        else:
            results.append({"item": item, "error": one.failure.message})
            errors.append({"index": i, "item": item, "error": one.failure.message, "kind": one.failure.kind})
    return {
        "results": results,
        "count": len(results),
        "success_count": len(results) - len(errors),
        "error_count": len(errors),
        "errors": errors or None,
        "batch_metadata": {"parallel": width > 1, "max_concurrent": width, "fail_fast": fail_fast},
    }


def _as_list(items: Any) -> list[Any]:
    """A list, or a text that is one in JSON."""
    made = items
    if isinstance(items, str):
        try:
            made = json.loads(items)
        except ValueError:
            made = items
    if not isinstance(made, list):
        raise NodeError(f"a batch needs a list of items, not {type_name(items)}", "items: a list", kind="validation")
    return made

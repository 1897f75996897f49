"""Autonomous nodes decide themselves what to pull, and when they are done.

    @node("my/node")
    async def my_node(flow, context, data_in, inputs, config):
        text = data_in or await inputs.pull("data")
        return {"context": context, "data": text.upper(), "status": "success"}

Where values do not flow from port to port, their params are both config and inputs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from pflow.errors import NodeError, UsageError
from pflow.model.conversation import Conversation
from pflow.model.graph import CONTEXT, DATA
from pflow.nodes.graph_api.flow import Flow, Inputs, handle
from pflow.nodes.step import StepContext

if TYPE_CHECKING:
    from pflow.nodes.type import NodeType

PARAMETERS = ("flow", "context", "data_in", "inputs", "config")
NodeFunction = Callable[[Flow, Conversation | None, Any, Inputs, dict[str, Any]], Awaitable[Mapping[str, Any] | None]]
_STATES = ("success", "error", "skipped")


def is_autonomous(target: Any) -> bool:
    """Whether a function has the five parameters of an autonomous node."""
    return inspect.isfunction(target) and tuple(inspect.signature(target).parameters) == PARAMETERS


def autonomous(target: NodeFunction) -> Callable[..., Awaitable[dict[str, Any]]]:
    """An autonomous node as the engine calls it."""
    if not inspect.iscoroutinefunction(target):
        raise UsageError(f'"{target.__name__}" must be async: it waits for its inputs', f"async def {target.__name__}")

    @functools.wraps(target)
    async def call(step: StepContext, **config: Any) -> dict[str, Any]:
        stream = step.stream()
        flow = Flow(step, config)
        given = {handle(name): value for name, value in config.items()} if stream is None else {}
        inputs = Inputs(stream, given, flow.followed)
        pushed = given if stream is None else stream.values()
        context = flow.followed(pushed.get(CONTEXT))
        if context is None and (stream is None or not stream.ports.get(CONTEXT)):
            context = flow.main(stream.main if stream else None)
        try:
            made = await target(flow, context, pushed.get(DATA), inputs, config)
        finally:
            if stream is not None:
                step.seen = stream.seen()
        return _outputs(made, stream is not None)

    signature = [inspect.Parameter("step", inspect.Parameter.POSITIONAL_ONLY, annotation=StepContext)]
    config = inspect.Parameter("config", inspect.Parameter.VAR_KEYWORD)
    call.__signature__ = inspect.Signature([*signature, config])  # type: ignore[attr-defined]
    return call


def _outputs(made: Any, in_graph: bool) -> dict[str, Any]:
    """What a node returned, by ports; an error is raised, so that it is one for every scheduler."""
    if made is not None and not isinstance(made, Mapping):
        text = f"an autonomous node returns a mapping, not {type(made).__name__}"
        raise NodeError(text, 'return {"context": context, "data": …, "status": "success"}')
    given = dict(made or {})
    status = given.pop("status", "success")
    if status not in _STATES:
        raise NodeError(f'a node\'s status is one of {", ".join(_STATES)}, not "{status}"')
    error = given.pop("error", None)
    if status == "error":
        raise NodeError(str(error or "the node reported an error"), details=dict(given.get("metadata") or {}))
    outputs: dict[str, Any] = {"status": status}
    for name, value in given.items():
        if value is not None:
            own = name if name == "metadata" else handle(name)
            outputs[own] = value.whole() if isinstance(value, Conversation) and not in_graph else value
    return outputs


def adapted(kind: NodeType) -> NodeFunction:
    """A type of another style as an autonomous one: ``data`` is its main input and output, the context passes by."""

    async def run(
        flow: Flow, context: Conversation | None, data_in: Any, inputs: Inputs, config: dict[str, Any]
    ) -> dict[str, Any]:
        stream = flow.step.stream()
        params = dict(config)
        for port in stream.ports if stream is not None else ():
            name = kind.main_in if port == DATA else kind.canonical(port)
            if port != CONTEXT and (name in kind.params or kind.open) and inputs.has(port):
                params[name] = await inputs.pull(port)
        if context is None and inputs.has(CONTEXT):
            context = await inputs.pull(CONTEXT)
        made = await flow.step.call(kind.name, **params)
        data = made.get(kind.main_out, made) if kind.main_out else made
        return {**made, CONTEXT: context, DATA: data, "status": "success"}

    run.__name__ = kind.name
    run.__doc__ = kind.doc
    return run

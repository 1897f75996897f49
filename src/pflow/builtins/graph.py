"""The nodes of graphs: where contexts begin, where people are waited for, and what passes data and contexts on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from pflow.model.graph import CONTEXT, DATA
from pflow.nodes import Flow, Inputs, NodeError, node, to_text

Config = Mapping[str, Any]
Output = dict[str, Any]
MINUTES_5 = 300


def ports(inputs: str, outputs: str) -> Callable[[Config], tuple[tuple[str, ...], tuple[str, ...]]]:
    """The ports of a type, for whatever config."""
    fixed = (tuple(inputs.split()), tuple(outputs.split()))
    return lambda config: fixed


async def context_of(context: Any, inputs: Inputs) -> Any:
    """The context that was pushed, or the one that can be pulled."""
    return await inputs.pull(CONTEXT) if context is None and inputs.has(CONTEXT) else context


@node("defaultContextStart", version="1", effect="quiet", outputs=("context", "status"), ports=ports("", "context"))
async def default_context_start(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Start a graph: the main context, with these systemInstructions."""
    made = flow.main(None)
    instructions = to_text(config.get("systemInstructions") or "")
    return {"context": flow.context.update(made, system_instructions=instructions), "status": "success"}


@node("newContext", version="1", effect="quiet", outputs=("context", "status"), ports=ports("context data", "context"))
async def new_context(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Make an isolated context, with its own provider, model and systemInstructions."""
    made = flow.context.create(
        provider=to_text(config.get("provider") or ""),
        model=to_text(config.get("model") or ""),
        system_instructions=to_text(config.get("systemInstructions") or ""),
        context_type="isolated",
    )
    return {"context": made, "status": "success"}


@node(
    "userInput",
    version="1",
    effect="quiet",
    interactive=True,
    outputs=("context", "data", "status"),
    ports=ports("context data", "context data"),
)
async def user_input(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Wait for what the user says; a loop waits here."""
    own = await context_of(context, inputs)
    flow.log.debug("Waiting for user input…")
    return {"context": own, "data": await flow.wait_for_user_input(), "status": "success"}


@node(
    "manualInput",
    version="1",
    effect="quiet",
    outputs=("context", "data", "status"),
    ports=ports("context data", "context data"),
)
async def manual_input(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Say the message of its config, as if a user had."""
    message = config.get("message")
    if message is None or message == "":
        raise NodeError("the message is empty", 'write it: "config": {"message": "…"}', "validation")
    return {"context": await context_of(context, inputs), "data": message, "status": "success"}


@node(
    "cache",
    version="1",
    effect="quiet",
    outputs=("context", "data", "metadata", "status"),
    ports=ports("context data", "context data"),
)
async def cache(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Keep data for ttl seconds (300; 0: never), also across runs; its source is not asked meanwhile.

    Entries older than ``invalidate``, a time in milliseconds, are stale.
    """
    ttl = float(config.get("ttl", MINUTES_5))
    kept = flow.store.get_node_cache(flow.node_id)
    now = time.time()
    if kept and ttl > 0 and now - kept["timestamp"] < ttl and kept["timestamp"] * 1000 >= _stale_before(config):
        flow.log.debug("Cache HIT", {"age": round(now - kept["timestamp"], 3)})
        flow.conversation.add_badge(type="info", label="Using cached data", icon="💾")
        own = context if context is not None else await context_of(context, inputs)
        return {"context": own, "data": kept["data"], "status": "success", "metadata": {"cached": True}}
    flow.log.debug("Cache MISS - pulling from input")
    fresh = data_in if data_in is not None else await inputs.pull(DATA)
    if ttl > 0:
        flow.store.set_node_cache(flow.node_id, {"data": fresh, "timestamp": now})
    own = await context_of(context, inputs)
    return {"context": own, "data": fresh, "status": "success", "metadata": {"cached": False}}


def _stale_before(config: Config) -> float:
    given = config.get("invalidate")
    return float(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else 0.0


@node(
    "injectMessages",
    version="1",
    effect="quiet",
    outputs=("context", "data", "status"),
    ports=ports("context data userMessage assistantMessage", "context data"),
)
async def inject_messages(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Put a question and its answer into the context; done again, they are updated where they are."""
    pair = []
    for port, static in (("userMessage", "staticUserMessage"), ("assistantMessage", "staticAssistantMessage")):
        given = await inputs.pull(port) if inputs.has(port) else config.get(static)
        text = to_text(given).strip() if given is not None else ""
        if not text:
            who = port.removesuffix("Message").capitalize()
            hint = f'connect "{port}", or set "{static}" in its config'
            raise NodeError(f"{who} message is required and must be non-empty", hint, "validation")
        pair.append(text)
    own = await context_of(context, inputs)
    if own is None:
        raise NodeError("there is no context to put the messages into", 'connect its input "context"', "validation")
    made = flow.context.inject_pair(
        own,
        pair[0],
        pair[1],
        mode=config.get("injectionMode") or "prepend",
        pinned=bool(config.get("pinned", False)),
        priority=int(config.get("priority") or 50),
        id_prefix=flow.node_id,
    )
    flow.log.debug("Injected message pair", {"mode": config.get("injectionMode") or "prepend"})
    return {"context": made, "data": {"userMessage": pair[0], "assistantMessage": pair[1]}, "status": "success"}


@node(
    "portalInput",
    version="1",
    effect="quiet",
    outputs=("context", "data", "status"),
    ports=ports("context data tools", ""),
)
async def portal_input(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Put what arrives into the portal of this id, where portalOutput finds it."""
    flow.store.set_portal(to_text(config.get("id", "")), {"context": context, "data": data_in})
    return {"context": context, "data": data_in, "status": "success"}


@node(
    "portalOutput",
    version="1",
    effect="quiet",
    outputs=("context", "data", "status"),
    ports=ports("", "context data tools"),
)
async def portal_output(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Give what was put into the portal of this id."""
    found = flow.store.get_portal(to_text(config.get("id", "")))
    if found is None:
        raise NodeError(f'nothing was put into the portal "{config.get("id", "")}"', "give portalInput the same id")
    return {**found, "status": "success"}

"""Models in graphs: requests that stream and call tools, the tools themselves, and a router by intent.

Looking any type up may import this module, so it imports what only a call needs where it is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pflow.errors import NodeError, UsageError
from pflow.model.conversation import Conversation
from pflow.model.graph import CONTEXT, DATA, TOOLS
from pflow.nodes import to_text
from pflow.nodes.agent import Voice
from pflow.nodes.graph_api.flow import Flow, Inputs
from pflow.nodes.registry import normal
from pflow.nodes.schema import described
from pflow.nodes.type import NodeType, node

STEPS = 20  # answers in a row with calls of tools
AUTO = ("read-file", "fetch_url")  # tools that change nothing
# What the tools of editors are called here; names are compared without regard to case, - and _.
_ELSEWHERE = {
    "terminalexec": "shell", "fsreadfile": "read-file", "fswritefile": "write-file", "fscopy": "copy-file",
    "fsmove": "move-file", "fsdeletefile": "delete-file", "fsremove": "delete-file", "webfetch": "fetch_url",
}  # fmt: skip
Config = Mapping[str, Any]
Output = dict[str, Any]


@node(
    "llmRequest",
    version="1",
    effect="quiet",
    outputs=("context", "data", "metadata", "status"),
    ports=lambda config: (("context", "data", "tools"), ("context", "data")),
)
async def llm_request(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Send a message in a context, stream the answer, and call the tools that its input ``tools`` offers.

    Without an edge to ``data`` the user is asked for the message. ``maxSteps`` bounds the calls of tools, ``window``
    the messages that are sent.
    """
    own = context if context is not None else await inputs.pull(CONTEXT)
    if not isinstance(own, Conversation):
        raise NodeError("there is no context to ask in", 'connect its input "context"', "validation")
    message = to_text(await _message(flow, data_in, inputs))
    offered = await inputs.pull(TOOLS) if inputs.has(TOOLS) else None
    badge = flow.conversation.add_badge(type="info", label="Calling LLM", icon="🤖")
    try:
        answer = await _answer(flow, own, message, offered or [], config)
    except BaseException:
        flow.conversation.update_badge(badge, status="error")
        raise
    flow.conversation.update_badge(badge, status="success")
    turn = [{"role": "user", "content": message}, {"role": "assistant", "content": answer}]
    return {"context": flow.context.add_messages(own, turn), "data": answer, "status": "success"}


async def _message(flow: Flow, data_in: Any, inputs: Inputs) -> Any:
    if data_in is not None:
        return data_in
    if inputs.has(DATA):
        return await inputs.pull(DATA)
    return await flow.wait_for_user_input()


async def _answer(flow: Flow, context: Conversation, message: str, offered: list[Any], config: Config) -> str:
    from pflow.agents.model import converse, takes_tools
    from pflow.agents.question import Question
    from pflow.agents.tools import Toolbox
    from pflow.llm.interface import Reply, Request
    from pflow.nodes.models import ask_model

    step = flow.step
    name = to_text(config.get("model") or context.model)
    box = Toolbox(step, Voice(flow.node_id, lambda kind, data: step.emit(kind, **data)), _kinds(flow, offered))

    async def one(request: Request, published: bool) -> Reply:
        flow.check_cancelled()
        return await ask_model(step, name, request, "conversation:chunk" if published else "agent:thinking")

    window = config.get("window")
    limit = int(window) if isinstance(window, (int, float)) and window > 0 else len(context)
    said = tuple({"role": one.role, "content": one.content} for one in context.window(limit))
    question = Question(
        agent=flow.node_id,
        instructions=context.system_instructions,
        messages=(*said, {"role": "user", "content": message}),
    )
    knows = not box.tools or await asyncio.to_thread(takes_tools, name)
    return await converse(step, one, question, box, knows, int(config.get("maxSteps") or STEPS))


# ── tools ──


@node(
    "tools",
    version="1",
    effect="quiet",
    outputs=("tools", "context", "status"),
    ports=lambda config: (("context", "tools"), ("tools", "context")),
)
async def tools(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Offer tools: ``tools`` lists node types, or is ``auto`` for those that only read, and those of MCP servers."""
    wanted = config.get("tools", "auto")
    names = _automatic(flow, config) if wanted == "auto" else [to_text(one) for one in wanted or ()]
    found: dict[str, NodeType] = {}
    unknown = []
    for name in names:
        kind = _tool(flow, name)
        if kind is None:
            unknown.append(name)
        else:
            found[kind.name] = kind
    if unknown:
        flow.log.warn(f"these tools are not known here, so they are not offered: {', '.join(unknown)}")
    return {"tools": [described(kind) for kind in found.values()], "context": context, "status": "success"}


def _automatic(flow: Flow, config: Config) -> list[str]:
    plugins = config.get("mcpPlugins") or {}
    servers = [name for name, on in plugins.items() if on] if config.get("mcpEnabled") else []
    offered = [kind.name for kind in flow.step.node_types() if kind.name.startswith("mcp-")] if servers else []
    return [*AUTO, *(name for name in offered if any(name.startswith(f"mcp-{server}-") for server in servers))]


def _tool(flow: Flow, name: str) -> NodeType | None:
    try:
        kind = flow.step.node_type(_ELSEWHERE.get(normal(name.replace(".", "")), name))
    except UsageError:
        return None
    return None if kind.composite or kind.autonomous else kind


def _kinds(flow: Flow, offered: list[Any]) -> list[NodeType]:
    names = [one.get("name") if isinstance(one, Mapping) else one for one in offered]
    return [kind for name in names if (kind := _tool(flow, to_text(name))) is not None]


# ── intents ──


def intents(config: Config) -> dict[str, str]:
    """The intents of a router, with what they mean."""
    given = config.get("routes") or config.get("intents") or {}
    if isinstance(given, Mapping):
        return {to_text(name): to_text(meaning or "") for name, meaning in given.items()}
    made: dict[str, str] = {}
    for one in given:
        name = one.get("name") or one.get("id") or one.get("intent") if isinstance(one, Mapping) else one
        made[to_text(name or "")] = to_text(one.get("description") or "") if isinstance(one, Mapping) else ""
    return made


def _router_ports(config: Config) -> tuple[tuple[str, ...], tuple[str, ...]]:
    dynamic = [f"{name}-{kind}" for name in intents(config) for kind in (CONTEXT, DATA)]
    return ("context", "data"), ("context", "data", *dynamic)


@node("intentRouter", version="1", effect="quiet", ports=_router_ports)
async def intent_router(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Config) -> Output:
    """Have a model say which of its ``routes`` a message means, and go on there: {intent}-context, {intent}-data."""
    from pflow.llm.interface import Request, Turn
    from pflow.nodes.models import ask_model

    routes = intents(config)
    if not routes:
        raise NodeError("the router has no routes", '"config": {"routes": {"plan": "wants a plan", …}}', "validation")
    own = context if context is not None else await inputs.pull(CONTEXT) if inputs.has(CONTEXT) else None
    message = data_in if data_in is not None else await inputs.pull(DATA)
    listed = "\n".join(f"- {name}: {meaning}" if meaning else f"- {name}" for name, meaning in routes.items())
    system = f'Which of these intents does the message have?\n{listed}\nAnswer with JSON: {{"intent": "…"}}'
    schema = {"type": "object", "properties": {"intent": {"enum": list(routes)}}, "required": ["intent"]}
    model = to_text(config.get("model") or (own.model if isinstance(own, Conversation) else ""))
    request = Request((Turn("system", system), Turn("user", to_text(message))), temperature=0, schema=schema)
    reply = await ask_model(flow.step, model, request, "agent:thinking")
    intent = _intent(reply.text, routes)
    if intent is None:
        fallback = to_text(config.get("fallback") or config.get("defaultIntent") or "")
        if fallback not in routes:
            raise NodeError(
                f'the model answered "{reply.text.strip()[:80]}", which is none of the intents',
                f'the intents: {", ".join(routes)}; name one as "fallback" for what is none of them',
                "routing",
            )
        flow.log.warn(f'the model answered "{reply.text.strip()[:80]}", which is no intent: taken as "{fallback}"')
        intent = fallback
    flow.conversation.add_badge(type="info", label=f"Intent: {intent}")
    return {f"{intent}-{CONTEXT}": own, f"{intent}-{DATA}": message, "status": "success"}


def _intent(text: str, routes: Mapping[str, str]) -> str | None:
    from pflow.documents.json_in_text import objects

    said = next((str(one["intent"]) for one in objects(text) if "intent" in one), text)
    return next((name for name in routes if name.casefold() == said.strip().strip('"').casefold()), None)

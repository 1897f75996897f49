"""What an autonomous node is handed: the flow it talks to, and its inputs, which are live."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Any

from pflow.errors import NodeError
from pflow.llm.budget import means
from pflow.model import conversation
from pflow.model.conversation import FIELDS, Conversation, Message, Mode
from pflow.model.graph import CONTEXT, DATA, TOOLS
from pflow.nodes.step import StepContext, Stream

_ALIASES = {
    "context": CONTEXT, "contextin": CONTEXT, "contextout": CONTEXT, "ctx": CONTEXT,
    "data": DATA, "datain": DATA, "dataout": DATA, "value": DATA, "output": DATA,
    "tools": TOOLS, "toolsin": TOOLS, "toolsout": TOOLS,
}  # fmt: skip
_SEPARATORS = re.compile(r"[\s_.-]+")


@cache
def handle(name: str | None) -> str:
    """A port's canonical name, for any of its aliases; one that is omitted is ``context``."""
    return _ALIASES.get(_SEPARATORS.sub("", name).lower(), name) if name else CONTEXT


class Inputs:
    """A node's inputs: pushed ones are there, others are pulled when the node wants them."""

    def __init__(self, stream: Stream | None, given: Mapping[str, Any], followed: Callable[[Any], Any]) -> None:
        self._stream = stream
        self._given = given
        self._followed = followed  # what becomes of a context on its way to the node

    def has(self, name: str) -> bool:
        """Whether an input was pushed, or can be pulled."""
        name = handle(name)
        if self._stream is None:
            return self._given.get(name) is not None
        return self._stream.ports.get(name) == 1 or name in self._stream.values()

    async def pull(self, name: str) -> Any:
        """The value of an input: the one that was pushed, or what its source makes of it now."""
        name = handle(name)
        if self._stream is not None:
            return self._followed(await self._stream.pull(name))
        if name not in self._given:
            raise NodeError(f'there is no input "{name}"', f"given: {', '.join(self._given) or 'nothing'}", "pull")
        return self._followed(self._given[name])


class Contexts:
    """Makes contexts and changes them, which makes others: no context is ever changed in place."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._made = 0

    def create(
        self, provider: str = "", model: str = "", system_instructions: str = "", context_type: str = "main"
    ) -> Conversation:
        """A new context."""
        if context_type == "main":
            context_id = "main"
        else:
            context_id = f"{self._flow.visit}.{self._made}" if self._made else self._flow.visit
            self._made += 1
        return conversation.new(
            context_id,
            context_type=context_type,
            provider=provider,
            model=model,
            system_instructions=system_instructions,
        )

    def update(self, context: Conversation, updates: Mapping[str, Any] | None = None, **more: Any) -> Conversation:
        """A context with other fields."""
        given = {**(updates or {}), **more}
        history = given.pop("message_history", None)
        unknown = given.keys() - set(FIELDS)
        if unknown:
            raise NodeError(f"a context has no {', '.join(sorted(unknown))}", f"it has {', '.join(FIELDS)}")
        made = context.setting(**{name: str(value) for name, value in given.items()})
        return made if history is None else made.with_history(history)

    def add_message(
        self, context: Conversation, role: str, content: str, options: Mapping[str, Any] | None = None, **more: Any
    ) -> Conversation:
        """A context with one more message; an ``id`` that is there already takes that message's place."""
        return context.adding([{"role": role, "content": content, **(options or {}), **more}])

    def add_messages(self, context: Conversation, messages: Iterable[Mapping[str, Any]]) -> Conversation:
        """A context with more messages."""
        return context.adding(messages)

    def inject_pair(
        self,
        context: Conversation,
        user_message: str,
        assistant_message: str,
        options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Conversation:
        """A context with a question and its answer; injected again, they are updated where they are."""
        given = {"mode": "prepend", "pinned": False, "priority": conversation.PRIORITY, **(options or {}), **more}
        mode: Mode = "append" if given["mode"] == "append" else "prepend"
        prefix = given.get("id_prefix") or self._flow.node_id
        kept = {"pinned": bool(given["pinned"]), "priority": int(given["priority"])}
        pair = [
            {"id": f"{prefix}-user", "role": "user", "content": user_message, **kept},
            {"id": f"{prefix}-assistant", "role": "assistant", "content": assistant_message, **kept},
        ]
        return context.adding(pair, mode)

    def remove_messages(self, context: Conversation, message_ids: Iterable[str]) -> Conversation:
        """A context without these messages."""
        return context.without(message_ids)

    def update_message(
        self, context: Conversation, message_id: str, updates: Mapping[str, Any] | None = None, **more: Any
    ) -> Conversation:
        """A context with one of its messages changed."""
        at = context.find(message_id)
        if at < 0:
            raise NodeError(f'there is no message "{message_id}"', "see context.message_history for the ids")
        old = context.message_history[at]
        given = {**(updates or {}), **more}
        new = Message(
            old.id,
            old.role,
            str(given.get("content", old.content)),
            bool(given.get("pinned", old.pinned)),
            int(given.get("priority", old.priority)),
        )
        return context if new == old else context.splicing(at, 1, [new])


class FlowStore:
    """Values that every node of the flow can read and write; they survive the run, and a restart of the flow."""

    def __init__(self, step: StepContext) -> None:
        self._step = step

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        return self._step.stored("values").get(key, default)

    def set(self, key: str, value: Any) -> None:
        """Keep a value; it is on record when this returns."""
        self._step.store("values", key, value)

    def delete(self, key: str) -> None:
        """Forget a value."""
        self._step.store("values", key, None)

    def keys(self) -> list[str]:
        """The keys that have a value."""
        return sorted(self._step.stored("values"))

    def get_node_cache(self, node_id: str) -> Any:
        """What a node has cached."""
        return self._step.stored("cache").get(node_id)

    def set_node_cache(self, node_id: str, value: Any) -> None:
        """Cache something for a node."""
        self._step.store("cache", node_id, value)

    def clear_node_cache(self, node_id: str) -> None:
        """Forget what a node has cached."""
        self._step.store("cache", node_id, None)

    def get_session(self) -> dict[str, str]:
        """The provider and model that main contexts follow, where somebody chose them for this run."""
        return {name: str(value) for name, value in self._step.stored("session").items()}

    def set_session(self, **choice: str) -> None:
        """Have main contexts follow another provider, or another model, from here on."""
        for name in choice:
            if name not in ("provider", "model"):
                raise NodeError(f'a session has no "{name}"', "it has provider and model")
            self._step.store("session", name, choice[name])

    def get_portal(self, portal_id: str) -> Any:
        """What was last put into a portal."""
        return self._step.stored("portals").get(portal_id)

    def set_portal(self, portal_id: str, values: Mapping[str, Any]) -> None:
        """Put something into a portal."""
        self._step.store("portals", portal_id, dict(values))


class Talk:
    """What the person who watches the conversation sees."""

    def __init__(self, step: StepContext) -> None:
        self._step = step
        self._badges = 0

    def stream_chunk(self, chunk: str) -> None:
        """Show a piece of an answer."""
        self._step.emit("conversation:chunk", text=chunk)

    def add_badge(self, badge: Mapping[str, Any] | None = None, **more: Any) -> str:
        """Show a badge; returns its id."""
        self._badges += 1
        badge_id = f"{self._step.visit}-badge-{self._badges}"
        self._step.emit("conversation:badge", badge=badge_id, **_words({**(badge or {}), **more}))
        return badge_id

    def update_badge(self, badge_id: str, updates: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Change a badge."""
        self._step.emit("conversation:badge:update", badge=badge_id, **_words({**(updates or {}), **more}))


class FlowLog:
    """Writes to the run's feed."""

    def __init__(self, step: StepContext) -> None:
        self._step = step

    def debug(self, message: str, data: Any = None) -> None:
        """Note a detail."""
        self._write("debug", message, data)

    def info(self, message: str, data: Any = None) -> None:
        """Note something of interest."""
        self._write("info", message, data)

    def warn(self, message: str, data: Any = None) -> None:
        """Note something that may be wrong."""
        self._write("warn", message, data)

    def error(self, message: str, data: Any = None) -> None:
        """Note something that is wrong."""
        self._write("error", message, data)

    def _write(self, level: str, message: str, data: Any) -> None:
        extra = {} if data is None else {"data": data}
        self._step.emit("log", level=level, message=message, **extra)


class Tools:
    """Node types as tools."""

    def __init__(self, step: StepContext) -> None:
        self._step = step

    async def execute(self, tool_name: str, args: Mapping[str, Any] | None = None) -> Any:
        """Have a tool called; what it returns is its outputs."""
        return await self._step.call(tool_name, **dict(args or {}))

    def list(self) -> list[dict[str, Any]]:
        """Every tool: name, description and the JSON schema of its parameters."""
        from pflow.nodes.schema import described

        return [described(kind) for kind in self._step.node_types() if not kind.composite]


class Spending:
    """What calls of models used."""

    def __init__(self, step: StepContext) -> None:
        self._step = step

    def report(self, usage: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Report a call: provider, model, input_tokens, output_tokens; what it cost is found out here."""
        from pflow.llm.interface import Usage
        from pflow.llm.prices import priced
        from pflow.nodes.models import counted

        given = {**(usage or {}), **more}
        made = Usage(str(given.get("model", "")), int(given.get("input_tokens", 0)), int(given.get("output_tokens", 0)))
        self._step.usage(**counted(priced(made)))


class Signal:
    """Tells whether the run wants this node to stop."""

    def __init__(self, step: StepContext, task: asyncio.Task[Any] | None) -> None:
        self._step = step
        self._task = task

    @property
    def aborted(self) -> bool:
        """Whether it does."""
        return self._step.cancelled or (self._task is not None and self._task.cancelling() > 0)


class Flow:
    """The engine, as an autonomous node sees it."""

    def __init__(self, step: StepContext, config: Mapping[str, Any]) -> None:
        self.step = step
        self.node_id = step.node_id
        self.request_id = step.run_id
        self.visit = step.visit
        self._config = config
        self._task = asyncio.current_task()

    # Made when they are first used: most nodes need few of them.

    @cached_property
    def signal(self) -> Signal:
        """Whether the run wants this node to stop."""
        return Signal(self.step, self._task)

    @cached_property
    def store(self) -> FlowStore:
        """Values that all nodes share, and that survive the run."""
        return FlowStore(self.step)

    @cached_property
    def context(self) -> Contexts:
        """Makes contexts, and others from them."""
        return Contexts(self)

    @cached_property
    def conversation(self) -> Talk:
        """What the person who watches sees."""
        return Talk(self.step)

    @cached_property
    def log(self) -> FlowLog:
        """The run's log."""
        return FlowLog(self.step)

    @cached_property
    def tools(self) -> Tools:
        """Node types as tools."""
        return Tools(self.step)

    @cached_property
    def usage(self) -> Spending:
        """What calls of models used."""
        return Spending(self.step)

    def check_cancelled(self) -> None:
        """Raise if the run wants this node to stop."""
        if self.signal.aborted:
            raise asyncio.CancelledError

    async def wait_for_user_input(self) -> str:
        """What the user says next; the run waits for it as long as it takes."""
        answer = await self.step.ask(str(self._config.get("prompt") or ""))
        return answer if isinstance(answer, str) else str(answer)

    def session(self) -> dict[str, str]:
        """The provider and model that main contexts follow."""
        own = self.store.get_session()
        provider, model = own.get("provider", ""), own.get("model", "")
        if not model:
            set_ = means()
            model = set_.default if set_ is not None else _default()
        return {"provider": provider, "model": model}

    def followed(self, context: Any) -> Any:
        """A context as a node gets it: a main one has the session's provider and model."""
        if isinstance(context, dict) and ("message_history" in context or "context_id" in context):
            context = conversation.from_data(context)
        if not isinstance(context, Conversation) or context.context_type != "main":
            return context
        session = self.session()
        return context.setting(**session) if session["model"] else context

    def main(self, newest: Conversation | None) -> Conversation:
        """The main context, which begins empty."""
        made: Conversation = self.followed(newest or self.context.create())
        return made


def _default() -> str:
    from pflow.nodes.models import run_means

    return run_means().default


def _words(badge: Mapping[str, Any]) -> dict[str, Any]:
    """A badge's fields; those that events have already go by another name."""
    return {"badgeType" if key == "type" else key: value for key, value in badge.items() if key != "taskId"}

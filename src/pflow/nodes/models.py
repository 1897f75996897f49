"""Models for node code: a call in the name of a step, with its text, its retries and its usage on the feed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pflow.model.conversation import Conversation
from pflow.nodes.step import StepContext

if TYPE_CHECKING:
    from pflow.llm.budget import Means
    from pflow.llm.interface import Reply, Request, RetryNotice, Usage


async def ask_model(step: StepContext, model: str, request: Request, said: str = "llm:text", **data: Any) -> Reply:
    """The model's reply; each piece of it is an event of the kind ``said``, which also carries ``data``."""
    from pflow.llm.call import call

    def on_text(piece: str) -> None:
        step.emit(said, text=piece, **data)

    def on_retry(retry: RetryNotice) -> None:
        step.emit("llm:retry", attempt=retry.attempt, reason=retry.reason, delay=retry.delay, **data)

    means = run_means()
    reply = await call(model, request, means, on_text, on_retry)
    step.usage(**counted(reply.usage))
    if means.budget is not None and reply.usage.cost_usd is None:
        step.log.warn(f'what "{reply.usage.model}" costs is not known, so the budget does not count it')
    return reply


def counted(usage: Usage) -> dict[str, Any]:
    """A call's usage in numbers that add up; one without a known price is counted as such."""
    used: dict[str, Any] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "model_calls": 1}
    if usage.cost_usd is None:
        return {**used, "unpriced_calls": 1, "model": usage.model}
    return {**used, "cost_usd": usage.cost_usd, "model": usage.model}


def run_means() -> Means:
    """The run's means; where nobody has set any, those of the user's settings."""
    from pflow.llm.budget import Means, means

    set_ = means()
    if set_ is not None:
        return set_
    from pflow import settings

    own = settings.load()
    return Means(own.model.default, own.env)


def default_model() -> str:
    """The model that is asked where none is named; that of the package llm is read, and the package not imported."""
    import os
    from pathlib import Path

    own = run_means().default
    if own:
        return own
    folder = os.environ.get("LLM_USER_PATH")
    try:
        if not folder:
            from click import get_app_dir

            folder = get_app_dir("io.datasette.llm")
        return (Path(folder) / "default_model.txt").read_text(encoding="utf-8").strip()
    except (ImportError, OSError):
        return ""


class ChatStream:
    """A model's answer in pieces, for node code that handles them itself; ``usage`` is known when it has ended."""

    def __init__(self, model: str, request: Request) -> None:
        self._model = model
        self._request = request
        self.usage: Usage | None = None
        self.text = ""

    async def __aiter__(self) -> AsyncIterator[str]:
        import asyncio

        from pflow.llm.call import call

        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        work = asyncio.ensure_future(call(self._model, self._request, run_means(), pieces.put_nowait))
        work.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                yield piece
            reply = await work
            self.usage, self.text = reply.usage, reply.text
        finally:
            work.cancel()


def chat_stream(context: Conversation, message: str, tools: Iterable[Mapping[str, Any]] | None = None) -> ChatStream:
    """Ask the model of a context: ``async for piece in chat_stream(context, message): …``."""
    from pflow.llm.interface import Request, Role, Tool, Turn

    roles: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
    said = [Turn(roles[one.role], one.content) for one in context.message_history]
    if context.system_instructions:
        said.insert(0, Turn("system", context.system_instructions))
    offered = tuple(Tool(one["name"], one.get("description", ""), one.get("parameters", {})) for one in tools or ())
    return ChatStream(context.model, Request((*said, Turn("user", message)), tools=offered))

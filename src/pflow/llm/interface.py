"""What the engine asks of a model: messages in, text in pieces, a reply with its usage.

model = find("gpt-…")                            who answers to this name
reply = await model.ask(request, on_text)        cancelling really stops it
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

Role = Literal["system", "user", "assistant", "tool"]
OnText = Callable[[str], None]  # called with each piece of the answer as it arrives


class RetryNotice(msgspec.Struct, frozen=True):
    """A call that failed before anything of its answer arrived, and is about to be repeated."""

    attempt: int  # the one that failed, counted from 1
    reason: str
    delay: float  # seconds until the next


OnRetry = Callable[[RetryNotice], None]


class Attachment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that goes with a message."""

    type: str  # a MIME type
    path: str = ""
    data: bytes = b""


class Tool(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something a model may ask to have done."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}  # a JSON schema


class ToolCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's wish to have a tool called."""

    id: str
    name: str
    arguments: dict[str, Any] = {}


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a conversation."""

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""  # of the call that a tool's message answers
    attachments: tuple[Attachment, ...] = ()


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call of a model."""

    messages: tuple[Turn, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    schema: dict[str, Any] | None = None  # the answer is to be JSON of this schema
    tools: tuple[Tool, ...] = ()
    options: dict[str, Any] = {}  # what only some model understands


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call used; a price that nobody knows is None, not 0."""

    model: str = ""
    input_tokens: int = 0  # with the cached ones
    output_tokens: int = 0
    cached_tokens: int = 0  # of the input, read from the provider's cache
    cost_usd: float | None = None


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's answer."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish: str = ""  # why it ended: stop, length, tool_calls, …


class Model(Protocol):
    """Whoever answers."""

    name: str
    takes_tools: bool

    async def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """The answer; raises ``ModelError`` (kinds: model, timeout, rate_limit, refused, auth)."""

    def price(self, usage: Usage) -> float | None:
        """What a call of this usage costs, in USD; None where nobody knows."""

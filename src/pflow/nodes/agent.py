"""Agents written in Python: a name and an ``execute`` function.

An agent node is task-like: it ends when ``execute`` returns, whatever its provider keeps open. One that lives on by
design says ``interactive=True``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec


class Voice:
    """Where an agent speaks: its events carry its name."""

    def __init__(self, agent: str, emit: Callable[[str, dict[str, Any]], None]) -> None:
        self._agent = agent
        self._emit = emit

    def emit(self, kind: str, **data: Any) -> None:
        """Publish an event, such as ``agent:text`` or ``agent:tool:start``."""
        self._emit(kind, {"agent": self._agent, **data})


class Inbox:
    """Messages to an agent at work; iterating ends when the inbox is closed."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self._closed = object()

    def send(self, message: Any) -> None:
        """Leave a message."""
        self._messages.put_nowait(message)

    def close(self) -> None:
        """Say that nothing more will come."""
        self._messages.put_nowait(self._closed)

    def __aiter__(self) -> Inbox:
        return self

    async def __anext__(self) -> Any:
        message = await self._messages.get()
        if message is self._closed:
            raise StopAsyncIteration
        return message


class AgentContext(msgspec.Struct, frozen=True):
    """What an agent's ``execute`` is handed beside its input."""

    hub: Voice
    inbox: Inbox
    run_id: str


class AgentDefinition(msgspec.Struct, frozen=True):
    """An agent: ``await execute(input, ctx)`` does its work and returns its answer."""

    name: str
    execute: Callable[[Any, AgentContext], Awaitable[Any]]
    description: str = ""
    interactive: bool = False  # lives on after its answer, by design

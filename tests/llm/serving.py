"""A real chat completions server on the loopback interface, with answers made to order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from pflow.llm.find import find
from pflow.llm.interface import Reply, Request, RetryNotice, Turn
from tests.builtins.server import Handler, Server

PATH = "/v1/chat/completions"
Reaction = Callable[[Handler], None]


class ChatServer(Server):
    """Answers each request with the next turn; the last one stays."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[Reaction] = []
        self.routes[PATH] = self._next

    def _next(self, handler: Handler) -> None:
        turn = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        turn(handler)

    @property
    def model(self) -> str:
        return f"{self.url}/v1#small"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.body) for request in self.requests]


def question(text: str = "hello", **rest: Any) -> Request:
    return Request((Turn("user", text),), **rest)


class Asked:
    """One call: what was heard on the way, and the reply."""

    def __init__(self, name: str, request: Request | None = None, env: dict[str, str] | None = None) -> None:
        self.pieces: list[str] = []
        self.retries: list[RetryNotice] = []
        model = find(name, env=env, on_retry=self.retries.append)
        self.error: Exception | None = None
        self.reply = Reply()
        try:
            self.reply = asyncio.run(model.ask(request or question(), self.pieces.append))
        except Exception as error:  # noqa: BLE001 - for the test to look at
            self.error = error


def chunk(text: str | None = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    said = delta if text is None else {"content": text, **delta}
    return {"model": "small-1", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


USED = {"model": "small-1", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def begin(handler: Handler, type_: str = "text/event-stream") -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", type_)
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.close_connection = True


def send(handler: Handler, *data: Any) -> None:
    """Server-sent events."""
    for item in data:
        text = item if isinstance(item, str) else json.dumps(item)
        handler.wfile.write(f"data: {text}\n\n".encode())
    handler.wfile.flush()


def streams(*data: Any, done: bool = True) -> Reaction:
    """An answer of these chunks; not ``done``: the connection is closed after them."""

    def turn(handler: Handler) -> None:
        begin(handler)
        send(handler, *data, *(["[DONE]"] if done else []))

    return turn


def says(*pieces: str) -> Reaction:
    return streams(*[chunk(piece) for piece in pieces], chunk(finish="stop"), USED)


def refuses(status: int, message: str = "", code: str = "", **headers: str) -> Reaction:
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    return lambda handler: handler.answer(status, body, "application/json", **headers)

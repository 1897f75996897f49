"""Reading an OpenAI-compatible answer: a stream of events or one document, piece by piece, within limits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import msgspec

from pflow.llm.errors import ModelError, excerpt
from pflow.llm.interface import Reply, ToolCall, Usage

LARGEST = 10_000_000  # characters of an answer
_LINE = LARGEST + 1_000_000  # bytes of one line, or of a document: all of an answer may come in one
DONE = "[DONE]"


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Said(msgspec.Struct):
    content: Any = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Said | None = None  # in a stream
    message: _Said | None = None  # in a document
    finish_reason: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Tokens(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Chunk(msgspec.Struct):
    """What we take from a chunk of a stream or from a whole document; everything else is passed over."""

    choices: list[_Choice] | None = None
    usage: _Tokens | None = None
    model: str | None = None
    error: Any = None


class _Wish:
    """A tool call, as far as it has arrived."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.arguments: dict[str, Any] | None = None  # where a server sends them whole


class Completion:
    """An answer, as far as it has arrived."""

    def __init__(self, model: str) -> None:
        self.begun = False  # something of it has arrived, so asking again would not be the same
        self.finish = ""
        self._model = model
        self._size = 0
        self._pieces: list[str] = []
        self._refusal: list[str] = []
        self._wishes: dict[int, _Wish] = {}
        self._usage = _Tokens()

    def take(self, data: str | bytes) -> str:
        """Take a chunk in; returns its text."""
        try:
            chunk = msgspec.json.decode(data, type=_Chunk, strict=False)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            details: dict[str, object] = {"received": excerpt(data, 2000)}
            text = f"the server sent what is no answer ({error}): {excerpt(data)}"
            raise ModelError(text, "is it an OpenAI-compatible API?", details=details) from None
        if chunk.error:
            raise ModelError(f"the server failed: {excerpt(message_of(chunk.error))}")
        self._usage = chunk.usage or self._usage
        self._model = chunk.model or self._model
        texts = [self._said(choice) for choice in (chunk.choices or [])[:1]]
        return "".join(texts)

    def _said(self, choice: _Choice) -> str:
        said = choice.delta or choice.message or _Said()
        self.finish = choice.finish_reason or self.finish
        text = said.content if isinstance(said.content, str) else ""
        self._pieces.append(text)
        self._refusal.append(said.refusal or "")
        self._size += len(text)
        for call in said.tool_calls or ():
            self._wish(call)
        if self._size > LARGEST:
            raise _too_long()
        self.begun = bool(self.begun or text or said.refusal or said.tool_calls)
        return text

    def _wish(self, call: _Call) -> None:
        latest = max(self._wishes, default=-1)
        index = call.index if call.index is not None else latest + bool(call.id) if self._wishes else 0
        wish = self._wishes.setdefault(index, _Wish())
        wish.id = call.id or wish.id
        function = call.function or _Function()
        wish.name = function.name or wish.name
        if isinstance(function.arguments, dict):
            wish.arguments = function.arguments
        elif function.arguments:
            wish.pieces.append(function.arguments)
            self._size += len(function.arguments)

    def reply(self) -> Reply:
        """The whole answer; raises ``ModelError`` where it is none."""
        refusal = "".join(self._refusal)
        if refusal or self.finish == "content_filter":
            text = excerpt(refusal) if refusal else "its provider's filter stopped the answer"
            raise ModelError(f"the model refused: {text}", "put it differently", "refused")
        if not self.begun and not self.finish:
            raise ModelError("the server sent an empty answer", "is it an OpenAI-compatible API?")
        details = self._usage.prompt_tokens_details or _Details()
        usage = Usage(
            self._model,
            self._usage.prompt_tokens or 0,
            self._usage.completion_tokens or 0,
            details.cached_tokens or 0,
        )
        calls = tuple(_called(wish, n) for n, (_, wish) in enumerate(sorted(self._wishes.items())))
        return Reply("".join(self._pieces), calls, usage, self.finish)


def _called(wish: _Wish, n: int) -> ToolCall:
    text = "".join(wish.pieces)
    try:
        given = wish.arguments if wish.arguments is not None else msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ModelError(
            f'the arguments of the tool "{wish.name}" are no JSON object ({error}): {excerpt(text)}'
        ) from None
    return ToolCall(wish.id or f"call_{n}", wish.name, given)


async def events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[str]:
    """The data of each server-sent event."""
    data: list[str] = []
    async for line in _lines(chunks):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
    if data:
        yield "\n".join(data)


async def document(chunks: AsyncIterator[bytes]) -> bytes:
    """All of a body."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > _LINE:
            raise _too_long()
    return bytes(body)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Lines of a stream, each of them put together once, however many pieces it came in."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join([*parts, line]).decode("utf-8", "replace").rstrip("\r")
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > _LINE:
            raise _too_long()
    yield b"".join(parts).decode("utf-8", "replace").rstrip("\r")


def message_of(error: Any) -> str:
    """What a server says about an error, in whichever of the usual forms."""
    if isinstance(error, dict):
        inner = error.get("error") or error.get("message") or error.get("detail")
        return message_of(inner) if inner else str(error)
    return str(error)


def _too_long() -> ModelError:
    return ModelError(f"the answer is over {LARGEST:,} characters", "set max_tokens, or ask for less")

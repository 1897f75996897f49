"""A model that follows a script, for tests and demonstrations: ``script:answers.yaml``.

    - Hello there                       the next answer; a text is streamed word by word
    - json: {"city": "Rome"}            the same, as JSON
    - match: weather                    answers every call whose last message has this in it
      pieces: ["It is ", "sunny."]
    - tool_calls: [{name: look, arguments: {at: sky}}]
      usage: {input_tokens: 9, output_tokens: 4, cost_usd: 0.002}
    - error: rate_limit                 fails: rate_limit, dropped, timeout, refused, auth or model
      retry_after: 0
    - pieces: ["It is "]
      error: dropped                    in the middle of the answer

Answers without ``match`` are given in order, once each. ``{answers: [...], calls: calls.jsonl}`` also writes each call
to a file. The files belong to tests: a script is read once for as long as it looks the same.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from pflow.documents.source import load
from pflow.errors import NodeError, WorkflowError
from pflow.llm.errors import ModelError, excerpt
from pflow.llm.interface import OnRetry, OnText, Reply, Request, ToolCall, Usage
from pflow.llm.repeat import patiently

_HINT = "see the examples in pflow.llm.script"


class ScriptLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer of a script."""

    text: str = ""
    json: Any = msgspec.UNSET
    pieces: tuple[str, ...] = ()
    match: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    usage: Usage | None = None
    finish: str = "stop"
    error: str = ""
    retry_after: float = 0.0

    def spoken(self) -> tuple[str, ...]:
        """The answer in pieces."""
        if self.pieces:
            return self.pieces
        text = self.text if self.json is msgspec.UNSET else msgspec.json.encode(self.json).decode()
        return tuple(re.findall(r"\s*\S+\s*$|\s*\S+", text))


class Script:
    """The answers of one file, and the calls that were made."""

    def __init__(self, lines: tuple[ScriptLine, ...], record: Path | None = None) -> None:
        self.calls: list[Request] = []
        self._matching = [line for line in lines if line.match]
        self._next = iter([line for line in lines if not line.match])
        self._record = record

    def answer(self, request: Request) -> ScriptLine:
        """The line for a call."""
        self.calls.append(request)
        if self._record is not None:
            with self._record.open("ab") as file:
                file.write(msgspec.json.encode(request) + b"\n")
        asked = request.messages[-1].content if request.messages else ""
        for line in self._matching:
            if line.match.casefold() in asked.casefold():
                return line
        found = next(self._next, None)
        if found is None:
            raise ModelError(f"the script has no answer left for: {excerpt(asked)}", _HINT)
        return found


class Scripted:
    """The model that reads from a script."""

    takes_tools = True

    def __init__(self, name: str, script: Script, on_retry: OnRetry | None = None) -> None:
        self.name = name
        self.script = script
        self._on_retry = on_retry

    def price(self, usage: Usage) -> float | None:
        """What the script says; before a call, nobody knows."""
        return usage.cost_usd

    async def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """The script's answer."""
        return await patiently(lambda: self._once(request, on_text), self._on_retry)

    async def _once(self, request: Request, on_text: OnText | None) -> Reply:
        line = self.script.answer(request)
        pieces = line.spoken()
        for piece in pieces:
            if on_text is not None:
                on_text(piece)
        if line.error:
            raise _failure(line, begun=bool(pieces))
        text = "".join(pieces)
        calls = tuple(
            ToolCall(str(call.get("id", f"call_{n}")), call["name"], call.get("arguments", {}))
            for n, call in enumerate(line.tool_calls)
        )
        usage = line.usage or Usage(input_tokens=_words(request), output_tokens=len(text.split()))
        usage = msgspec.structs.replace(usage, model=usage.model or self.name)
        return Reply(text, calls, usage, "tool_calls" if calls else line.finish)


_SCRIPTS: dict[tuple[str, int, int], Script] = {}


def script(path: Path) -> Script:
    """A script from its file; how far it has come is remembered for as long as the file looks the same."""
    try:
        status = path.stat()
        key = (str(path.resolve()), status.st_mtime_ns, status.st_size)
        if key not in _SCRIPTS:
            _SCRIPTS[key] = _read(path)
    except OSError as error:
        raise NodeError(f"the script {path} cannot be read: {error.strerror}", kind="validation") from None
    return _SCRIPTS[key]


def _read(path: Path) -> Script:
    try:
        given = load(path.read_bytes(), str(path)).data
        given = given if isinstance(given, dict) else {"answers": given}
        lines = [{"text": item} if isinstance(item, str) else item for item in given.get("answers") or []]
        record = path.parent / str(given["calls"]) if given.get("calls") else None
        return Script(msgspec.convert(lines, tuple[ScriptLine, ...], strict=False), record)
    except (WorkflowError, msgspec.ValidationError) as error:
        raise NodeError(f"{path} is no script: {excerpt(str(error))}", _HINT, "validation") from None


def _failure(line: ScriptLine, begun: bool) -> ModelError:
    wait = None if begun or line.error not in ("rate_limit", "dropped") else line.retry_after
    if line.error == "dropped":
        where = ", in the middle of the answer" if begun else ""
        return ModelError(f"the connection was closed{where}", wait=wait)
    return ModelError(f"the script says: {line.error}", kind=line.error, wait=wait)


def _words(request: Request) -> int:
    return sum(len(message.content.split()) for message in request.messages)

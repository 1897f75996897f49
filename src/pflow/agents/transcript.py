"""What a coding agent prints while it works, read as events, an answer and its usage.

    claude      a message a line, in the form of its API, and a line ``result`` with the cost
    codex       ``item.*`` for everything it says or does, ``turn.*`` for beginnings and ends
    gemini      ``message`` in pieces, ``tool_use`` and ``tool_result``, ``result`` with what was used
    amplifier   one document at the end, with a trace of its tools

Whatever a newer version adds is passed over; output that is no JSON at all is taken as the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pflow.llm.interface import Usage
from pflow.model.value import json_text
from pflow.nodes.agent import Voice

_SHOWN = 2000  # characters of a tool's result in an event
_EVENTS = 100_000  # of one answer that are published
Event = dict[str, Any]


class Transcript:
    """What an agent has said and done so far."""

    def __init__(self, voice: Voice) -> None:
        self.answer = ""
        self.error = ""
        self.model = ""
        self.cost: float | None = None
        self.read = False  # at least one event was understood
        self._voice = voice
        self._tokens = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}
        self._tools: dict[str, str] = {}  # the names of tools that are at work, by id
        self._told = 0

    def says(self, text: str) -> None:
        """Part of what it has to say."""
        if text:
            self._tell("agent:text", text=text)

    def thinks(self, text: str) -> None:
        """What it says to itself."""
        if text:
            self._tell("agent:thinking", text=text)

    def starts(self, tool: str, id: str, arguments: Any) -> None:
        """A tool of its own is at work."""
        self._tools[id] = tool
        self._tell("agent:tool:start", tool=tool, id=id, arguments=arguments)

    def ends(self, id: str, result: Any, failed: bool = False) -> None:
        """A tool is done."""
        text = result if isinstance(result, str) else json_text(result)
        self._tell(
            "agent:tool:complete",
            tool=self._tools.pop(id, ""),
            id=id,
            **{"error" if failed else "result": text[:_SHOWN]},
        )

    def used(self, taken: Any, made: Any, cached: Any = 0) -> None:
        """Tokens of one turn; ``taken`` counts the cached ones, too."""
        for name, number in zip(self._tokens, (taken, made, cached), strict=True):
            self._tokens[name] += number if isinstance(number, int) else 0

    def usage(self) -> Usage:
        """What all of it used."""
        return Usage(self.model, **self._tokens, cost_usd=self.cost)

    def works(self, id: str) -> bool:
        """Whether a tool is at work."""
        return id in self._tools

    def _tell(self, kind: str, **data: Any) -> None:
        self._told += 1
        if self._told <= _EVENTS:
            self._voice.emit(kind, **data)


def claude(said: Transcript, event: Event) -> None:
    """One line of Claude Code."""
    kind = event.get("type")
    if kind == "system":
        said.model = _text(event.get("model")) or said.model
    elif kind == "assistant":
        inner = event.get("parent_tool_use_id") is not None  # a helper of its own speaks
        for part in _parts(_map(event.get("message")).get("content")):
            _claude_part(said, part, inner)
    elif kind == "user":
        for part in _parts(_map(event.get("message")).get("content")):
            if part.get("type") == "tool_result":
                said.ends(_text(part.get("tool_use_id")), _content(part.get("content")), part.get("is_error") is True)
    elif kind == "result":
        _claude_result(said, event)


def _claude_part(said: Transcript, part: Event, inner: bool) -> None:
    if part.get("type") == "text":
        text = _text(part.get("text"))
        if inner:
            said.thinks(text)
        else:
            said.says(text)
            said.answer = text
    elif part.get("type") == "thinking":
        said.thinks(_text(part.get("thinking")))
    elif part.get("type") == "tool_use":
        said.starts(_text(part.get("name")), _text(part.get("id")), part.get("input"))


def _claude_result(said: Transcript, event: Event) -> None:
    result, how = _text(event.get("result")), _text(event.get("subtype"))
    if event.get("is_error") is True or how.startswith("error"):
        listed = event.get("errors")
        errors = "; ".join(map(str, listed)) if isinstance(listed, list) else ""
        said.error = result or errors or how.replace("_", " ")
    said.answer = result or said.answer
    cost = event.get("total_cost_usd")
    said.cost = float(cost) if isinstance(cost, (int, float)) else said.cost
    used = _map(event.get("usage"))
    cached, kept = _count(used, "cache_read_input_tokens"), _count(used, "cache_creation_input_tokens")
    said.used(_count(used, "input_tokens") + cached + kept, used.get("output_tokens"), cached)


def codex(said: Transcript, event: Event) -> None:
    """One line of Codex."""
    kind, item = event.get("type"), _map(event.get("item"))
    if kind == "item.started":
        _codex_starts(said, item)
    elif kind == "item.completed":
        _codex_ends(said, item)
    elif kind == "turn.completed":
        used = _map(event.get("usage"))
        said.used(used.get("input_tokens"), used.get("output_tokens"), used.get("cached_input_tokens"))
        said.error = ""  # whatever it reported on the way, it got over it
    elif kind in ("turn.failed", "error"):
        said.error = _text(_map(event.get("error")).get("message")) or _text(event.get("message")) or str(kind)


_CODEX_TOOLS: dict[str, Callable[[Event], tuple[str, Any]]] = {
    "command_execution": lambda item: ("shell", {"command": item.get("command")}),
    "mcp_tool_call": lambda item: (f"{item.get('server')}.{item.get('tool')}", item.get("arguments")),
    "web_search": lambda item: ("web_search", {"query": item.get("query")}),
    "file_change": lambda item: ("file_change", {"changes": item.get("changes")}),
}


def _codex_starts(said: Transcript, item: Event) -> None:
    described = _CODEX_TOOLS.get(_text(item.get("type")))
    if described is not None and not said.works(_text(item.get("id"))):
        tool, arguments = described(item)
        said.starts(tool, _text(item.get("id")), arguments)


def _codex_ends(said: Transcript, item: Event) -> None:
    kind, text = item.get("type"), _text(item.get("text"))
    if kind == "agent_message":
        said.answer = text
        said.says(text)
    elif kind == "reasoning":
        said.thinks(text)
    elif kind == "error":
        said.thinks(_text(item.get("message")))
    elif kind in _CODEX_TOOLS:
        _codex_starts(said, item)  # some are told only when they are done
        failed = item.get("status") in ("failed", "declined") or item.get("exit_code") not in (None, 0)
        result = item.get("aggregated_output") or _map(item.get("error")).get("message") or item.get("result")
        said.ends(_text(item.get("id")), result or _text(item.get("status")), failed)


def gemini(said: Transcript, event: Event) -> None:
    """One line of Gemini CLI."""
    kind = event.get("type")
    if kind == "init":
        said.model = _text(event.get("model"))
    elif kind == "message" and event.get("role") == "assistant":
        text = _text(event.get("content"))
        said.answer += text
        said.says(text)
    elif kind == "tool_use":
        said.answer = ""  # what was said before a tool is no answer
        said.starts(_text(event.get("tool_name")), _text(event.get("tool_id")), event.get("parameters"))
    elif kind == "tool_result":
        failed = event.get("status") == "error"
        told = _map(event.get("error")).get("message") if failed else None
        said.ends(_text(event.get("tool_id")), told or _text(event.get("output")), failed)
    elif kind == "error":
        said.thinks(_text(event.get("message")))
    elif kind == "result":
        if event.get("status") == "error":
            said.error = _text(_map(event.get("error")).get("message")) or "it failed"
        used = _map(event.get("stats"))
        said.used(used.get("input_tokens"), used.get("output_tokens"), used.get("cached"))


def document(said: Transcript, data: Event) -> None:
    """A whole answer in one object: Amplifier's form, and that of Gemini CLI where its user asked for it."""
    for n, step in enumerate(_parts(data.get("execution_trace"))):
        result = _map(step.get("result"))
        said.starts(_text(step.get("tool")), f"step_{n}", step.get("arguments"))
        said.ends(f"step_{n}", result or step.get("result"), result.get("success") is False)
    said.model = _text(data.get("model")) or said.model
    said.answer = _text(data.get("response"))
    said.says(said.answer)
    error = data.get("error")
    if error or data.get("status") == "error":
        said.error = _text(error) or _text(_map(error).get("message")) or "it failed"


READERS: dict[str, Callable[[Transcript, Event], None]] = {"claude": claude, "codex": codex, "gemini": gemini}


def _map(value: Any) -> Event:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(used: Event, name: str) -> int:
    number = used.get(name)
    return number if isinstance(number, int) else 0


def _parts(value: Any) -> list[Event]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _content(value: Any) -> Any:
    """A tool's result: a text, or a list of parts whose texts count."""
    texts = [_text(part.get("text")) for part in _parts(value) if part.get("type") == "text"]
    return "\n".join(texts) if texts else value

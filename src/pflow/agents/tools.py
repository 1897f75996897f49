"""Tools: node types that a model may have called for it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pflow.agents.definition import Definition
from pflow.errors import NodeError, UsageError
from pflow.llm.interface import Tool, ToolCall
from pflow.model.value import json_text, plain
from pflow.nodes.agent import Voice
from pflow.nodes.registry import normal
from pflow.nodes.schema import schema_of
from pflow.nodes.step import StepContext
from pflow.nodes.type import NodeType

LARGEST = 50_000  # characters of a result that the model is shown
_SHOWN = 2000  # characters of it in an event
_unfit = re.compile(r"[^A-Za-z0-9_-]")
# What the tools of other programs are called here.
_ELSEWHERE = {
    "bash": "shell",
    "read": "read-file",
    "write": "write-file",
    "webfetch": "fetch_url",
}


class Toolbox:
    """The tools of one answer, by the names that the model knows them by."""

    def __init__(self, step: StepContext, voice: Voice, kinds: Iterable[NodeType]) -> None:
        self._step = step
        self._voice = voice
        self.acted = False  # a tool was called that may have changed something
        self._kinds = {_unfit.sub("_", kind.name)[:64]: kind for kind in kinds}
        self.tools = tuple(
            Tool(name, kind.doc.partition("\n\n")[0], schema_of(kind)) for name, kind in self._kinds.items()
        )

    async def use(self, call: ToolCall) -> str:
        """What a call came to, as the model is told: a failure is an answer, too."""
        self._voice.emit("agent:tool:start", tool=call.name, id=call.id, arguments=call.arguments)
        error = ""
        kind = self._kinds.get(call.name)
        if kind is None:
            error = f'there is no tool "{call.name}"; the tools: {", ".join(self._kinds) or "none"}'
            text = f"Error: {error}"
        else:
            self.acted |= kind.effect_for(call.arguments) == "impure"
            try:
                made = await self._step.call(kind.name, **call.arguments)
                text = json_text(plain(made))
            except NodeError as failed:
                if failed.kind == "budget":
                    raise
                error = str(failed) or type(failed).__name__
                text = _told(failed, error)
            except Exception as failed:  # noqa: BLE001 - a tool is node code: whatever it raises is told to the model
                error = str(failed) or type(failed).__name__
                text = _told(failed, error)
        outcome = {"error": error} if error else {"result": text[:_SHOWN]}
        self._voice.emit("agent:tool:complete", tool=call.name, id=call.id, **outcome)
        return text if len(text) <= LARGEST else f"{text[:LARGEST]}… ({len(text):,} characters, cut off here)"


def _told(error: Exception, message: str) -> str:
    lines = [f"Error: {message}"]
    if hint := getattr(error, "hint", ""):
        lines.append(f"Hint: {hint}")
    details = getattr(error, "details", None)
    if details:
        lines.append(f"Details: {json_text(plain(details))}")
    return "\n".join(lines)


def kinds_for(step: StepContext, definition: Definition) -> list[NodeType]:
    """The node types that an agent may call; a tool that only another program has is left out, and said so."""
    found: dict[str, NodeType] = {}
    for name in definition.tools:
        try:
            kind = _kind(step, name, definition.foreign)
        except UsageError as error:
            if not definition.foreign:
                raise NodeError(
                    f'agent "{definition.name}" wants the tool "{name}": {error.message}', error.hint, "validation"
                ) from None
            step.log.warn(f'agent "{definition.name}": there is no tool "{name}" here, so it goes without')
            continue
        found[kind.name] = kind
    return list(found.values())


def _kind(step: StepContext, name: str, foreign: bool) -> NodeType:
    kind = step.node_type(_ELSEWHERE.get(normal(name), name) if foreign else name)
    if kind.composite:  # its parts would have no places of their own in the journal
        raise UsageError(f'"{kind.name}" runs other nodes, so it cannot be a tool', "make it a node of the workflow")
    return kind

"""Agents that are models: instructions, a question, and tools until there is an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from pflow.agents.definition import Definition
from pflow.agents.question import Question
from pflow.agents.tools import Toolbox, kinds_for
from pflow.documents.json_in_text import objects, value_at
from pflow.errors import NodeError
from pflow.llm.interface import Reply, Request, Tool, ToolCall, Turn
from pflow.model.value import json_text
from pflow.nodes.agent import Voice
from pflow.nodes.step import StepContext

Ask = Callable[[Request, bool], Awaitable[Reply]]  # a request, and whether its text is published as it arrives
_AGAIN = "This is no whole JSON object. Answer again, briefly, with one step and nothing else."
ANSWER = "answer"  # what a model without tool calls chooses when it needs no tool


async def ask(
    step: StepContext, voice: Voice, definition: Definition, question: Question, model: str, timeout: float | None
) -> str:
    """The model's answer."""
    import asyncio

    from pflow.nodes.models import ask_model

    name = model or definition.model
    box = Toolbox(step, voice, kinds_for(step, definition))

    async def one(request: Request, published: bool) -> Reply:
        said = "agent:text" if published else "agent:thinking"
        return await ask_model(step, name, request, said, agent=question.agent)

    knows = not box.tools or await asyncio.to_thread(takes_tools, name)
    try:
        async with asyncio.timeout(timeout) as limit:
            return await converse(step, one, question, box, knows, definition.max_steps)
    except NodeError as error:
        if error.kind == "budget" and box.acted:  # it would begin anew, and do twice what its tools did
            error.details["acted"] = True
        raise
    except TimeoutError:
        if not limit.expired():
            raise
        raise NodeError(
            f'agent "{question.agent}" timed out after {timeout:g} s',
            "raise its timeout, or ask for less",
            "timeout",
            {"reason": "timeout", "agent": question.agent, "timeout": timeout},
        ) from None


def takes_tools(name: str) -> bool:
    """Whether a model can call tools."""
    from pflow.llm.find import find
    from pflow.nodes.models import run_means

    means = run_means()
    return find(name, default=means.default, env=means.env).takes_tools


async def converse(
    step: StepContext, ask: Ask, question: Question, box: Toolbox, takes_tools: bool, max_steps: int
) -> str:
    """Ask, do what the model wants done, and tell it the results, until it answers."""
    messages = _opening(question, () if takes_tools else box.tools)
    request = Request((), tools=box.tools) if takes_tools else Request((), schema=_choice(box.tools))
    broken = False
    for _ in range(max_steps):
        asked = msgspec.structs.replace(request, messages=tuple(messages))
        reply = await ask(asked, takes_tools)
        text, calls = (reply.text, reply.tool_calls) if takes_tools else _chosen(reply, len(messages))
        broken = not calls and not takes_tools and _broken(text)
        if broken:
            messages += [Turn("assistant", reply.text), Turn("user", _AGAIN)]
            continue
        if not calls:
            return _finished(step, question, reply, text)
        results = [(call, await box.use(call)) for call in calls]
        messages += _told(reply, results) if takes_tools else _retold(reply, results)
    what = "gave no whole answer" if broken else "still called tools"
    raise NodeError(
        f'agent "{question.agent}" {what} after {max_steps} steps',
        "give it a stronger model" if broken else "give it a smaller task, or raise max_steps in its definition",
        "agent",
        {"reason": "steps", "agent": question.agent, "steps": max_steps},
    )


def _finished(step: StepContext, question: Question, reply: Reply, text: str) -> str:
    if reply.finish == "length":
        step.log.warn("the answer was cut off: it has as many tokens as it may have")
    if not text.strip():
        raise NodeError(
            f'agent "{question.agent}" answered nothing',
            "say in its instructions, or in the prompt, what to answer with",
            "agent",
            {"reason": "silent", "agent": question.agent},
        )
    return text


def _opening(question: Question, told: tuple[Tool, ...]) -> list[Turn]:
    """The messages before the first answer."""
    system = "\n\n".join(part for part in (question.system(), _manual(told)) if part)
    messages = [Turn("system", system)] if system else []
    if not question.messages:
        return [*messages, Turn("user", question.user())]
    return [*messages, *(Turn(one["role"], one["content"]) for one in question.messages)]


def _told(reply: Reply, results: list[tuple[ToolCall, str]]) -> list[Turn]:
    answers = [Turn("tool", text, tool_call_id=call.id) for call, text in results]
    return [Turn("assistant", reply.text, reply.tool_calls), *answers]


# A model that knows no tool calls is asked for its next step as JSON.


def _manual(tools: tuple[Tool, ...]) -> str:
    if not tools:
        return ""
    listed = [f"- {tool.name}: {tool.description} Arguments: {json_text(tool.parameters)}" for tool in tools]
    return "\n".join(
        [
            f'In each step answer with JSON only: {{"tool": …, "arguments": {{…}}}} to have a tool called, or '
            f'{{"tool": "{ANSWER}", "answer": …}} when you are done. The tools:',
            *listed,
        ]
    )


def _choice(tools: tuple[Tool, ...]) -> dict[str, Any]:
    """The steps that there are: each tool with its own arguments, and the answer."""
    steps = [_step(tool.name, "arguments", _alone(tool.parameters)) for tool in tools]
    return {"anyOf": [*steps, _step(ANSWER, "answer", {"type": "string"})]}


def _step(name: str, key: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, key: schema},
        "required": ["tool", key],
        "additionalProperties": False,
    }


def _alone(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as a part of another; one that refers to parts of its own would look for them in the wrong place."""
    return {"type": "object"} if not schema or '"$ref"' in json_text(schema) else schema


def _broken(text: str) -> bool:
    """Whether this was meant to be a step, and is none: cut off, or no JSON."""
    bare = text.lstrip().removeprefix("```json").lstrip()
    if not bare.startswith("{"):
        return False
    try:
        value_at(bare)
    except ValueError:
        return True
    return False


def _chosen(reply: Reply, n: int) -> tuple[str, tuple[ToolCall, ...]]:
    """What a model that answers in JSON wants; whatever is no choice is its answer."""
    choice = next((one for one in objects(reply.text) if "tool" in one), None)
    if choice is None:
        return reply.text, ()
    if choice["tool"] == ANSWER:
        answer = choice.get("answer", "")
        return answer if isinstance(answer, str) else json_text(answer), ()
    given = choice.get("arguments")
    return "", (ToolCall(f"step_{n}", str(choice["tool"]), given if isinstance(given, dict) else {}),)


def _retold(reply: Reply, results: list[tuple[ToolCall, str]]) -> list[Turn]:
    told = "\n\n".join(f"Result of {call.name}:\n{text}" for call, text in results)
    return [Turn("assistant", reply.text), Turn("user", told)]

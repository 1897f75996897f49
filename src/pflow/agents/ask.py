"""Asking an agent: who is it, what is it asked, and which outputs does its answer have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pflow.agents.answer import take
from pflow.agents.context import context, document_folder, prompt_from
from pflow.agents.definition import Definition
from pflow.agents.find import Agent, find
from pflow.agents.question import Question
from pflow.errors import NodeError
from pflow.lang.template import to_text
from pflow.model.value import json_pretty, type_name
from pflow.nodes.agent import AgentDefinition, Voice
from pflow.nodes.step import StepContext
from pflow.storage.files import home

_ROLES = ("system", "user", "assistant")
_SHOWN = 500  # characters of an answer in a message
_KEPT = 10_000  # characters of it with a failure


async def ask(
    step: StepContext,
    *,
    agent: str = "",
    mode: str = "",
    prompt: str | None = None,
    messages: list[Any] | None = None,
    prompt_file: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] = (),
    strict: bool = False,
    model: str = "",
    timeout: float | None = None,
) -> dict[str, Any]:
    """Ask, and return the answer's ``text``, the outputs that are named, and the ``usage``."""
    _check_form(agent, prompt, messages, prompt_file)
    if timeout is not None and not timeout > 0:
        raise NodeError(f"timeout is {timeout:g}", "give seconds above 0", "validation")
    who = who_is(step, agent)
    asked = prompt_from(step, prompt_file) if prompt_file else prompt or ""
    given = dict(inputs or {})
    if not asked and not messages:
        given = {**context(step), **given}
    question = Question(
        agent=who.name,
        mode=mode,
        instructions=who.instructions if isinstance(who, Definition) else "",
        prompt=asked,
        inputs=given,
        outputs=tuple(outputs),
        idempotency_key=step.idempotency_key,
        messages=tuple(_message(n, one) for n, one in enumerate(messages or [])),
    )
    return await _answered(step, who, question, model, timeout, strict)


def who_is(step: StepContext, agent: str) -> Agent:
    """The agent of this name; without a name, whatever model is the default, without instructions."""
    if not agent:
        return Definition(step.node_id)
    return find(agent, step.workspace, document_folder(step), home())


async def _answered(
    step: StepContext, who: Agent, question: Question, model: str, timeout: float | None, strict: bool
) -> dict[str, Any]:
    voice = Voice(who.name, lambda kind, data: step.emit(kind, **data))
    voice.emit("agent:start", **({"mode": question.mode} if question.mode else {}))
    before = dict(step.used)
    answer = await _ask(step, voice, who, question, model, timeout)
    data = answer if isinstance(answer, dict) else None
    text = _text(answer)
    taken = take(text, question.outputs, data)
    if taken.missing:
        _lacking(step, who.name, taken.missing, text, strict)
    voice.emit("agent:complete", result=text)
    return {"text": text, "usage": _since(before, step.used), **taken.values}


async def _ask(
    step: StepContext, voice: Voice, who: Agent, question: Question, model: str, timeout: float | None
) -> Any:
    """The answer of whoever answers for the agent."""
    if isinstance(who, AgentDefinition):
        from pflow.agents import python

        return await python.ask(step, voice, who, question, timeout)
    timeout = who.timeout if timeout is None else timeout
    if who.preset:
        from pflow.agents import coding

        return await coding.ask(step, voice, who, question, model, timeout)
    if who.backend == "command":
        from pflow.agents import command

        return await command.ask(step, voice, who, question, timeout)
    from pflow.agents import model as models

    return await models.ask(step, voice, who, question, model, timeout)


def _text(answer: Any) -> str:
    if isinstance(answer, dict):
        return answer["text"] if isinstance(answer.get("text"), str) else json_pretty(answer)
    return to_text(answer).strip()


def _since(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What one answer used, of all that its visit did."""
    return {
        key: value - before.get(key, 0) if isinstance(value, (int, float)) else value for key, value in after.items()
    }


def _lacking(step: StepContext, agent: str, missing: list[str], text: str, strict: bool) -> None:
    """Say that outputs are missing: as a failure, which may be tried again, or as a warning."""
    names = ", ".join(f'"{name}"' for name in missing)
    if not strict:
        step.log.warn(f'the answer of agent "{agent}" has no {names}; an empty text stands in', missing=missing)
        return
    cut = "…" if len(text) > _SHOWN else ""
    raise NodeError(
        f'the answer of agent "{agent}" has no {names}. It says: {text[:_SHOWN]}{cut}',
        'have it answer with a JSON object that has these keys, or with lines of "name: value"',
        "agent",
        {"reason": "outputs", "agent": agent, "missing": missing, "answer": text[:_KEPT]},
    )


def _check_form(agent: str, prompt: str | None, messages: list[Any] | None, prompt_file: str | None) -> None:
    forms = {"prompt": prompt, "messages": messages, "prompt_file": prompt_file}
    given = [name for name, value in forms.items() if value]
    if len(given) > 1:
        raise NodeError(f"{' and '.join(given)} exclude each other", "keep one of them", "validation")
    if not given and not agent:
        raise NodeError(
            "there is neither a prompt nor an agent", "give one of prompt, messages and prompt_file", "validation"
        )


def _message(n: int, one: Any) -> dict[str, Any]:
    if not isinstance(one, dict) or one.get("role") not in _ROLES or "content" not in one:
        shown = type_name(one) if not isinstance(one, dict) else f"role {one.get('role')!r}"
        hint = f'write {{"role": "user", "content": "…"}}; roles: {", ".join(_ROLES)}'
        raise NodeError(f"messages[{n}] is no message: {shown}", hint, "validation")
    return {"role": one["role"], "content": to_text(one["content"])}

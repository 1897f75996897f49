"""Agents that are functions: ``AgentDefinition(name, execute)``."""

from __future__ import annotations

import asyncio
from typing import Any

from pflow.agents.question import Question
from pflow.errors import NodeError
from pflow.model.value import plain
from pflow.nodes.agent import AgentContext, AgentDefinition, Inbox, Voice
from pflow.nodes.step import StepContext


async def ask(
    step: StepContext, voice: Voice, agent: AgentDefinition, question: Question, timeout: float | None
) -> Any:
    """The function's answer, a text or a mapping; the node ends with it, whatever the agent keeps open."""
    inbox = Inbox()
    try:
        async with asyncio.timeout(timeout) as limit:
            answer = plain(await agent.execute(question.data(), AgentContext(voice, inbox, step.run_id)))
    except TimeoutError:
        if not limit.expired():
            raise
        raise NodeError(
            f'agent "{agent.name}" timed out after {timeout:g} s',
            "raise its timeout",
            "timeout",
            {"reason": "timeout", "agent": agent.name, "timeout": timeout},
        ) from None
    finally:
        inbox.close()
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        raise NodeError(
            f'agent "{agent.name}" returned nothing',
            "execute returns the answer: a text, or a mapping of outputs",
            "agent",
            {"reason": "silent", "agent": agent.name},
        )
    return answer

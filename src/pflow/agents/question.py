"""A question: what an agent is asked, in one form for whoever answers."""

from __future__ import annotations

from typing import Any

import msgspec

from pflow.model.value import json_pretty, portable

_MODES = {
    "analyze": "Study what you are given and report what you find. Change nothing.",
    "evaluate": "Judge what you are given against what is asked of it, and say how sure you are. Change nothing.",
    "execute": "Do what you are asked to do, then report what you did.",
    "review": "Review what you are given: say what is wrong, where, and what to do about it. Change nothing.",
    "generate": "Make what you are asked for, and answer with it.",
}


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an agent is asked."""

    agent: str
    mode: str = ""
    instructions: str = ""
    prompt: str = ""  # as resolved by the node, and nothing else
    inputs: dict[str, Any] = {}
    outputs: tuple[str, ...] = ()
    idempotency_key: str = ""
    messages: tuple[dict[str, Any], ...] = ()  # a conversation, in place of a prompt

    def data(self) -> dict[str, Any]:
        """The question as plain data, as programs are given it."""
        made: dict[str, Any] = {
            "agent": self.agent,
            "mode": self.mode,
            "instructions": self.instructions,
            "prompt": self.prompt,
            "inputs": portable(self.inputs),
            "outputs": list(self.outputs),
            "idempotency_key": self.idempotency_key,
        }
        return {**made, "messages": list(self.messages)} if self.messages else made

    def system(self) -> str:
        """What a model is told before it is asked: its instructions, its mode, and the form of its answer."""
        standard = _MODES.get(self.mode.strip().lower())
        mode = f"Mode: {self.mode.strip().upper()}. {standard}" if standard else self.mode.strip()
        form = f"End your answer with a JSON object that has these keys: {', '.join(self.outputs)}."
        return "\n\n".join(part for part in (self.instructions, mode, form if self.outputs else "") if part)

    def user(self) -> str:
        """What a model is asked: the prompt, and the inputs that go with it."""
        inputs = f"Given:\n{json_pretty(self.inputs)}" if self.inputs else ""
        asked = "\n\n".join(part for part in (self.prompt, inputs) if part)
        return asked or "Do what your instructions say."

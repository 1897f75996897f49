"""Agents that are coding agents: a prompt on stdin, and on stdout, as JSON, all that they do."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from pflow.agents.command import check, command_words, environment, flooded, last_line, run
from pflow.agents.definition import Definition
from pflow.agents.presets import COMMON, PRESETS, Preset, absent
from pflow.agents.question import Question
from pflow.agents.transcript import READERS, Transcript, document
from pflow.documents.json_in_text import objects
from pflow.errors import NodeError
from pflow.llm.interface import Usage
from pflow.nodes.agent import Voice
from pflow.nodes.process.run import Captured
from pflow.nodes.step import StepContext

_ARGUMENT = 100_000  # bytes of one word of a command; the system takes few more
_EXCERPT = 4000  # characters of an error that are kept
_LOGIN = ("api key", "api_key", "log in", "login", "logged in", "unauthorized", "authenticat", "credential")


async def ask(
    step: StepContext, voice: Voice, definition: Definition, question: Question, model: str, timeout: float | None
) -> str:
    """The program's answer; what it used counts as the node's."""
    from contextlib import nullcontext

    from pflow.nodes.models import run_means

    preset = PRESETS[definition.preset]
    words, prompt = asked(preset, definition, question, model, step.workspace)
    env = surroundings(preset, definition)
    if shutil.which(str(step.workspace / words[0]) if "/" in words[0] else words[0], path=env.get("PATH")) is None:
        raise absent(definition.name, preset, words[0])
    said = Transcript(voice)
    out = _Stream(step, definition.name, preset.name, said)
    budget = run_means().budget
    with budget.hold(None) if budget else nullcontext(_free) as charge:  # nobody knows what it will cost
        try:
            ended = await run(step, voice, definition, words, prompt.encode("utf-8", "replace"), env, out, timeout)
            out.finish()
        finally:
            charge(_count(step, said, model or definition.model))
    remarks = ended.err.text()
    error = said.error or (last_line(remarks) if ended.code and _about_login(remarks) else "")
    if error:
        raise _failed(definition.name, preset, words, error, ended.code, remarks)
    check(definition.name, words, ended, definition)
    return said.answer


def asked(
    preset: Preset, definition: Definition, question: Question, model: str, workspace: Path
) -> tuple[list[str], str]:
    """The command, and what it is given on stdin."""
    first, *own = command_words(definition, workspace)
    sub = [] if own[: len(preset.subcommand)] == list(preset.subcommand) else list(preset.subcommand)
    words = [first, *sub, *own, *preset.flags]
    if model or definition.model:
        words += ["--model", model or definition.model]
    if definition.tools:
        words += _allowed(preset, definition)
    system, prompt = question.system(), _prompt(question)
    if system and preset.system_flag and len(system.encode("utf-8", "replace")) < _ARGUMENT and "\0" not in system:
        words += [preset.system_flag, system]
    elif system:
        prompt = f"{system}\n\n{prompt}"
    return [*words, *preset.last], prompt


def _allowed(preset: Preset, definition: Definition) -> list[str]:
    if not preset.tools_flag:
        raise NodeError(
            f'agent "{definition.name}" lists tools, and {preset.title} takes no such list',
            f"take tools away; what {preset.name} may do is said by flags: command: [{preset.name}, …]",
            "validation",
        )
    return [preset.tools_flag, ",".join(definition.tools)]


def _prompt(question: Question) -> str:
    if not question.messages:
        return question.user()
    return "\n\n".join(f"{one['role']}: {one['content']}" for one in question.messages)


def surroundings(preset: Preset, definition: Definition) -> dict[str, str]:
    """The environment: that of every command, and what the program keeps its settings and keys in."""
    from pflow import settings

    known = {**settings.load().env, **os.environ}
    wanted = {name: text for name, text in known.items() if name.upper().startswith((*COMMON, *preset.variables))}
    return wanted | environment(definition.env)


class _Stream(Captured):
    """Lines of JSON, each read as it comes; what is none is kept, in case it is the answer."""

    def __init__(self, step: StepContext, agent: str, program: str, said: Transcript) -> None:
        super().__init__(step)
        self._agent = agent
        self._reader = READERS.get(program)
        self._said = said
        self._line = bytearray()

    def take(self, chunk: bytes) -> None:
        self.size += len(chunk)
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._line += piece
            self._hear(bytes(self._line))
            self._line.clear()
        self._line += rest
        if max(len(self._line), len(self._head), len(self._said.answer)) > self._limit:
            raise flooded(self._agent, self._limit, self.text())

    def finish(self) -> None:
        """Read what does not end with a line, and what is no line: one document, or plain words."""
        self._hear(bytes(self._line))
        self._line.clear()
        if self._said.read:
            return
        found = [one for one in objects(self.text()) if {"response", "error"} & one.keys()]
        if found:
            self._said.read = True
            document(self._said, found[-1])
        else:
            self._said.answer = self.text().strip()

    def _hear(self, line: bytes) -> None:
        if self._reader is not None and line.startswith(b"{"):
            try:
                event = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                event = None
            if isinstance(event, dict) and isinstance(event.get("type"), str):
                self._said.read = True
                self._reader(self._said, event)
                return
        if line.strip():
            self._head += line + b"\n"

    def text(self) -> str:
        return self._said.answer if self._said.read else super().text()


def _count(step: StepContext, said: Transcript, model: str) -> float | None:
    """Add what was used to the step's; returns what it cost, where somebody knows."""
    from pflow.llm.prices import cost
    from pflow.nodes.models import counted

    used = said.usage()
    if used == Usage(said.model) and not said.read:
        return None  # it never came so far
    name = used.model or model
    price = used.cost_usd if used.cost_usd is not None else cost(used, name)
    step.usage(**counted(msgspec.structs.replace(used, model=name, cost_usd=price)))
    return price


def _free(cost: float | None) -> None:
    """Without a budget nobody counts."""


def _about_login(text: str) -> bool:
    return any(word in text.lower() for word in _LOGIN)


def _failed(agent: str, preset: Preset, words: list[str], error: str, code: int, remarks: str) -> NodeError:
    login = _about_login(error)
    return NodeError(
        f'agent "{agent}" failed: {error[:_EXCERPT]}',
        preset.login if login else f"what {preset.name} said on stderr is in the error's context",
        "auth" if login else "agent",
        {
            "reason": "login" if login else "exit",
            "agent": agent,
            "command": words,
            "stdin": "Say hello",
            "exit_code": code,
            "stderr": remarks[-_EXCERPT:],
            "login": preset.login,
        },
    )

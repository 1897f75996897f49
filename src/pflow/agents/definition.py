"""Definitions of agents: Markdown with front matter, whose body is the agent's instructions.

name, description     who it is; the file's name stands in for a missing name
backend               llm, command, or a coding agent (claude, codex, gemini, amplifier); command where there is one
model, tools          of an llm: who answers, and the node types it may call; max_steps bounds the calls
command, env, limits  of a command: its words, variables it is given, {memory_mb, cpu_seconds, open_files}
timeout               seconds for one answer
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from pflow.agents.presets import PRESETS
from pflow.documents.front_matter import split
from pflow.documents.read import Cell, Fields, Reading
from pflow.errors import NodeError, Problem, WorkflowError, suggest

Backend = Literal["llm", "command"]
MAX_STEPS = 20
_KEYS = (
    "name", "description", "model", "tools", "backend", "command", "timeout", "limits", "env", "max_steps",
)  # fmt: skip
_LIMITS = ("memory_mb", "cpu_seconds", "open_files")
_ALIKE = 0.75  # how much so an unknown key and a known one are when the known one was meant; others may be for others
_variable = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the operating system allows a command, each of its processes for itself; 0 is no limit."""

    memory_mb: int = 0
    cpu_seconds: int = 0
    open_files: int = 0


class Definition(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent, as its file describes it."""

    name: str
    description: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    backend: Backend = "llm"
    preset: str = ""  # the coding agent that the command is
    command: tuple[str, ...] = ()
    timeout: float | None = None
    limits: Limits = Limits()
    env: dict[str, str | None] = {}  # variables for a command; None: as they are in our own environment
    max_steps: int = MAX_STEPS
    instructions: str = ""
    file: str = ""
    foreign: bool = False  # written for another tool: what it asks for and we lack is left out


class Misdescribed(NodeError):
    """A definition cannot be used; ``problems`` is all that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        first, *rest = problems
        message = "\n".join(map(str, problems)) if rest else f"{first.place}: {first.message}"
        super().__init__(message, "" if rest else first.hint, "validation")
        self.problems = problems


def load(path: Path) -> Definition:
    """The agent that a file describes; what is wrong in it is told with its places."""
    try:
        status = path.stat()
        return _loaded(path, status.st_mtime_ns, status.st_size, status.st_ino)
    except OSError as error:
        raise NodeError(f"{path} cannot be read: {error.strerror}", kind="validation") from None


@lru_cache(maxsize=256)
def _loaded(path: Path, *_state: int) -> Definition:
    """A file that did not change is read once: a run looks an agent up before it starts, for its cache, to ask it."""
    return parse(path.read_bytes(), path)


def parse(text: str | bytes, path: Path) -> Definition:
    """The agent that a text describes."""
    try:
        source, body = split(text, str(path))
        reading = Reading(source)
        made = _definition(reading, path, body)
        reading.finish()
    except WorkflowError as error:
        raise Misdescribed(error.problems) from None
    return made


def _definition(reading: Reading, path: Path, body: str) -> Definition:
    foreign = path.parent.parent.name == ".claude"
    top = reading.top(_KEYS, alike=1 if foreign else _ALIKE)
    backend, preset, command = _backend(top, _command(top))
    model = _text(top, "model")
    return Definition(
        name=_text(top, "name") or path.stem,
        description=_text(top, "description"),
        model="" if model == "inherit" else model,
        tools=tuple(text for _, text in _texts(top, "tools")),
        backend=backend,
        preset=preset,
        command=command,
        timeout=top.number("timeout", above=0),
        limits=_limits(top.fields("limits", _LIMITS)),
        env=_env(top),
        max_steps=top.whole("max_steps", MAX_STEPS, least=1),
        instructions=body,
        file=str(path),
        foreign=foreign,
    )


def _text(top: Fields, key: str) -> str:
    cell = top.cell(key)
    return _said(cell) if cell is not None else ""


def _said(cell: Cell) -> str:
    """A value as a text: of a number or a switch, what is written is meant."""
    if isinstance(cell.value, (dict, list)):
        cell.wrong("text")
    return str(cell.value).strip() if cell.value is not None else ""


def _texts(top: Fields, key: str) -> list[tuple[Cell, str]]:
    """A list of words, or one text with commas in between."""
    cell = top.cell(key)
    if cell is not None and isinstance(cell.value, str):
        found = [(cell, word.strip()) for word in cell.value.split(",")]
    else:
        found = [(one, _said(one)) for one in top.items(key)]
    return [(one, text) for one, text in found if text]


def _command(top: Fields) -> tuple[str, ...]:
    cell = top.cell("command")
    if cell is None or not isinstance(cell.value, str):
        return tuple(text for _, text in _texts(top, "command"))
    import shlex

    try:
        return tuple(shlex.split(cell.value))
    except ValueError as error:
        cell.problem(f"command: {error}", "command: [program, argument, …]")
        return ()


def _backend(top: Fields, command: tuple[str, ...]) -> tuple[Backend, str, tuple[str, ...]]:
    """Who answers, as which coding agent, and by which command."""
    cell, written = top.cell("backend"), _text(top, "backend").lower()
    if written in PRESETS:
        return "command", written, command or (written,)
    if cell is not None and written not in ("", "llm", "command"):
        choices = ("llm", "command", *PRESETS)
        cell.problem(f'"backend" cannot be "{written[:40]}"', suggest(written, choices, "backends"))
    if cell is not None and written == "command" and not command:
        cell.problem("backend is command, and there is no command", "command: [program, argument]")
    if written == "llm" and command and (cell := top.cell("command")) is not None:
        cell.problem("there is a command, and backend is llm", "take one of the two away")
    return "command" if command else "llm", "", command


def _limits(fields: Fields) -> Limits:
    return Limits(*(fields.whole(name, 0, least=1) for name in _LIMITS))


def _env(top: Fields) -> dict[str, str | None]:
    """Variables by name; those of a list are taken from our own environment, unless ``NAME=value`` gives them."""
    cell = top.cell("env")
    if cell is not None and isinstance(cell.value, dict):
        found = [(one, name, None if one.value is None else _said(one)) for name, one in cell.entries()]
    else:
        pairs = [(one, text.partition("=")) for one, text in _texts(top, "env") if isinstance(one.value, str)]
        found = [(one, name, value if given else None) for one, (name, given, value) in pairs]
    for one, name, _ in found:
        if not _variable.fullmatch(name):
            one.problem(f'"{name[:40]}" cannot be the name of a variable', "letters, digits and _")
    return {name: value for _, name, value in found}

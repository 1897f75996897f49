"""Definitions of agents: Markdown with front matter, whose body is the agent's instructions.

name, description     who it is; the file's name stands in for a missing name
backend               llm, command, or a coding agent (claude, codex, gemini, amplifier); command where there is one
model, tools          of an llm: who answers, and the node types it may call; max_steps bounds the calls
command, env, limits  of a command: its words, variables it is given, {memory_mb, cpu_seconds, open_files}
timeout               seconds for one answer
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import msgspec

from pflow.agents.front import Entry, read, wrong
from pflow.agents.presets import PRESETS
from pflow.errors import NodeError
from pflow.model.value import type_name

Backend = Literal["llm", "command"]
MAX_STEPS = 20
_KEYS = (
    "name", "description", "model", "tools", "backend", "command", "timeout", "limits", "env", "max_steps",
)  # fmt: skip
_LIMITS = ("memory_mb", "cpu_seconds", "open_files")
_CLOSE = 0.75  # how alike an unknown key and a known one are when the known one was meant
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


def load(path: Path) -> Definition:
    """The agent that a file describes; what is wrong in it is told with its line."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise wrong(str(path), 0, "this is no UTF-8 text") from None
    except OSError as error:
        raise NodeError(f"{path} cannot be read: {error.strerror}", kind="validation") from None
    return parse(text, path)


def parse(text: str, path: Path) -> Definition:
    """The agent that a text describes."""
    entries, body = read(text, str(path))
    foreign = path.parent.parent.name == ".claude"
    return _Fields(entries, str(path), foreign).definition(path.stem, body)


class _Fields:
    """The entries of a front matter, each asked for by its type."""

    def __init__(self, entries: dict[str, Entry], file: str, foreign: bool) -> None:
        self._entries = entries
        self._file = file
        self._foreign = foreign

    def definition(self, stem: str, body: str) -> Definition:
        if not self._foreign:
            self._check_keys()
        backend, preset, command = self._backend(self._command())
        return Definition(
            name=self._text("name") or stem,
            description=self._text("description"),
            model="" if self._text("model") == "inherit" else self._text("model"),
            tools=self._texts("tools"),
            backend=backend,
            preset=preset,
            command=command,
            timeout=self._seconds("timeout"),
            limits=self._limits(),
            env=self._env(),
            max_steps=self._whole("max_steps", self._get("max_steps"), MAX_STEPS),
            instructions=body,
            file=self._file,
            foreign=self._foreign,
        )

    def _get(self, key: str) -> Any:
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def _wrong(self, key: str, message: str, hint: str = "") -> NodeError:
        entry = self._entries.get(key)
        return wrong(self._file, entry.line if entry else 1, message, hint)

    def _check_keys(self) -> None:
        """Refuse a misspelt key; one that means nothing to us may be for another tool."""
        for key in self._entries:
            close = get_close_matches(key, _KEYS, n=1, cutoff=_CLOSE) if key not in _KEYS else []
            if close:
                raise self._wrong(key, f'unknown key "{key}"', f'did you mean "{close[0]}"?')

    def _text(self, key: str) -> str:
        value = self._get(key)
        if value is None:
            return ""
        if isinstance(value, (dict, list)):
            raise self._wrong(key, f'"{key}" must be text, not {type_name(value)}')
        return str(value).strip()

    def _texts(self, key: str) -> tuple[str, ...]:
        """A list of words, or one text with commas in between."""
        value = self._get(key)
        listed = value.split(",") if isinstance(value, str) else value
        if listed is None:
            return ()
        if not isinstance(listed, list) or any(isinstance(item, (dict, list)) for item in listed):
            raise self._wrong(key, f'"{key}" must be a list, not {type_name(value)}', f"{key}: [one, another]")
        return tuple(text for item in listed if item is not None and (text := str(item).strip()))

    def _command(self) -> tuple[str, ...]:
        value = self._get("command")
        if not isinstance(value, str):
            return self._texts("command")
        import shlex

        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise self._wrong("command", f"command: {error}", "command: [program, argument, …]") from None

    def _backend(self, command: tuple[str, ...]) -> tuple[Backend, str, tuple[str, ...]]:
        """Who answers, as which coding agent, and by which command."""
        written = self._text("backend").lower()
        if written in PRESETS:
            return "command", written, command or (written,)
        if written not in ("", "llm", "command"):
            raise self._wrong(
                "backend", f'"backend" cannot be "{written[:40]}"', f"llm, command, or one of {', '.join(PRESETS)}"
            )
        if written == "command" and not command:
            raise self._wrong("backend", "backend is command, and there is no command", "command: [program, argument]")
        if written == "llm" and command:
            raise self._wrong("command", "there is a command, and backend is llm", "take one of the two away")
        return "command" if command else "llm", "", command

    def _seconds(self, key: str) -> float | None:
        value = self._get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise self._wrong(key, f'"{key}" must be a number of seconds above 0, not {value!r}')
        return float(value)

    def _whole(self, key: str, value: Any, default: int, name: str = "") -> int:
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self._wrong(key, f'"{name or key}" must be a whole number above 0, not {value!r}')
        return value

    def _limits(self) -> Limits:
        value = self._get("limits")
        if value is None:
            return Limits()
        if not isinstance(value, dict):
            raise self._wrong("limits", f'"limits" must be a mapping, not {type_name(value)}', "{memory_mb: 512}")
        for name in value:
            if name not in _LIMITS:
                raise self._wrong("limits", f'there is no limit "{name}"', f"limits: {', '.join(_LIMITS)}")
        return Limits(*(self._whole("limits", value.get(name), 0, f"limits.{name}") for name in _LIMITS))

    def _env(self) -> dict[str, str | None]:
        """Variables by name; those of a list are taken from our own environment, unless ``NAME=value`` gives them."""
        value = self._get("env")
        if isinstance(value, dict):
            found = {name: None if text is None else str(text) for name, text in value.items()}
        else:
            pairs = (item.partition("=") for item in self._texts("env"))
            found = {name: text if given else None for name, given, text in pairs}
        for name in found:
            if not _variable.fullmatch(name):
                raise self._wrong("env", f'"{name[:40]}" cannot be the name of a variable')
        return found

"""Inputs of a run: from key=value words, from --context, and from what is piped in."""

from __future__ import annotations

import os
import stat
import sys
from typing import Any

import msgspec

from pflow.cli.line import Line
from pflow.cli.screen import Screen
from pflow.errors import UsageError, nearest
from pflow.model.typed import TEXTS, typed
from pflow.model.workflow import Input, Workflow

STDIN = "stdin"


def gather(line: Line, workflow: Workflow, screen: Screen) -> dict[str, Any]:
    """The inputs that a command line gives to a workflow."""
    declared = {item.name: item for item in workflow.inputs}
    given = context(line) | {key: typed(text, _type(declared.get(key))) for key, text in pairs(line).items()}
    _mention_unknown(workflow, given, screen)
    return _with_stdin(workflow, given)


def pairs(line: Line) -> dict[str, str]:
    """The key=value words, as texts."""
    made: dict[str, str] = {}
    for word in line.inputs:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r} is no input", "inputs are given as key=value")
        if key in made:
            raise UsageError(f'the input "{key}" is given twice', "give it once")
        made[key] = text
    return made


def context(line: Line) -> dict[str, Any]:
    """The object that --context gives."""
    text = line.value("context")
    if text is None:
        return {}
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError(f"--context is not JSON: {error}", """for example --context '{"city": "Lisbon"}'""") from None
    if not isinstance(value, dict):
        raise UsageError("--context must be a JSON object", """for example --context '{"city": "Lisbon"}'""")
    return value


def _type(item: Input | None) -> str:
    return item.type if item is not None else "any"


def _mention_unknown(workflow: Workflow, given: dict[str, Any], screen: Screen) -> None:
    """Warn of names that an open workflow takes and never reads: most likely they are misspelt."""
    declared = {item.name for item in workflow.inputs}
    if not workflow.open_inputs or not workflow.text:
        return
    for name in given:
        if name not in declared and name not in workflow.text:
            close = nearest(name, declared)
            hint = f'\n  hint: did you mean "{close}"?' if close else ""
            screen.say(f'warning: {workflow.file} has no input "{name}"; it is not used{hint}')


# What is piped in.


def _with_stdin(workflow: Workflow, given: dict[str, Any]) -> dict[str, Any]:
    if not piped():
        return given
    marked = next((item for item in workflow.inputs if item.stdin), None)
    name = marked.name if marked is not None else STDIN
    if name in given or (marked is None and not (workflow.open_inputs and _reads_stdin(workflow))):
        return given
    text = _read_all()
    return given if not text else given | {name: _fitting(text, _type(marked))}


def piped() -> bool:
    """Whether stdin is a pipe, a socket or a file; a terminal or nothing is never waited for."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _reads_stdin(workflow: Workflow) -> bool:
    """Whether anything in a workflow refers to the input ``stdin``.

    What nobody reads is not waited for: many a program starts others with a pipe that it never closes.
    """
    if STDIN not in workflow.text:
        return False
    from pflow.app.preview import reads

    return reads(workflow, STDIN)


def _read_all() -> str | bytes:
    data = sys.stdin.buffer.read()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _fitting(text: str | bytes, kind: str) -> Any:
    """What was piped in, as the declared type has it; undeclared, it stays text."""
    if isinstance(text, bytes) or kind == "any":
        return text
    return typed(text.strip() if kind not in TEXTS else text, kind)

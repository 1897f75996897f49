"""Commands that drive a run: run, resume, reply."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pflow import app
from pflow.app import runs
from pflow.app.outcome import check_key
from pflow.app.runs import choice_of
from pflow.app.stopped import take
from pflow.app.targets import folder_of, workflow_for
from pflow.cli import consent
from pflow.cli.commands import FIRST
from pflow.cli.drive import INTERRUPTED, Drive
from pflow.cli.errors import described
from pflow.cli.inputs import gather, pairs
from pflow.cli.line import Line
from pflow.cli.redirection import eaten
from pflow.cli.screen import Screen
from pflow.errors import RunBusy, UsageError
from pflow.model.records import Asked
from pflow.model.typed import typed
from pflow.model.visit import node_of


def run(line: Line) -> int:
    """``pflow FILE``, ``pflow run FILE``."""
    workflow, is_file = workflow_for(line.words[0], FIRST)
    check_key(line.value("output"), workflow)
    drive = Drive(line, workflow.scheduler == "reactive")
    inputs = gather(line, workflow, drive.screen)
    if line.has("validate-only"):
        from pflow.cli.plan import check_only

        return check_only(line, workflow, inputs)
    if workflow.packs or workflow.warnings:
        for warning in app.warnings(workflow, app.registry_for(workflow, app.Options())):
            drive.lines.say(described(warning))
    if warning_text := eaten():
        drive.screen.say(warning_text)
    if not consent.given(line, workflow, drive.screen):
        return _declined(drive.screen)
    chosen = {
        "jobs": line.count("jobs"),
        "iterate": is_file and not line.has("no-cache"),
        "rerun": tuple(line.options.get("rerun", ())),
        "use_cache": line.has("use-cache") and not line.has("no-cache"),
        "reset_cache": line.has("reset-cache"),
        **means(line),
    }
    return drive.complete(lambda options: app.run(workflow, inputs, **chosen, **options))


def resume(line: Line) -> int:
    """``pflow resume RUN``."""
    return go_on(line, folder_of(line.words[0]))


def _declined(screen: Screen) -> int:
    screen.say("nothing was run")
    return INTERRUPTED


def go_on(line: Line, folder: Path, before: Callable[[], None] = lambda: None) -> int:
    """Go on with a run, or with a fork of it; ``before`` is done once nothing stands in the way."""
    at = line.value("at")
    if at is not None:
        folder = runs.find(app.fork(folder, at))
        Screen().say(f"ℹ Goes on from '{at}' as run {folder.name}")
    secrets = _secrets(line, folder)
    taken = take(folder, secrets)
    if not consent.to_go_on(line, taken, Screen()):
        taken.release()
        return _declined(Screen())
    before()
    drive = Drive(line, taken.workflow.scheduler == "reactive")
    chosen = {"secrets": secrets, **means(line)}
    return drive.complete(lambda options: app.resume(taken, **chosen, **options), lambda: runs.inspect(folder))


def means(line: Line) -> dict[str, Any]:
    """What is said about models."""
    return {"model": line.value("model") or "", "budget": line.number("budget")}


def _secrets(line: Line, folder: Path) -> dict[str, Any]:
    """The secret inputs of a run, given again: they are not kept with it, everything else is."""
    given = pairs(line)
    if not given:
        return {}
    secret = runs.secret_inputs(folder)
    for name in given:
        if name not in secret:
            hint = f"secret ones: {', '.join(secret)}" if secret else "start a new run to use other inputs"
            raise UsageError(f'the run has its inputs already, and "{name}" is no secret one', hint)
    return {name: typed(text, secret[name].type) for name, text in given.items()}


def reply(line: Line) -> int:
    """``pflow reply RUN TEXT``: leave the answer; where nobody drives the run, go on with it."""
    folder = folder_of(line.words[0])
    text, node = " ".join(line.words[1:]), line.value("node")
    asked = _asked(folder, node)
    made = choice_of(text, asked.choices) if asked.choices and text else text
    if made is None:
        raise UsageError(f"{text!r} is none of the choices", f"one of: {', '.join(asked.choices)}")
    try:
        return go_on(line, folder, lambda: app.reply(folder, made, visit=asked.visit))
    except RunBusy:  # whoever drives it finds the answer
        app.reply(folder, made, visit=asked.visit)
    Screen().say(f"✓ Answered; {runs.driver(folder) or 'another process'} goes on with the run")
    return 0


def _asked(folder: Path, node: str | None) -> Asked:
    """The question that is to be answered."""
    waiting = runs.waiting(folder)
    found = [asked for asked in waiting if node in (None, node_of(asked.visit), asked.visit)]
    if not found:
        others = ", ".join(node_of(asked.visit) for asked in waiting)
        hint = f"these ask: {others}" if others else f"`pflow status {folder.name}` shows how it stands"
        what = f"node {node!r}" if node else f"run {folder.name}"
        raise UsageError(f"{what} asks nothing", hint)
    if len(found) > 1:
        names = ", ".join(sorted({node_of(asked.visit) for asked in found}))
        raise UsageError(f"{len(found)} nodes ask", f"say which with --node: {names}")
    return found[0]

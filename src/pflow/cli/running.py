"""Commands that drive a run: run, resume, reply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pflow import app
from pflow.app.documents import kept_workflow
from pflow.app.history import find, first_record, inspect, recall, records
from pflow.app.targets import folder_of, workflow_for
from pflow.cli import consent
from pflow.cli.arrow import eaten
from pflow.cli.commands import FIRST
from pflow.cli.complaints import described
from pflow.cli.driving import INTERRUPTED, Drive
from pflow.cli.inputs import gather, pairs
from pflow.cli.outcome import check_key
from pflow.cli.person import choice_of
from pflow.cli.screen import Screen
from pflow.cli.words import Line
from pflow.errors import RunBusy, UsageError
from pflow.model.run import Asked, Opened
from pflow.model.typed import typed
from pflow.model.visit import node_of
from pflow.storage import lease


def run(line: Line) -> int:
    """``pflow FILE``, ``pflow run FILE``."""
    workflow, is_file = workflow_for(line.words[0], FIRST)
    check_key(line.value("output"), workflow)
    drive = Drive(line, workflow.scheduler == "reactive")
    inputs = gather(line, workflow, drive.screen)
    if line.has("validate-only"):
        from pflow.cli.checking import check_only

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
    folder = folder_of(line.words[0])
    screen = Screen()
    return go_on(line, folder) if consent.to_go_on(line, folder, screen) else _declined(screen)


def _declined(screen: Screen) -> int:
    screen.say("nothing was run")
    return INTERRUPTED


def go_on(line: Line, folder: Path) -> int:
    """Go on with a run, or with a fork of it."""
    drive = Drive(line, first_record(find(folder)).dialect == "hifide")
    at = line.value("at")
    if at is not None:
        forked = app.fork(folder, at)
        folder = find(forked).path
        drive.lines.say(f"ℹ Goes on from '{at}' as run {forked}")
    secrets = _secrets(line, folder)
    chosen = {"secrets": secrets, **means(line)}
    return drive.complete(lambda options: app.resume(folder, **chosen, **options), lambda: inspect(folder))


def means(line: Line) -> dict[str, Any]:
    """What is said about models."""
    return {"model": line.value("model") or "", "budget": line.number("budget")}


def _secrets(line: Line, folder: Path) -> dict[str, Any]:
    """The secret inputs of a run, given again: they are not kept with it, everything else is."""
    given = pairs(line)
    if not given:
        return {}
    opened = records(find(folder))[0]
    assert isinstance(opened, Opened)
    secret = {item.name: item for item in kept_workflow(find(folder), opened).inputs if item.secret}
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
    if not lease.alive(folder) and not consent.to_go_on(line, folder, Screen()):
        return _declined(Screen())
    app.reply(folder, made, visit=asked.visit)
    if not lease.alive(folder):
        try:
            return go_on(line, folder)
        except RunBusy:  # somebody took the run over in between, and finds the answer
            pass
    Screen().say(f"✓ Answered; {lease.holder(folder)} goes on with the run")
    return 0


def _asked(folder: Path, node: str | None) -> Asked:
    """The question that is to be answered."""
    run_folder = find(folder)
    waiting = list(recall(run_folder).asked.values())
    found = [asked for asked in waiting if node in (None, node_of(asked.visit), asked.visit)]
    if not found:
        others = ", ".join(node_of(asked.visit) for asked in waiting)
        hint = f"these ask: {others}" if others else f"`pflow status {run_folder.id}` shows how it stands"
        what = f"node {node!r}" if node else f"run {run_folder.id}"
        raise UsageError(f"{what} asks nothing", hint)
    if len(found) > 1:
        names = ", ".join(sorted({node_of(asked.visit) for asked in found}))
        raise UsageError(f"{len(found)} nodes ask", f"say which with --node: {names}")
    return found[0]

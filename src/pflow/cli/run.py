"""``pflow run``: a new run of a workflow."""

from __future__ import annotations

from typing import Any

from pflow import app
from pflow.app.outcome import check_key
from pflow.app.targets import workflow_for
from pflow.cli import consent
from pflow.cli.commands import FIRST
from pflow.cli.drive import INTERRUPTED, Drive
from pflow.cli.errors import described
from pflow.cli.inputs import gather
from pflow.cli.line import Line
from pflow.cli.redirection import eaten
from pflow.cli.screen import Screen


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
        return declined(drive.screen)
    chosen = {
        "jobs": line.count("jobs"),
        "iterate": is_file and not line.has("no-cache"),
        "rerun": tuple(line.options.get("rerun", ())),
        "use_cache": line.has("use-cache") and not line.has("no-cache"),
        "reset_cache": line.has("reset-cache"),
        **means(line),
    }
    return drive.complete(lambda options: app.run(workflow, inputs, **chosen, **options))


def means(line: Line) -> dict[str, Any]:
    """What is said about models."""
    return {"model": line.value("model") or "", "budget": line.number("budget")}


def declined(screen: Screen) -> int:
    """Say that nothing was run, since the person at the terminal did not agree."""
    screen.say("nothing was run")
    return INTERRUPTED

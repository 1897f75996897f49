"""Commands that go on with a run that was left: resume, reply."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pflow import app
from pflow.app import runs
from pflow.app.drift import Drift
from pflow.app.runs import folder_of
from pflow.app.stopped import Stopped, take
from pflow.app.wording import shortened
from pflow.cli.consent import can_ask, yes
from pflow.cli.drive import Drive
from pflow.cli.inputs import pairs
from pflow.cli.line import Line
from pflow.cli.run import declined, means
from pflow.cli.screen import Screen
from pflow.errors import RunBusy, UsageError
from pflow.model.typed import choice_of, typed


def resume(line: Line) -> int:
    """``pflow resume RUN``."""
    return go_on(line, folder_of(line.words[0]))


def go_on(line: Line, folder: Path, answer: Callable[[], None] = lambda: None) -> int:
    """Go on with a run, or with a fork of it; an ``answer`` is given once the person here agrees to go on."""
    chosen, at, screen = means(line), line.value("at"), Screen()
    secrets = _secrets(line, folder)
    drive = Drive(line, runs.opening_of(folder).dialect == "hifide")
    if at is not None:
        if not _agreed(line, runs.drift_of(folder), screen):
            return declined(screen)
        folder = runs.find(app.fork(folder, at))
        drive.lines.say(f"ℹ Goes on from '{at}' as run {folder.name}")
    taken = _taken(folder, secrets, answer)
    if at is None and not _agreed(line, taken.drift(), screen):
        taken.release()
        return declined(screen)
    answer()
    chosen["secrets"] = secrets
    return drive.complete(lambda options: app.resume(taken, **chosen, **options), lambda: runs.inspect(folder))


def _taken(folder: Path, secrets: dict[str, Any], answer: Callable[[], None]) -> Stopped:
    """The run in our hands; where it cannot go on now for want of a secret, the answer is left with it all the same."""
    try:
        return take(folder, secrets)
    except UsageError as error:
        answer()
        raise UsageError(error.message, f"{error.hint}; with pflow resume {folder.name}") from None


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
    asked = runs.question(folder, node, "--node")
    made = choice_of(text, asked.choices) if asked.choices and text else text
    if made is None:
        raise UsageError(f"{text!r} is none of the choices", f"one of: {', '.join(asked.choices)}")
    try:
        return go_on(line, folder, lambda: app.reply(folder, made, visit=asked.visit))
    except RunBusy:  # whoever drives it finds the answer
        app.reply(folder, made, visit=asked.visit)
    Screen().say(f"✓ Answered; {runs.driver(folder) or 'another process'} goes on with the run")
    return 0


def _agreed(line: Line, found: list[Drift], screen: Screen) -> bool:
    """Whether a run may go on with the documents that it keeps; what changed of them since is told."""
    if not found:
        return True
    for one in found:
        screen.say(f"ℹ {shortened(str(one))}")
    screen.say("  the run goes on with the copy that it keeps")
    main = found[0]
    anew = f"with that copy: pflow {main.kept}" if main.gone else f"with the file as it is now: pflow {main.file}"
    screen.say(f"  hint: to start anew {anew}")
    return not can_ask(line, screen) or yes("go on with the copy?", screen)

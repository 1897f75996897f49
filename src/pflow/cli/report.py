"""How a run went, told: the result to stdout, and to stderr what happened and what can be done next."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from pflow.app import Result, outcome
from pflow.app.session import Session
from pflow.app.wording import one_line, shortened
from pflow.cli.errors import print_json, told
from pflow.cli.line import Line
from pflow.cli.progress import NORMAL, QUIET, VERBOSE, Progress
from pflow.cli.screen import lasted, result
from pflow.errors import UsageError
from pflow.model.records import Asked, Failure
from pflow.model.value import json_pretty
from pflow.model.visit import short

LAST = 10  # lines of what a command said before it failed
EXIT = {"completed": 0, "paused": 3, "interrupted": 130}


def report(made: Result, session: Session, line: Line, lines: Progress, why: str = "", spoken: bool = False) -> int:
    """Tell how a run went, and return the exit code; ``why`` is why it was cancelled here.

    What was ``spoken`` while the run went on is not told again.
    """
    if made.error is not None:
        made = msgspec.structs.replace(made, error=_without_secrets(made.error, session))
    if session.lost is not None:
        lines.say(f"warning: nothing could be cached: {session.lost} cannot be written")
        lines.say("  hint: make it a folder that you may write to, or use --no-cache")
    if made.success:
        _summary(made, lines)
    else:
        _explain(made, session, lines, why)
    delivered = (spoken and not line.json) or _deliver(made, session, line, lines)
    return EXIT.get(made.status, 1) if delivered else 1


def _deliver(made: Result, session: Session, line: Line, lines: Progress) -> bool:
    """The result to stdout, where with --events - there are only lines of JSON; False when it is not to be had."""
    key, only_lines = line.value("output"), line.value("events") == "-"
    try:
        value = outcome.shown_value(made, session, key) if made.success else None
    except UsageError as error:  # the run is done, but what was asked for is not in it
        told(lines.screen, error)
        value = error
    if line.json:
        view = outcome.run_view(made, session, key)
        if not made.success:  # nobody works with these outputs: they are shown
            view = session.hide(view)
        print_json(view, one_line=only_lines)
    elif not isinstance(value, UsageError) and not only_lines:
        print_value(value)
    return not isinstance(value, UsageError)


def _without_secrets(failure: Failure, session: Session) -> Failure:
    return msgspec.convert(session.hide(msgspec.to_builtins(failure)), Failure)


def print_value(value: Any) -> None:
    """A value on stdout: text and bytes as they are, nothing for null, JSON for the rest."""
    if isinstance(value, (str, bytes)):
        result(value)
    elif value is not None:
        result(json_pretty(value))


def _summary(made: Result, lines: Progress) -> None:
    name = made.workflow or made.run_id
    if not made.duration:
        lines.say(f"✓ {name} is complete already: nothing was left to do · {made.run_id}")
        return
    count = outcome.executed(made)
    parts = [f"{count} node{'s' * (count != 1)} in {lasted(made.duration * 1000)}"]
    spent = outcome.cost(made)
    if spent:
        parts.append(f"${spent:.4f}")
    unknown = int(made.usage.get("unpriced_calls", 0))
    if unknown:
        parts.append(f"{unknown} call{'s' * (unknown != 1)} of unknown price")
    kept = sum(one.reused for one in made.own.values())
    if kept:
        saved = outcome.saved(made)
        money = f" and ${saved['cost_usd']:.4f}" if saved["cost_usd"] else ""
        parts.append(f"{kept} cached, which saved {lasted(saved['ms'])}{money}")
    lines.say(f"✓ {name} completed: {', '.join(parts)} · {made.run_id}")


def _explain(made: Result, session: Session, lines: Progress, why: str) -> None:
    if made.status == "paused":
        _paused(made, lines)
    elif made.status == "interrupted":
        lines.say(f"⏸ Interrupted. What completed is kept.\n  next: pflow resume {made.run_id}", QUIET)
    elif made.status == "cancelled":
        reason = f": {why}" if why else ""
        lines.say(f"✗ The run was cancelled{reason}\n{_next(made)}", QUIET)
    else:
        _failed(made, session, lines)


def _failed(made: Result, session: Session, lines: Progress) -> None:
    failure = made.error or Failure("failed", "the run failed")
    place = outcome.place_of(failure, session.plan)
    where = f"{place}: " if place is not None and place.file else ""
    node = f"node '{short(failure.chain[-1])}' failed: " if failure.chain else ""
    lines.say(f"error: {where}{node}{shortened(failure.message)}", QUIET)
    if failure.hint:
        lines.say(f"  hint: {shortened(failure.hint)}", QUIET)
    for name in ("stderr", "stdout"):
        said = str(failure.details.get(name) or "").rstrip().splitlines()
        if len(said) > 1:  # one line is in the message
            last = "\n".join(f"    {one_line(text)}" for text in said[-LAST:])
            lines.say(f"  {name}{' ends' * (len(said) > LAST)}:\n{last}")
    if failure.stack_trace:
        lines.say(shortened(failure.stack_trace, 20_000), VERBOSE)
    lines.say(_next(made), NORMAL)


def _next(made: Result) -> str:
    return f"  next: pflow resume {made.run_id}   (what completed is not repeated)\n        pflow trace {made.run_id}"


def _paused(made: Result, lines: Progress) -> None:
    """Who is waited for, and the command that answers."""
    for visit, failure in made.held.items():
        lines.say(f"⏸ Paused: node '{short(visit)}' is held: {shortened(failure.message)}", QUIET)
        acted = any(visit == doubtful for doubtful, _ in made.doubts)
        decide = " --on-doubt retry|skip|fail   (its tools have been used already)" * acted
        lines.say(f"  next: pflow resume {made.run_id} --budget USD{decide}", QUIET)
    doubtful = {visit: attempt for visit, attempt in made.doubts if visit not in made.held}
    for asked in made.waiting:
        lines.say(_question(made, asked, asked.visit in doubtful), QUIET)
        doubtful.pop(asked.visit, None)
    for visit, attempt in doubtful.items():
        when = f"in attempt {attempt}" if attempt else "in an earlier run"
        lines.say(
            f"⏸ Paused: node '{short(visit)}' was cut off {when}, and it may have taken effect.\n"
            "  retry: run it again   skip: take it as done   fail: count it as failed",
            QUIET,
        )
    if doubtful:
        lines.say(f"  next: pflow resume {made.run_id} --on-doubt retry|skip|fail", QUIET)


def _question(made: Result, asked: Asked, doubtful: bool) -> str:
    several = len({one.visit for one in made.waiting}) > 1
    which = f" --node {shlex.quote(short(asked.visit))}" if several else ""
    doubt = " --on-doubt retry" if doubtful else ""
    choices = "|".join(asked.choices) or "TEXT"
    what = f"asks: {shortened(asked.question)}" if asked.question else "waits for what you say"
    return f"⏸ Paused: node '{short(asked.visit)}' {what}\n  next: pflow reply {made.run_id}{which}{doubt} {choices}"

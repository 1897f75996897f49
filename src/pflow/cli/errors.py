"""Errors, told: what, where, and what to do; as lines on stderr, and as data where stdout is to be JSON."""

from __future__ import annotations

from typing import Any

from pflow.app.problems import error_view, problem_view, problems_of
from pflow.app.wording import shortened
from pflow.cli.line import Line, wants_json
from pflow.cli.screen import Screen, result
from pflow.errors import InternalError, PflowError, Problem, RunError, UsageError, WorkflowError
from pflow.model.value import json_pretty, json_text, plain

MOST = 50  # problems on the screen; JSON holds all
EXPECTED = (UsageError, WorkflowError, RunError)  # nothing was run


def complain(error: BaseException, words: list[str], line: Line | None) -> int:
    """Tell an error that ended a command, and return the exit code; without a ``line``, its words made no sense."""
    screen = Screen()
    if isinstance(error, PflowError) and not isinstance(error, InternalError):
        told(screen, error)
    else:
        _own_fault(screen, error, words)
    if wants_json(words) if line is None else line.json:
        print_json(_shape("" if line is None else line.command.name, error))
    return 2 if isinstance(error, EXPECTED) else 1


def told(screen: Screen, error: PflowError) -> None:
    """Tell an error on stderr."""
    problems = problems_of(error)
    for problem in problems[:MOST]:
        screen.say(described(problem))
    if len(problems) > MOST:
        screen.say(f"… and {len(problems) - MOST:,} problems more; --json or --output-format json lists all")


def described(problem: Problem) -> str:
    """A problem as lines for people: the place, the message, the hint."""
    place = f"{problem.place}: " if problem.place.file or problem.place.line else ""
    kind = "warning" if problem.warning else "error"
    hint = f"\n  hint: {shortened(problem.hint)}" if problem.hint else ""
    return f"{kind}: {place}{shortened(problem.message)}{hint}"


def failed_view(errors: list[dict[str, Any]]) -> dict[str, Any]:
    """The object of a run that did not come about."""
    return {
        "success": False,
        "status": "failed",
        "run_id": None,
        "result": None,
        "outputs": {},
        "duration_ms": 0,
        "total_cost_usd": 0,
        "nodes_executed": 0,
        "execution": {"nodes_total": 0, "steps": []},
        "errors": errors,
        "trace": None,
    }


def print_json(value: Any, one_line: bool = False) -> None:
    """Write a value as the JSON result."""
    result((json_text if one_line else json_pretty)(plain(value)))


def _shape(command: str, error: BaseException) -> dict[str, Any]:
    problems = problems_of(error)
    if command == "validate":
        return {"valid": False, "problems": [problem_view(problem) for problem in problems]}
    if command == "plan":
        return {"nodes": [], "problems": [problem_view(problem) for problem in problems]}
    return failed_view([error_view(problem) for problem in problems])


def _own_fault(screen: Screen, error: BaseException, words: list[str]) -> None:
    """A bug of ours: one line, and the traceback for whoever asked for more."""
    screen.say(f"internal error: {type(error).__name__}: {shortened(str(error), 500)}")
    screen.say("  this is a bug in pflow: please report it" + _with_traceback(words))
    if {"-v", "--verbose"} & set(words):
        import traceback

        screen.put("".join(traceback.format_exception(error)))


def _with_traceback(words: list[str]) -> str:
    return "" if {"-v", "--verbose"} & set(words) else ", with what the same command prints with -v"

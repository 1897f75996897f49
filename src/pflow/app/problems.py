"""Problems as data: what an error complains about, one by one, as every front end shows it."""

from __future__ import annotations

from typing import Any

from pflow.errors import PflowError, Place, Problem, UsageError, WorkflowError


def problems_of(error: BaseException) -> list[Problem]:
    """What an error complains about, one by one."""
    if isinstance(error, WorkflowError):
        return list(error.problems)
    if isinstance(error, PflowError):
        return [Problem(error.message, hint=error.hint, code=_code(error))]
    return [Problem(f"{type(error).__name__}: {error}", code="internal")]


def _code(error: PflowError) -> str:
    """``RunNotFound`` → ``run-not-found``."""
    name = type(error).__name__.removesuffix("Error") or "pflow"
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


def problem_view(problem: Problem) -> dict[str, Any]:
    """A problem as ``validate --json`` shows it."""
    return {
        "code": problem.code,
        "node_id": problem.node_id or None,
        "message": problem.message,
        "hint": problem.hint,
        "location": place_view(problem.place),
        "warning": problem.warning,
    }


def error_view(problem: Problem) -> dict[str, Any]:
    """A problem as an entry of ``errors``."""
    view = problem_view(problem)
    del view["warning"]
    return view


def place_view(place: Place) -> dict[str, Any] | None:
    """A place as JSON shows it; None where nothing is known of it."""
    if not place.file and not place.line:
        return None
    return {"file": place.file, "line": place.line, "column": place.column}


def check_arguments(name: str, given: dict[str, Any], schema: dict[str, Any]) -> None:
    """Refuse arguments of a call that its schema does not allow."""
    from pflow.documents.schema import problem

    wrong = problem(given, schema, "arguments")
    if wrong:
        raise UsageError(f"{name}: {wrong}", f"arguments of {name}: {', '.join(schema['properties']) or 'none'}")

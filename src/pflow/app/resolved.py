"""What visits were given: their params as they were resolved, however early the process died that resolved them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from pflow.app.secrets import is_reference
from pflow.errors import BindingError, ExpressionError, UsageError
from pflow.kernel.run import Run
from pflow.kernel.scope import leave
from pflow.model.records import Outcome
from pflow.model.redact import HIDDEN
from pflow.model.value import portable
from pflow.model.visit import is_nested, node_of, parts_of
from pflow.planning.inputs import start
from pflow.storage.files import read_json, safe_name


def given(folder: Path, visit: str, run: Run | None) -> Any:
    """What a visit was given: as its view shows it, else worked out again where its workflow is at hand."""
    try:
        return read_json(folder / input_file(visit))
    except (OSError, ValueError):
        found = dict(resolved(run, lambda other: other == visit)) if run is not None else {}
        return portable(found[visit]) if visit in found else None


def input_file(visit: str) -> str:
    """The view that shows what a visit was given."""
    return f"{node_folder(visit)}/input.json"


def resolved(run: Run, wanted: Callable[[str], bool]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The resolved params of the run's own visits, as they were then; those of workflows inside are not known here.

    Where values flow from port to port, what a visit was given cannot be told from what is left.
    """
    plan, opened = run.root.plan, run.memory.opened
    if opened is None or plan.workflow.scheduler == "reactive":
        return
    inputs = {name: HIDDEN if is_reference(name, value) else value for name, value in opened.inputs.items()}
    values = start(plan.workflow, inputs, opened.run, opened.t)
    for visit in (*_own(run), *run.root.started):
        outcome = run.memory.ended.get(visit) if visit not in run.root.started else None
        if wanted(visit) and _executed(outcome):
            planned = plan.nodes[node_of(visit)]
            try:
                yield visit, planned.type.convert(planned.params.bind(values))
            except (BindingError, ExpressionError, UsageError):
                continue  # it was not bound then, either
        if outcome is not None:
            leave(values, node_of(visit), outcome, plan.workflow.flat)


def _own(run: Run) -> list[str]:
    return [visit for visit in run.memory.ended if not is_nested(visit) and visit not in run.root.started]


def _executed(outcome: Outcome | None) -> bool:
    return outcome is None or bool(outcome.attempts and not outcome.reused)


def node_folder(visit: str) -> str:
    """The folder of a visit's views: ``nodes/a`` for ``a#1``, ``nodes/a#2`` for its second, nested ones inside."""
    path = PurePosixPath()
    for part, n in parts_of(visit):
        name = safe_name(part) + (f"#{n}" if n > 1 else "")
        path = path / "nodes" / name if n else path / name
    return str(path)

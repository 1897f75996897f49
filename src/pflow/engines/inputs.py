"""Inputs of visits that ended, worked out again from how the run went: for views that nobody had time to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pflow.errors import BindingError, ExpressionError, UsageError
from pflow.kernel.run import Run
from pflow.kernel.scope import outputs_of
from pflow.model.redact import HIDDEN
from pflow.model.visit import is_nested, node_of
from pflow.planning.inputs import start
from pflow.planning.plan import Values


def rebuilt(run: Run, wanted: Callable[[str], bool]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The resolved params of the run's own visits, as they were then; those of workflows inside are not known here.

    Where values flow from port to port, what a visit was given cannot be told from what is left.
    """
    plan, opened = run.root.plan, run.memory.opened
    if opened is None or plan.workflow.scheduler == "reactive":
        return
    inputs = {name: HIDDEN if _is_reference(name, value) else value for name, value in opened.inputs.items()}
    values: Values = start(plan.workflow, inputs, opened.run, opened.t)
    for visit, outcome in run.memory.ended.items():
        if is_nested(visit):
            continue
        node = node_of(visit)
        if outcome.attempts and not outcome.reused and wanted(visit):
            planned = plan.nodes[node]
            try:
                yield visit, planned.type.convert(planned.params.bind(values))
            except (BindingError, ExpressionError, UsageError):
                continue  # it was not bound then, either
        made = outputs_of(outcome)
        if plan.workflow.flat and outcome.status == "completed":
            values.update(made)
        values[node] = made


def _is_reference(name: str, value: Any) -> bool:
    return isinstance(value, dict) and list(value.values()) == [name] and list(value) == ["secret_input"]

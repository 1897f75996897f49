"""The look at a visit before it is executed: guard → bind → convert → recall, for runs and for forecasts alike."""

from __future__ import annotations

from typing import Any

import msgspec

from pflow.errors import BindingError, ExpressionError, UsageError
from pflow.kernel.scope import Scope
from pflow.lang.expression import describe
from pflow.model.reason import Reason
from pflow.model.records import Failure, Outcome, Visit
from pflow.model.value import digest
from pflow.reuse.policy import Call, Recalled, Reuse


class Look(msgspec.Struct, frozen=True):
    """What can be told of a visit without executing it."""

    params: dict[str, Any] = {}  # resolved
    outcome: Outcome | None = None  # how it ends: skipped, failed, or as it did before
    writes: dict[str, Any] | None = None  # what it shared when it ended so before
    call: Call | None = None  # what a reuse policy was asked
    why: Reason | None = None  # why nothing stands in for it


def look(scope: Scope, visit: Visit, run_id: str, reuse: Reuse, shared: dict[str, Any]) -> Look:
    """See whether a visit needs to be executed."""
    planned = scope.plan.nodes[visit.node]
    try:
        if planned.guard is not None and not planned.guard.test(scope.values):
            reason = Reason("guard", (describe(planned.node.guard or []),))
            lineage = digest(["skipped", scope.upstream(planned)]) if reuse.active else ""
            return Look(outcome=Outcome("skipped", reason=reason, lineage=lineage, attempts=0))
        params: dict[str, Any] = planned.params.bind(scope.values)
        if planned.converts:
            params = planned.type.convert(params)
    except (BindingError, ExpressionError, UsageError) as error:
        failure = Failure("binding", error.message, error.hint, type(error).__name__)
        return Look(outcome=Outcome("failed", failure=failure, attempts=0))
    if not reuse.active or scope.streams is not None:  # graphs are never cached
        return Look(params)
    call = Call(run_id, visit, scope.plan, planned, params, scope.upstream(planned), scope.values, shared)
    if planned.type.composite:  # its own nodes are looked at
        return Look(params, call=call)
    found = reuse.recall(call)
    if isinstance(found, Recalled):
        return Look(params, found.outcome, found.writes)
    return Look(params, call=call, why=found)

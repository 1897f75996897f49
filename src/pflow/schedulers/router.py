"""Routes: where an outcome leads to, by labels, by conditions, and by what is said about failures; each says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pflow.errors import ExpressionError
from pflow.lang.expression import Compiled, describe
from pflow.lang.template import to_text
from pflow.model.reason import Reason
from pflow.model.records import Failure, Outcome
from pflow.model.workflow import ANY, DEFAULT, ERROR, OPTIONAL, Edge, Node

_BOOLEANS = {True: ("yes", "true"), False: ("no", "false")}


class Router:
    """The ways out of one node, in the order in which they are written."""

    def __init__(self, node: Node, edges: list[tuple[Edge, Compiled | None]]) -> None:
        self._node = node
        self._conditions = [(edge, guard) for edge, guard in edges if guard is not None]
        self._plain = {edge.on: edge.target for edge, guard in edges if guard is None and edge.on in (ANY, DEFAULT)}
        self._failures = {edge.on: edge.target for edge, _ in edges if edge.on in (ERROR, OPTIONAL)}
        special = (ANY, DEFAULT, ERROR, OPTIONAL)
        self._labels = {edge.on.casefold(): edge for edge, guard in edges if guard is None and edge.on not in special}

    def route(self, outcome: Outcome, values: Mapping[str, Any]) -> Outcome:
        """The outcome with its way out, or without one when this is the end; it says why."""
        if outcome.status == "failed":
            return self._after_failure(outcome)
        if outcome.status == "cancelled":
            return outcome
        try:
            found = self._after_success(outcome, values)
        except ExpressionError as error:
            found = Failure("routing", error.message, error.hint, "RoutingError")
        if isinstance(found, Failure):
            failed = msgspec.structs.replace(outcome, status="failed", failure=found, route=None)
            return self._after_failure(failed)
        target, reason = found
        return msgspec.structs.replace(outcome, route=target, reason=outcome.reason or reason)

    def _after_success(self, outcome: Outcome, values: Mapping[str, Any]) -> tuple[str | None, Reason] | Failure:
        warnings: list[str] = []
        for edge, guard in self._conditions:
            if guard.test(values, warnings.append):
                return edge.target, Reason("when", (describe(edge.guard or []),))
        value, shown = self._value(outcome)
        if self._labels:
            for word in _BOOLEANS[value] if isinstance(value, bool) else (to_text(value).strip().casefold(),):
                if word in self._labels:
                    return self._labels[word].target, Reason("label", (shown, to_text(value)))
        if DEFAULT in self._plain:
            return self._plain[DEFAULT], Reason("default")
        if ANY in self._plain:
            return self._plain[ANY], Reason("next")
        if not self._labels and not self._conditions:
            return None, Reason("end")
        ways = ", ".join([*self._labels, *(f"when {describe(edge.guard or [])}" for edge, _ in self._conditions)])
        text = f'node "{self._node.id}": no route for {shown} = {to_text(value)[:80]!r}'
        return Failure("routing", text, f"routes: {ways}; add a default", "RoutingError", details={"value": value})

    def _value(self, outcome: Outcome) -> tuple[Any, str]:
        """What the routes are chosen by: the node's own choice, its first output, or that it succeeded."""
        if outcome.route is not None:
            return outcome.route, "its route"
        if self._node.outputs:
            first = self._node.outputs[0]
            return outcome.outputs.get(first), first
        return "success", "it"

    def _after_failure(self, outcome: Outcome) -> Outcome:
        policy, failure = self._node.policy, outcome.failure
        if policy.critical:
            message = f"critical node {self._node.id} failed: {failure.message if failure else ''}"
            made = msgspec.structs.replace(
                failure or Failure("node", message),
                kind="critical",
                message=message,
                error_type="WorkflowCriticalError",
            )
            return msgspec.structs.replace(outcome, route=None, failure=made, reason=Reason("critical"))
        if policy.tolerate:
            ways = (self._failures.get(OPTIONAL), self._plain.get(DEFAULT), self._plain.get(ANY))
            target = next((way for way in ways if way is not None), None)
            return msgspec.structs.replace(outcome, route=target, reason=Reason("optional"))
        labels = [self._labels[word].target for word in (ERROR, "failure") if word in self._labels]
        target = next(iter([*filter(None, [self._failures.get(ERROR)]), *labels]), None)
        return msgspec.structs.replace(outcome, route=target, reason=Reason("error" if target else "stuck"))

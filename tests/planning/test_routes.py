from __future__ import annotations

from typing import Any

import pytest

from pflow.lang.expression import compile_expr, parse
from pflow.model.reason import Reason
from pflow.model.records import Failure, Outcome
from pflow.model.workflow import ANY, DEFAULT, ERROR, OPTIONAL, Edge, Node, Policy
from pflow.schedulers.router import Router


def router(ways: dict[str, str], outputs: tuple[str, ...] = (), **policy: Any) -> Router:
    """``{"when x > 1": "a", "yes": "b", "default": "c"}``."""
    edges = []
    for way, target in ways.items():
        guard = parse(way[5:]) if way.startswith("when ") else None
        edge = Edge("n", target, ANY if guard else way, guard)
        edges.append((edge, compile_expr(guard) if guard else None))
    return Router(Node("n", "agent", outputs=outputs, policy=Policy(**policy)), edges)


def routed(made: Router, outputs: dict[str, Any] | None = None, **values: Any) -> Outcome:
    return made.route(Outcome("completed", outputs or {}), {**values, **(outputs or {})})


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("pass", "p"),
        ("PASS", "p"),
        (" Pass ", "p"),
        ("other", "d"),
        (True, "y"),
        (False, "n"),
        ("yes", "y"),
        ("no", "n"),
        (None, "d"),
    ],
)
def test_a_mapping_goes_by_the_first_output(value: Any, target: str) -> None:
    made = router({"pass": "p", "yes": "y", "no": "n", "default": "d"}, ("verdict", "score"))
    assert routed(made, {"verdict": value, "score": "pass"}).route == target


def test_the_route_says_why() -> None:
    made = router({"yes": "y", "default": "d"}, ("ok",))
    assert routed(made, {"ok": "YES"}).reason == Reason("label", ("ok", "YES"))
    assert routed(made, {"ok": "?"}).reason == Reason("default")
    assert routed(router({"when score > 80": "a", "default": "b"}), {"score": "85"}).reason == Reason(
        "when", ("score > 80",)
    )
    assert routed(router({"*": "a"})).reason == Reason("next") and routed(router({})).reason == Reason("end")


def test_without_outputs_a_node_routes_on_success_and_failure() -> None:
    made = router({"success": "s", "failure": "f"})
    assert routed(made).route == "s"
    assert made.route(Outcome("failed", failure=Failure("node", "x")), {}).route == "f"


def test_the_first_condition_that_holds_wins() -> None:
    made = router({"when ok and coverage > 0.9": "fast", "when ok and coverage > 0.8": "slow", "default": "manual"})
    assert routed(made, {"ok": "yes", "coverage": "95%"}).route == "fast"
    assert routed(made, {"ok": "yes", "coverage": 0.85}).route == "slow"
    assert routed(made, {"ok": "no", "coverage": 1}).route == "manual"
    assert routed(made).route == "manual"


def test_no_match_and_no_default_is_an_error_that_names_both() -> None:
    outcome = routed(router({"yes": "y", "no": "n"}, ("ok",)), {"ok": "perhaps"})
    assert outcome.status == "failed" and outcome.route is None and outcome.failure is not None
    assert "'perhaps'" in outcome.failure.message and "yes, no" in outcome.failure.hint
    assert routed(router({"yes": "y", ERROR: "e"}, ("ok",)), {"ok": "perhaps"}).route == "e"


def failed(made: Router) -> Outcome:
    return made.route(Outcome("failed", failure=Failure("node", "broken")), {})


def test_failures() -> None:
    assert failed(router({"*": "next"})).route is None
    assert failed(router({"*": "next", ERROR: "e"})).route == "e"
    assert failed(router({"failure": "f", "success": "s"})).route == "f"
    assert failed(router({"*": "next"}, tolerate=True)).route == "next"
    assert failed(router({"*": "next", OPTIONAL: "o"}, tolerate=True)).route == "o"
    assert failed(router({"yes": "y", DEFAULT: "d"}, tolerate=True)).route == "d"
    critical = failed(router({"*": "next", ERROR: "e"}, critical=True))
    assert critical.route is None and critical.failure is not None
    assert (critical.failure.kind, critical.failure.error_type) == ("critical", "WorkflowCriticalError")
    assert critical.failure.message == "critical node n failed: broken"


def test_a_comparison_of_unlike_things_is_an_error_with_the_values() -> None:
    outcome = routed(router({"when items > 3": "a", "default": "b"}), {"items": [1, 2]})
    assert outcome.status == "failed" and outcome.failure is not None and outcome.failure.kind == "routing"
    assert "[1,2]" in outcome.failure.message

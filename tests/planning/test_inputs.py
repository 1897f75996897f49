"""What a caller gives, against what a workflow declares."""

from __future__ import annotations

from typing import Any

import pytest

from pflow.errors import Place, WorkflowError
from pflow.model.workflow import Input, Node, Workflow
from pflow.planning.inputs import effective, start

WHERE = Place("w", 3, 1)


def flow(*inputs: Input, **rest: Any) -> Workflow:
    return Workflow("w", "test", (Node("a", "echo"),), inputs=inputs, file="w.json", **rest)


def refused(workflow: Workflow, **given: Any) -> list[tuple[str, Place, str]]:
    with pytest.raises(WorkflowError) as raised:
        effective(workflow, given)
    assert {one.code for one in raised.value.problems} == {"input"}
    return [(one.message, one.place, one.hint) for one in raised.value.problems]


def test_what_is_given_counts_before_a_default_and_is_plain() -> None:
    declared = flow(Input("x", default=1), Input("y", default=("a", "b")), Input("z"))
    assert effective(declared, {"x": (2, 3), "more": {4}}) == {"x": [2, 3], "more": [4], "y": ["a", "b"], "z": None}


def test_a_name_that_is_not_declared() -> None:
    closed = flow(Input("colour"), open_inputs=False)
    hint = 'did you mean "colour"? inputs: colour'
    assert refused(closed, color=1) == [('the workflow has no input "color"', Place("w.json"), hint)]
    assert effective(flow(Input("colour")), {"color": 1}) == {"color": 1, "colour": None}


def test_an_input_that_is_missing() -> None:
    bare = flow(Input("x", required=True, place=WHERE))
    assert refused(bare) == [('the input "x" is missing', WHERE, "give it: x=…")]
    described = flow(Input("x", required=True, description="the first of them"))
    assert refused(described)[0][0] == 'the input "x" is missing (the first of them)'


FITS: dict[str, list[Any]] = {
    "string": ["", "x"], "number": [0.0, 1.5], "integer": [0, 7], "boolean": [True, False], "array": [[], [1]],
    "object": [{}, {"a": 1}],
}  # fmt: skip
KINDS_OF = {"integer": ("integer", "number")}
SHORT = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "array": "list", "object": "dict"}


@pytest.mark.parametrize("kind", FITS)
def test_a_value_fits_its_type_under_both_of_its_names_and_no_other_does(kind: str) -> None:
    for name in (kind, SHORT[kind]):
        declared = flow(Input("x", name, required=True, place=WHERE))
        for value in FITS[kind]:
            assert effective(declared, {"x": value}) == {"x": value}
        for value in (value for other in FITS for value in FITS[other] if kind not in KINDS_OF.get(other, (other,))):
            (problem,) = refused(declared, x=value)
            assert problem[0].startswith(f'the input "x" must be {name}, not ') and problem[1] == WHERE


def test_the_message_shows_what_was_given_but_not_all_of_it() -> None:
    assert refused(flow(Input("x", "integer")), x=[1])[0][0] == 'the input "x" must be integer, not list [1]'
    long = refused(flow(Input("x", "integer")), x="y" * 100)[0][0]
    assert long == f'the input "x" must be integer, not text "{"y" * 59}'
    assert refused(flow(Input("x", "string")), x=True)[0][0] == 'the input "x" must be string, not boolean true'


def test_nothing_may_be_given_for_what_is_not_required() -> None:
    assert effective(flow(Input("x", "integer")), {"x": None}) == {"x": None}
    assert refused(flow(Input("x", "integer", required=True)), x=None)[0][0].endswith("not null null")


def test_a_type_that_nobody_checks_takes_anything() -> None:
    for value in (1, "x", None, [True]):
        assert effective(flow(Input("x", "any", required=True)), {"x": value}) == {"x": value}


def test_a_default_may_name_variables_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "here")
    monkeypatch.delenv("WHO", raising=False)
    monkeypatch.delenv("WHY", raising=False)
    taken = flow(Input("x", default="in ${WHERE}: ${not a name} $WHERE", env=True))
    assert effective(taken, {}) == {"x": "in here: ${not a name} $WHERE"}
    assert effective(taken, {"x": "given"}) == {"x": "given"}
    assert refused(flow(Input("x", default="${WHO} ${WHERE} ${WHY}", env=True, place=WHERE))) == [
        ('the input "x" takes ${WHO} from the environment, where it is not set', WHERE, "set WHO, or give it: x=…"),
        ('the input "x" takes ${WHY} from the environment, where it is not set', WHERE, "set WHY, or give it: x=…"),
    ]


def test_every_problem_at_once() -> None:
    declared = flow(Input("x", required=True), Input("y", "integer"), open_inputs=False)
    assert [message for message, _, _ in refused(declared, y="many", z=1)] == [
        'the workflow has no input "z"', 'the input "x" is missing', 'the input "y" must be integer, not text "many"',
    ]  # fmt: skip


def test_where_templates_find_inputs() -> None:
    assert dict(start(flow(), {"x": 1})) == {"x": 1}
    assert dict(start(flow(input_path=("flow", "input")), {"x": 1})) == {"flow": {"input": {"x": 1}}}
    flat = dict(start(flow(flat=True), {"x": 1}, "r1", 86400.0))
    assert flat == {"x": 1, "_session_id": "r1", "_timestamp": "1970-01-02T00:00:00Z"}

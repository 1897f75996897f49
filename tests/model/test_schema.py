"""Answers held against JSON schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.errors import NodeError
from pflow.lang.json_in_text import extract
from pflow.model.schema import check, problem

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "pattern": "^[A-Z]"},
        "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 150},
        "pets": {"type": "array", "items": {"$ref": "#/$defs/pet"}, "maxItems": 2, "uniqueItems": True},
        "mood": {"enum": ["good", "bad", None]},
        "id": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "kind": {"const": "person"},
        "place": {"prefixItems": [{"type": "number"}, {"type": "number"}], "items": False},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"pet": {"type": "object", "required": ["legs"], "properties": {"legs": {"type": ["integer", "null"]}}}},
}


@pytest.mark.parametrize(
    "value",
    [
        {"name": "Ada"},
        {"name": "Ada", "age": 36.0, "mood": None, "id": 1, "kind": "person", "place": [1, 2.5]},
        {"name": "Ada", "pets": [{"legs": 4}, {"legs": None}]},
    ],
)
def test_a_value_that_fits_has_no_problem(value: Any) -> None:
    assert problem(value, check(PERSON)) == ""


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([], "the answer is list, not object"),
        ({}, 'the answer has no "name"'),
        ({"name": ""}, "the answer.name is shorter than 1"),
        ({"name": "ada"}, "the answer.name does not match ^[A-Z]"),
        ({"name": "Ada", "age": 1.5}, "the answer.age is number, not integer"),
        ({"name": "Ada", "age": True}, "the answer.age is boolean, not integer"),
        ({"name": "Ada", "age": -1}, "the answer.age is under 0"),
        ({"name": "Ada", "age": 150}, "the answer.age is not under 150"),
        ({"name": "Ada", "pets": [{}]}, 'the answer.pets[0] has no "legs"'),
        ({"name": "Ada", "pets": [{"legs": 1}] * 2}, "the answer.pets has an item twice"),
        ({"name": "Ada", "mood": "fine"}, 'the answer.mood is "fine", not one of ["good", "bad", null]'),
        ({"name": "Ada", "id": 1.5}, "the answer.id fits none of its 2 forms: "),
        ({"name": "Ada", "kind": "x"}, 'the answer.kind is "x", not "person"'),
        ({"name": "Ada", "place": [1, 2, 3]}, "the answer.place[2] is not allowed"),
        ({"name": "Ada", "shoe": 1}, 'the answer has "shoe", which is not allowed'),
    ],
)
def test_a_problem_tells_what_is_wrong_and_where(value: Any, told: str) -> None:
    assert problem(value, PERSON).startswith(told)


def test_forms_are_combined() -> None:
    assert "at once" in problem(1, {"oneOf": [{"type": "integer"}, {"minimum": 0}]})
    assert "must not" in problem("a", {"not": {"type": "string"}})
    assert problem(5, {"allOf": [{"minimum": 1}, {"maximum": 4}]}) == "the answer is over 4"


def test_a_schema_may_refer_to_itself() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    assert problem({"next": {"next": {}}}, check(tree)) == ""
    assert problem({"next": {"last": {}}}, tree).startswith("the answer.next has")
    assert "too deep" in problem(1, {"$ref": "#"})


@pytest.mark.parametrize(
    "schema",
    [
        3,
        "{",
        {"type": "strng"},
        {"type": 3},
        {"properties": {"a": {"type": "text"}}},
        {"items": {"pattern": "("}},
        {"properties": []},
        {"$ref": "#/$defs/none"},
        {"$ref": "https://example.org/schema"},
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: Any) -> None:
    with pytest.raises(NodeError) as caught:
        check(schema)
    assert caught.value.kind == "validation"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1]}',
        ' {"a": [1]}\n',
        'Here it is:\n```json\n{"a": [1]}\n```\nDone {or not}.',
        'Sure! {"a": [1]} I hope this helps.',
    ],
)
def test_json_is_found_in_an_answer(text: str) -> None:
    assert extract(text) == {"a": [1]}


@pytest.mark.parametrize("text", ["", "no", '{"a": ', "NaN", '{"a": Infinity}', "[" * 1_000_000])
def test_what_is_no_json_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        extract(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_value_fits_its_own_const(value: Any) -> None:
    assert problem(value, {"const": value}) == "" and problem(value, {"not": {"const": value}})

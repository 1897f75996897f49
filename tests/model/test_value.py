"""Values: what becomes of whatever node code returns, its written form and back, its one spelling, its equals."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
from collections import ChainMap, OrderedDict
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.model import conversation
from pflow.model.value import canonical, digest, json_pretty, json_text, plain, portable, restore, same, type_name

TALK = conversation.new("c", [{"role": "user", "content": "hi"}])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
KEYS = st.one_of(TEXTS, st.sampled_from(["__type", "value", "data"]))
ATOMS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.binary(max_size=5),
    st.sampled_from([2**63, -(2**63), 2**63 - 1, "conversation", "base64", "int", "dict"]),
)  # fmt: skip
PLAIN = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
FINITE = st.recursive(
    ATOMS.filter(lambda value: value == value),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@dataclasses.dataclass
class Point:
    x: int
    path: Path


class Pair(msgspec.Struct):
    left: Any
    right: Any


class Colour(enum.Enum):
    RED = "red"


class Word(str):
    pass


class Count(int):
    pass


class Share(float):
    pass


# Plain.


@given(PLAIN)
def test_what_is_plain_is_the_same_object(value: Any) -> None:
    assert plain(value) is value


@pytest.mark.parametrize(
    ("given_", "made"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        ({"b", "a"}, ["a", "b"]),
        (frozenset({3, 1}), [1, 3]),
        ({"x": {"y": (1,)}}, {"x": {"y": [1]}}),
        ([(), []], [[], []]),
        (bytearray(b"x"), b"x"),
        (memoryview(b"x"), b"x"),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (ChainMap({"a": 1}), {"a": 1}),
        (Word("x"), "x"),
        (Count(3), 3),
        (Share(0.5), 0.5),
        (Path("/a/b"), "/a/b"),
        ([Path("/a")], ["/a"]),
        (Point(1, Path("/a")), {"x": 1, "path": "/a"}),
        (Pair(1, (2,)), {"left": 1, "right": [2]}),
        (Colour.RED, "red"),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (Decimal("1.50"), "1.50"),
        (TALK, TALK),
    ],
)
def test_what_is_nearly_plain_is_translated(given_: Any, made: Any) -> None:
    found = plain(given_)
    assert found == made and type(found) is type(made)


def test_what_is_translated_inside_leaves_what_was_given_as_it_was() -> None:
    inner: dict[Any, Any] = {"x": (1,), 2: "two"}
    outer = [inner, "rest"]
    assert plain(outer) == [{"x": [1], "2": "two"}, "rest"]
    assert outer == [{"x": (1,), 2: "two"}, "rest"] and outer[0] is inner


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (1, "1"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
        (1.5, "1.5"),
        (("a", 1), "('a', 1)"),
        (Word("x"), "x"),
    ],
)
def test_keys_are_text(key: Any, text: str) -> None:
    for mapping in ({key: 0}, OrderedDict({key: 0})):
        (found,) = plain(mapping)
        assert found == text and type(found) is str


@pytest.mark.parametrize(
    "value", [object(), len, (n for n in [1]), range(3), 1j, [object()], {"a": {"b": object()}}, type]
)
def test_anything_else_is_refused_by_the_name_of_its_type(value: Any) -> None:
    culprit = value
    while isinstance(culprit, (list, dict)):
        culprit = culprit[0] if isinstance(culprit, list) else next(iter(culprit.values()))
    with pytest.raises(TypeError, match=f"^a value of type {type(culprit).__name__} cannot be kept$"):
        plain(value)


def test_a_file_name_that_is_no_text_can_be_kept_wherever_it_stands() -> None:
    name = b"caf\xe9".decode(errors="surrogateescape")
    assert plain(name) == plain(Word(name)) == "caf?"
    for mapping in ({name: [name]}, OrderedDict({name: [name]}), {Word(name): [name]}):
        assert plain(mapping) == {"caf?": ["caf?"]}
        canonical(plain(mapping))
    assert plain({"café": 1}) == {"café": 1}


# Written down, and back.


@given(PLAIN)
def test_what_is_written_down_comes_back_as_it_was(value: Any) -> None:
    back = restore(json.loads(json.dumps(portable(value), allow_nan=False)))
    assert alike(back, value)


def alike(left: Any, right: Any) -> bool:
    """Of the same types and the same values, all the way down; what is no number is what it is."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(alike(item, right[key]) for key, item in left.items())
    return bool(left == right) or (isinstance(left, float) and math.isnan(left) and math.isnan(right))


@given(FINITE)
def test_what_json_can_hold_is_written_as_it_is(value: Any) -> None:
    made = portable(value)
    if '"__type"' not in json.dumps(made):
        assert made is value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (b"\x00\xff", {"__type": "base64", "data": "AP8="}),
        (2**63 - 1, 2**63 - 1),
        (2**63, {"__type": "int", "value": "9223372036854775808"}),
        (-(2**64), {"__type": "int", "value": "-18446744073709551616"}),
        (math.inf, {"__type": "float", "value": "inf"}),
        (-math.inf, {"__type": "float", "value": "-inf"}),
        ({"__type": "mine"}, {"__type": "dict", "value": {"__type": "mine"}}),
        ([{"a": b""}], [{"a": {"__type": "base64", "data": ""}}]),
    ],
)
def test_what_json_lacks_is_tagged(value: Any, written: Any) -> None:
    assert portable(value) == written and restore(written) == value


def test_a_tag_that_nobody_knows_is_left_as_it_is() -> None:
    assert restore({"__type": "from the future", "value": [1]}) == {"__type": "from the future", "value": [1]}


# One spelling.


@given(PLAIN)
def test_the_order_of_keys_makes_no_difference_to_the_name_of_a_value(value: Any) -> None:
    assert canonical(shuffled(value)) == canonical(value) and digest(shuffled(value)) == digest(value)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(item) for key, item in reversed(value.items())}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@given(FINITE, FINITE)
def test_two_values_have_one_name_only_if_they_are_the_same(left: Any, right: Any) -> None:
    if canonical(left) == canonical(right):
        assert same(left, right) and alike(left, shuffled_like(right, left))


def shuffled_like(value: Any, other: Any) -> Any:
    """The value, with its keys in the order of another one."""
    if isinstance(value, dict):
        return {key: shuffled_like(value[key], other[key]) for key in other}
    return list(map(shuffled_like, value, other)) if isinstance(value, list) else value


@pytest.mark.parametrize(
    "values",
    [
        [1, 1.0, True, "1", b"1", [1], {"1": 1}, None],
        [0, -0.0, 0.0, False, "", b"", [], {}],
        [b"a", {"__type": "base64", "data": "YQ=="}, {"__type": "dict", "value": {"__type": "base64", "data": "YQ=="}}],
        [2**63, {"__type": "int", "value": str(2**63)}],
    ],
)
def test_values_that_look_alike_have_names_of_their_own(values: list[Any]) -> None:
    assert len({digest(value) for value in values}) == len(values)


def test_the_one_spelling_has_sorted_keys_and_no_spaces() -> None:
    assert canonical({"b": [1, 2.5], "a": {"d": None, "c": "é"}}) == '{"a":{"c":"é","d":null},"b":[1,2.5]}'.encode()


def test_a_conversation_is_spelled_as_what_it_holds() -> None:
    assert canonical([TALK]) == canonical([TALK.whole()]) and json.loads(json_text(TALK)) == TALK.whole()


def test_a_text_keeps_the_order_of_keys() -> None:
    assert json_text({"b": 1, "a": [b"x"]}) == '{"b":1,"a":[{"__type":"base64","data":"eA=="}]}'
    assert json_pretty({"b": 1, "a": []}) == '{\n  "b": 1,\n  "a": []\n}'


# Equality.


@given(PLAIN)
def test_a_value_is_the_same_as_itself_but_for_what_is_no_number(value: Any) -> None:
    assert same(value, shuffled(value)) is not no_number(value)


def no_number(value: Any) -> bool:
    """Whether there is something in it that is no number, and so not even equal to itself."""
    if isinstance(value, (list, dict)):
        return any(map(no_number, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float) and math.isnan(value)


@given(PLAIN, PLAIN)
def test_whichever_comes_first(left: Any, right: Any) -> None:
    assert same(left, right) == same(right, left)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True), (1, True, False), (0, False, False), (True, True, True), ("1", 1, False), (None, False, False),
        ([1, [True]], [1.0, [True]], True), ([1], [True], False), ([1, 2], [1], False), ([], {}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1.0}, True), ({"a": 1}, {"a": True}, False), ({"a": 1}, {"b": 1}, False),
        ({"a": None}, {}, False), ("x", b"x", False), (math.nan, math.nan, False), (TALK, TALK, True),
    ],
)  # fmt: skip
def test_equality_is_that_of_json(left: Any, right: Any, equal: bool) -> None:
    assert same(left, right) is equal and same(right, left) is equal


def test_the_types_have_the_names_that_messages_use() -> None:
    named: list[Any] = [None, True, 1, 1.5, "x", b"x", [], {}, TALK]
    assert [type_name(value) for value in named] == [
        "null", "boolean", "number", "number", "text", "bytes", "list", "object", "object",
    ]  # fmt: skip

"""What is taken from an answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.agents.answer import take
from pflow.model.value import json_pretty


def taken(text: str, *names: str) -> dict[str, Any]:
    made = take(text, names)
    assert not made.missing
    return made.values


JSON = '{"done": "yes", "score": 85, "ok": true, "missing": ["a", "b"], "more": {"x": null}}'
MEANT = {"done": "yes", "score": 85, "ok": True, "missing": ["a", "b"], "more": {"x": None}}


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        f"  {JSON}\n",
        f"```json\n{JSON}\n```",
        f"Here it is:\n\n```\n{JSON}\n```\nAnything else?",
        f"I looked at {{x}} and {{'y': 1}}, so: {JSON} That is all.",
        f'For example {{"done": "no", "score": 1}}. Mine:\n{JSON}',
        f'{JSON}\n{{"unrelated": 1}}',
    ],
)
def test_keys_of_a_json_object_wherever_it_is(text: str) -> None:
    assert taken(text, *MEANT) == MEANT


def test_of_two_objects_that_fit_the_last_counts() -> None:
    assert taken('{"a": 1} no, rather {"a": 2}', "a") == {"a": 2}


def test_keys_match_without_case_and_separators() -> None:
    assert taken('{"Tests-Complete": 1}', "tests_complete") == {"tests_complete": 1}
    assert taken('{"A": 1, "a": 2}', "a", "A") == {"a": 2, "A": 1}


def test_lines_of_names_and_values() -> None:
    text = """\
    Tests_Complete: yes
    coverage: 85
    ratio: 0.9
    percent: 85%
    ok: true
    list: ["a", "b"]
    version: 1.10
    url: http://x:80/y
    """
    names = ("tests_complete", "coverage", "ratio", "percent", "ok", "list", "version", "url")
    assert list(taken(text, *names).values()) == ["yes", 85, 0.9, "85%", True, ["a", "b"], "1.10", "http://x:80/y"]


def test_lines_as_markdown_decorates_them() -> None:
    text = "## Result\n- **Verdict:** **PASS**\n* `score`: `7`\n1. Open Issues: none\n**Summary**: fine: really"
    assert taken(text, "verdict", "score", "open_issues", "summary") == {
        "verdict": "PASS", "score": 7, "open_issues": "none", "summary": "fine: really",
    }  # fmt: skip


def test_a_value_below_its_name() -> None:
    text = "missing_areas:\n- login\n- logout\n\nreport:\nIt works.\n\nMostly.\nscore: 3"
    assert taken(text, "missing_areas", "report", "score") == {
        "missing_areas": ["login", "logout"], "report": "It works.\n\nMostly.", "score": 3,
    }  # fmt: skip


def test_the_last_line_of_a_name_counts() -> None:
    assert taken("score: 3\nOn second thought:\nscore: 4", "score") == {"score": 4}


def test_json_that_is_nearly_json_is_read_by_lines() -> None:
    assert taken('{\n  "score": 5,\n  "why": "because",\n}', "score", "why") == {"score": 5, "why": "because"}


def test_what_json_lacks_may_be_in_lines() -> None:
    assert taken('score: 3\n{"verdict": "ok"}', "verdict", "score") == {"verdict": "ok", "score": 3}


def test_the_whole_text_goes_to_the_first_output() -> None:
    made = take("It is fine,\nall of it.\n", ["first", "second"])
    assert made.values == {"first": "It is fine,\nall of it.", "second": ""} and made.missing == ["second"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("85\n", 85),
        ("true", True),
        ('["a"]', ["a"]),
        ("COMPLETE", "COMPLETE"),
        ('{"concerns": []}', '{"concerns": []}'),
        ('"quoted"', '"quoted"'),
        ("007", "007"),
        ("", ""),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_the_whole_text_keeps_its_type_where_it_is_clear(text: str, value: Any) -> None:
    assert taken(text, "a") == {"a": value}


def test_without_names_nothing_is_taken() -> None:
    assert take("a: 1", []) == ({}, [])


def test_an_answer_that_is_a_mapping() -> None:
    made = take("", ["a", "b_c", "d"], {"a": 1, "B-C": [2]})
    assert made.values == {"a": 1, "b_c": [2], "d": ""} and made.missing == ["d"]


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    values=st.dictionaries(st.sampled_from("abcd"), plain, min_size=1), before=st.sampled_from(["", "So:\n", "a: 1\n"])
)
def test_json_gives_back_what_was_put_in(values: dict[str, Any], before: str) -> None:
    assert taken(f"{before}```json\n{json_pretty(values)}\n```", *values) == values


@given(st.text(alphabet='ab:{}[]"\\\n -*`1.,'), st.lists(st.sampled_from("abc"), unique=True, max_size=3))
def test_any_text_gives_every_output_a_value(text: str, names: list[str]) -> None:
    made = take(text, names)
    assert list(made.values) == names and set(made.missing) <= set(names)

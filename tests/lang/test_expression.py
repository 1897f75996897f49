"""Expressions: examples for every rule of the evaluator and of its text language."""

from __future__ import annotations

from typing import Any

import pytest

from pflow.errors import ExpressionError
from pflow.lang.expression import MalformedExpression, compile_expr, describe, parse

VALUES: dict[str, Any] = {
    "score": 85,
    "coverage": 0.9,
    "as_text": "85",
    "as_fraction": "0.9",
    "percent": "85%",
    "yes": "Yes",
    "on": True,
    "blank": "",
    "nothing": None,
    "items": ["Red", 2, True],
    "empty": [],
    "run-checks": {"score": 7, "and": {"list": [{"x": 1}]}},
    "log": "An Error happened",
}


def holds(text: str) -> bool:
    return compile_expr(parse(text)).test(VALUES)


def warnings(text: str) -> list[str]:
    found: list[str] = []
    compile_expr(parse(text)).test(VALUES, found.append)
    return found


# The plain form.


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (["same", ["path", "on"], ["value", True]], True),
        (["same", ["path", "on"], ["value", "true"]], False),
        (["same", ["path", "score"], ["value", 85.0]], True),
        (["same", ["path", "yes"], ["value", "yes"]], False),
        (["same", ["path", "nothing"], ["value", None]], True),
        (["same", ["path", "unknown"], ["value", None]], False),
        (["not", ["same", ["path", "unknown"], ["value", 1]]], True),
        (["same", ["list", ["path", "unknown"]], ["value", [None]]], False),
        (["and"], True),
        (["or"], False),
        (["and", ["path", "on"], ["same", ["path", "score"], ["value", 85]]], True),
        (["or", ["value", False], ["path", "unknown"]], False),
        (["value", {"a": 1}], True),
    ],
)
def test_forms(expr: Any, expected: bool) -> None:
    """``same`` is JSON equality and false when unresolved; the others combine."""
    assert compile_expr(expr).test(VALUES) is expected


@pytest.mark.parametrize(
    "expr",
    [
        [],
        "x",
        None,
        ["call", "x"],
        ["path"],
        ["path", 1],
        ["path", "a", True],
        ["value"],
        ["not"],
        ["==", ["value", 1]],
        [1],
    ],
)
def test_unknown_forms_are_refused(expr: Any) -> None:
    """What is no known form is an error before anything is evaluated."""
    with pytest.raises(ExpressionError):
        compile_expr(expr)


def test_and_or_give_the_deciding_operand() -> None:
    """Alternatives can stand in for what is missing."""
    assert compile_expr(parse("nothing or unknown or 'x'")).evaluate(VALUES) == "x"
    assert compile_expr(parse("len(unknown or items)")).evaluate(VALUES) == 3


def test_references() -> None:
    """An expression says what it looks up; nothing of it must exist."""
    found = compile_expr(parse("a.b[0] > 1 and c in [d-e.f]")).references
    assert [(item.path, item.text, item.root, item.strict) for item in found] == [
        (("a", "b", 0), "a.b[0]", "a", False),
        (("c",), "c", "c", False),
        (("d-e", "f"), "d-e.f", "d-e", False),
    ]


# Truth and comparison.


@pytest.mark.parametrize("value", ["no", "No", "false", "FALSE", "0", "", None, False, 0, [], {}])
def test_what_is_false(value: Any) -> None:
    """Texts that say no are false, in any case, like what is empty."""
    assert not compile_expr(["path", "x"]).test({"x": value})


@pytest.mark.parametrize("value", ["yes", "true", "1", "nope", True, 1, [0], {"a": None}])
def test_what_is_true(value: Any) -> None:
    """Everything else is true."""
    assert compile_expr(["path", "x"]).test({"x": value})


@pytest.mark.parametrize(
    "text",
    [
        "score > 80",
        "score >= 85",
        "80 < score <= 85",
        "score != 86",
        "coverage > 0.8 and score > 80",
        "as_text == 85",
        "as_text > 9",
        "as_text > '9'",
        "as_fraction > 0.8",
        "percent > 0.8",
        "percent == 0.85",
        "percent > 80",
        "percent == 85",
        "percent <= 1",
        "percent != as_text",
        "percent >= as_text",
        "yes == 'YES'",
        "'b' > 'A'",
        "on == 'yes' and on == true and on != 'no' and 'TRUE' == on",
        "yes == true",
        "unknown == null",
        "nothing == None",
        "score != null",
        "blank == ''",
        "yes != ''",
        "'red' in items",
        "score in [1, '85']",
        "score not in items",
        "'error' in log",
        "'warning' not in log",
        "'SCORE' in run-checks",
        "len(items) == 3",
        "len(log) > 2",
        "len([]) == 0",
        "run-checks.score >= 7",
        "run-checks.and.list[0].x == 1",
        'run-checks["and"].list.0.x == 1',
        "items.length == 3",
        "not blank",
        "not (on and blank)",
        "not on == false",
        "False or True",
        "-5 < 3 and .5 < 1 and 1e2 == 100",
        "'a\\'b' == \"a'b\" and 'a\\nb' != 'anb'",
    ],
)
def test_what_holds(text: str) -> None:
    """Each of these holds for the values above."""
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "unknown > 3",
        "unknown == 'x'",
        "unknown != 'x'",
        "blank < 3",
        "3 <= nothing",
        "blank == 'x'",
        "empty > 0",
        "'x' in unknown",
    ],
)
def test_a_comparison_with_nothing_is_false_and_warns(text: str) -> None:
    """Null and empty compare as false, and the warning names the expression."""
    assert not holds(text)
    (warning,) = warnings(text)
    assert describe(parse(text)) in warning


def test_nothing_is_in_null() -> None:
    """What is not in null is not in it, with a warning."""
    assert holds("'x' not in unknown")
    assert len(warnings("'x' not in unknown")) == 1


@pytest.mark.parametrize("text", ["unknown == null", "blank == ''", "not unknown", "unknown or on", "len(items) > 2"])
def test_asking_for_nothing_does_not_warn(text: str) -> None:
    """A test for absence is no accident."""
    assert warnings(text) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("yes > 5", '"Yes" > 5'),
        ("on < 3", "true < 3"),
        ("items >= 3", '["Red",2,true] >= 3'),
        ("log < 3", '"An Error'),
        ("3 in score", "3 in 85"),
        ("3 in log", "3 in"),
        ("len(score)", "len(85)"),
    ],
)
def test_unlike_types_are_an_error_with_the_values_shown(text: str, shown: str) -> None:
    """What has no order, no items or no length is refused with the values."""
    with pytest.raises(ExpressionError) as caught:
        holds(text)
    assert shown in caught.value.message


def test_unlike_types_are_not_equal() -> None:
    """Equality of unlike types is false, and a warning shows the values."""
    assert not holds("score == 'high'")
    assert holds("score != 'high'")
    assert warnings("score == 'high'") == ['score == "high": 85 and "high" are of unlike types']


# The text language.


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("a", ["path", "a"]),
        ("a-b.c-2[3]", ["path", "a-b", "c-2", 3]),
        ("a or b and not c", ["or", ["path", "a"], ["and", ["path", "b"], ["not", ["path", "c"]]]]),
        ("(a or b) and c", ["and", ["or", ["path", "a"], ["path", "b"]], ["path", "c"]]),
        ("a < b < 3", ["and", ["<", ["path", "a"], ["path", "b"]], ["<", ["path", "b"], ["value", 3]]]),
        ("a not in [1, 'x']", ["not in", ["path", "a"], ["list", ["value", 1], ["value", "x"]]]),
        ("len(a) == 0", ["==", ["len", ["path", "a"]], ["value", 0]]),
        ("in-progress", ["path", "in-progress"]),
        ("a.in", ["path", "a", "in"]),
    ],
)
def test_parse(text: str, expr: Any) -> None:
    """Precedence, paths and literals are read into the plain form."""
    assert parse(text) == expr


@pytest.mark.parametrize(
    ("text", "column", "found"),
    [
        ("a + 1", 3, '"+"'),
        ("a - 1", 3, '"-"'),
        ("a * 2", 3, '"*"'),
        ("open('x')", 1, '"open" cannot be called'),
        ("a.b()", 1, '"a.b" cannot be called'),
        ("len(a).x", 7, '"."'),
        ("'x'.upper()", 4, '"."'),
        ("lambda: 1", 7, '":"'),
        ("a if b else c", 3, '"if"'),
        ("[x for x in y]", 4, '"for"'),
        ("{1: 2}", 1, '"{"'),
        ("a = 1", 3, '"="'),
        ("a && b", 3, '"&"'),
        ("!a", 1, '"!"'),
        ("a is null", 3, '"is"'),
        ("a[b]", 2, '"["'),
        ("a[-1]", 2, '"["'),
        ("a[0", 2, '"["'),
        ("5x", 1, '"5x"'),
        ("85%", 1 + 2, '"%"'),
        ("'open", 1, "not closed"),
        ("(a", 3, "ends too early"),
        ("a)", 2, '")"'),
        ("a not b", 7, '"b"'),
        ("not", 4, "ends too early"),
        ("", 1, "ends too early"),
        ("len()", 5, '")"'),
        ("len(a, b)", 6, '","'),
        ("1e999", 1, "too large"),
        ("9" * 500, 1, "too large"),
        ("a[99999999999999999999]", 2, "too large"),
        ("a < (b or c) < d", 16, "middle of a chain"),
    ],
)
def test_anything_else_is_refused(text: str, column: int, found: str) -> None:
    """The error says what was found, in which column, and what is allowed."""
    with pytest.raises(MalformedExpression) as caught:
        parse(text)
    assert found in caught.value.message
    assert f"column {column}" in caught.value.message
    assert caught.value.offset == column - 1
    assert caught.value.hint


def test_common_slips_get_a_better_word() -> None:
    """Operators of other languages are answered with ours."""
    with pytest.raises(MalformedExpression) as caught:
        parse("a && b")
    assert caught.value.hint.startswith('write "and" instead')


@pytest.mark.parametrize("text", ["(" * 101 + "a" + ")" * 101, "not " * 200 + "a", "[" * 500, "len(" * 5000])
def test_depth_is_bounded(text: str) -> None:
    """Nesting beyond the limit is an error of the expression, not of the interpreter."""
    with pytest.raises(ExpressionError, match="deep"):
        parse(text)


def test_depth_of_the_plain_form_is_bounded() -> None:
    """The same holds for an expression given as data."""
    expr: Any = ["value", 1]
    for _ in range(5000):
        expr = ["not", expr]
    with pytest.raises(ExpressionError, match="deep"):
        compile_expr(expr)


# Describing.


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (["same", ["path", "auth_enabled", "value"], ["value", True]], "auth_enabled.value == true"),
        (["not", ["and", ["path", "a"], ["path", "b"]]], "not (a and b)"),
        (["or", ["and", ["path", "a"]], ["value", None]], "a or null"),
        (["==", ["not", ["path", "a"]], ["value", 'x"y']], '(not a) == "x\\"y"'),
        (["same", ["path", "a"], ["value", {"k": [1]}]], 'a == {"k":[1]}'),
        (["path", "a", "my key", 0], 'a["my key"][0]'),
        (["and"], "true"),
    ],
)
def test_describe(expr: Any, words: str) -> None:
    """A condition reads as a person would write it."""
    assert describe(expr) == words

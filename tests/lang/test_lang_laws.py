"""The laws of templates and expressions, as properties.

Printing is stable; rendering agrees with a naive model; everything ends in work that grows with the size of the
text; nothing but values can be reached.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pflow.errors import BindingError, ExpressionError, PflowError
from pflow.lang.expression import compile_expr, describe, parse
from pflow.lang.path import MISSING, find, path_text, read_path
from pflow.lang.template import compile_text, compile_value
from pflow.model.value import same
from pflow.model.workflow import Syntax

SYNTAXES: tuple[Syntax, ...] = ("mustache", "dollar", "brace")
KEYS = st.sampled_from(["a", "b", "run-checks", "x_1", "length"])
LEAVES = st.none() | st.booleans() | st.integers(-9, 99) | st.floats(-9, 9) | st.text("ab {}$[]\"'|.", max_size=6)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
VALUES = st.dictionaries(KEYS, JSON, max_size=4)
PARTS = KEYS | st.integers(0, 3)
PATHS = st.tuples(KEYS) | st.builds(lambda root, rest: (root, *rest), KEYS, st.lists(PARTS, max_size=3))
NOISE = st.text("ab.[]{}$|?:\"'\\ 01-default", max_size=30)
EXPRESSION_NOISE = st.lists(
    st.sampled_from(
        ["a", "b.c", "a-b", "1", "-2.5", "'x'", '"y"', "and", "or", "not", "in", "len(", "(", ")", "[", "]"]
    )
    | st.sampled_from([",", "==", "!=", "<", ">=", "true", "None", "a[0]", "+", ".", "__class__", 'a["k k"]']),
    max_size=14,
).map(" ".join)


# A naive model of rendering.


def model_find(values: Any, path: tuple[Any, ...]) -> Any:
    found = values
    for part in path:
        exists = part in found if isinstance(found, dict) else isinstance(found, list) and part in range(len(found))
        if exists:
            found = found[part]
        elif part == "length" and found is not values and isinstance(found, (dict, list, str)):
            found = len(found)
        else:
            return MISSING
    return found


def model_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def written(path: tuple[Any, ...], syntax: Syntax) -> str:
    opening, closing = {"mustache": ("{{", "}}"), "dollar": ("${", "}"), "brace": ("{", "}")}[syntax]
    return opening + path_text(path) + closing


@settings(deadline=None)
@given(values=VALUES, path=PATHS)
def test_find_agrees_with_the_model(values: dict[str, Any], path: tuple[Any, ...]) -> None:
    """A path leads where a naive walk leads, and its text reads back as the path."""
    assert find(values, path) is model_find(values, path) or find(values, path) == model_find(values, path)
    assert read_path(path_text(path) + "}", 0) == (path, len(path_text(path)))


@settings(deadline=None)
@given(
    values=VALUES, pieces=st.lists(st.text("ab :\n", max_size=4) | PATHS, max_size=5), syntax=st.sampled_from(SYNTAXES)
)
def test_rendering_agrees_with_the_model(values: dict[str, Any], pieces: list[Any], syntax: Syntax) -> None:
    """Texts and references render as a naive model does, or fail exactly when it finds something missing."""
    source = "".join(piece if isinstance(piece, str) else written(piece, syntax) for piece in pieces)
    pieces = [piece for piece in pieces if piece != ""]
    paths = [piece for piece in pieces if not isinstance(piece, str)]
    found = {path: model_find(values, path) for path in paths}
    if syntax == "dollar" and any(_through_text(values, path) for path in paths):
        return  # going into texts has its own examples
    template = compile_text(source, syntax)
    assert [reference.path for reference in template.references] == paths
    if any(value is MISSING or (value is None and syntax == "mustache") for value in found.values()):
        with pytest.raises(BindingError):
            template.render(values)
    elif len(pieces) == 1 and paths:
        assert same(template.render(values), found[paths[0]])
    else:
        expected = "".join(piece if isinstance(piece, str) else model_text(found[piece]) for piece in pieces)
        assert template.render(values) == expected


def _through_text(values: Any, path: tuple[Any, ...]) -> bool:
    return any(isinstance(model_find(values, path[:n]), str) for n in range(1, len(path)))


@settings(deadline=None)
@given(text=st.text("ab{}\"' :$", max_size=12), syntax=st.sampled_from(SYNTAXES))
def test_a_value_appears_as_it_is(text: str, syntax: Syntax) -> None:
    """Whatever a value says, it is put in once and not expanded."""
    assert compile_text(f"<{written(('v',), syntax)}>", syntax).render({"v": text, "a": 1, "b": 2}) == f"<{text}>"


@settings(deadline=None)
@given(value=JSON, values=VALUES, syntax=st.sampled_from(SYNTAXES))
def test_binding_is_rendering_every_text(value: Any, values: dict[str, Any], syntax: Syntax) -> None:
    """A bound value is the value with each of its texts rendered, and the source is left alone."""

    def model(part: Any) -> Any:
        if isinstance(part, str):
            return compile_text(part, syntax).render(values)
        if isinstance(part, list):
            return [model(item) for item in part]
        return {key: model(item) for key, item in part.items()} if isinstance(part, dict) else part

    before = json.dumps(value)
    try:
        expected = model(value)
    except BindingError:
        with pytest.raises(BindingError):
            compile_value(value, syntax).bind(values)
    else:
        assert same(compile_value(value, syntax).bind(values), expected)
    assert json.dumps(value) == before


# Parse → print → parse.


@settings(deadline=None)
@given(text=NOISE, syntax=st.sampled_from(SYNTAXES))
def test_templates_print_what_they_read(text: str, syntax: Syntax) -> None:
    """A template's text is its source, and reading it again gives the same references."""
    try:
        template = compile_text(text, syntax)
    except BindingError:
        return
    again = compile_text(template.text, syntax)
    assert template.text == text
    assert again.references == template.references
    assert all(reference.text in text for reference in template.references)


SIMPLE = st.builds(lambda value: ["value", value], LEAVES | st.text(max_size=5)) | st.builds(
    lambda root, rest: ["path", root, *rest], KEYS, st.lists(PARTS | st.text("a .\\\"'-", max_size=4), max_size=2)
)


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=3)
    binary = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
    return st.one_of(
        st.builds(lambda head, items: [head, *items], st.sampled_from(["and", "or"]), several),
        st.builds(lambda head, item: [head, item], st.sampled_from(["not", "len"]), inner),
        st.builds(lambda items: ["list", *items], st.lists(inner, max_size=3)),
        st.builds(lambda op, left, right: [op, left, right], binary, inner, inner),
    )


EXPRESSIONS = st.recursive(SIMPLE, _compound, max_leaves=10)


@settings(deadline=None)
@given(expr=EXPRESSIONS)
def test_expressions_read_back_as_described(expr: Any) -> None:
    """Every expression that the text language can say is described in it exactly."""
    assert parse(describe(expr)) == expr


@settings(deadline=None)
@given(text=EXPRESSION_NOISE)
def test_describing_is_stable(text: str) -> None:
    """Whatever parses is described so that it parses to the same."""
    try:
        expr = parse(text)
    except ExpressionError:
        return
    assert parse(describe(expr)) == expr


# Termination, within bounds.


@settings(deadline=None)
@given(text=st.text(max_size=40) | NOISE, syntax=st.sampled_from(SYNTAXES), values=VALUES)
def test_templates_end_in_a_value_or_our_error(text: str, syntax: Syntax, values: dict[str, Any]) -> None:
    """No text makes the template language fail in any way but its own."""
    try:
        compile_text(text, syntax).render(values)
    except BindingError as error:
        assert error.message


@settings(deadline=None)
@given(text=st.text(max_size=40) | EXPRESSION_NOISE, values=VALUES)
def test_expressions_end_in_a_value_or_our_error(text: str, values: dict[str, Any]) -> None:
    """No text makes the expression language fail in any way but its own."""
    try:
        compile_expr(parse(text)).test(values)
    except ExpressionError as error:
        assert error.message


@settings(deadline=None)
@given(expr=EXPRESSIONS, values=VALUES)
def test_evaluation_ends_in_a_value_or_our_error(expr: Any, values: dict[str, Any]) -> None:
    """Neither does any expression that is well formed."""
    try:
        compile_expr(expr).evaluate(values)
    except ExpressionError as error:
        assert error.message


def operations(work: Callable[[], object]) -> int:
    """How many calls, ours and the interpreter's, some work takes."""
    count = 0

    def tick(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(tick)
    try:
        work()
    except PflowError:
        pass
    finally:
        sys.setprofile(None)
    return count


HOSTILE = [
    "{{",
    "${",
    "{",
    "}",
    "{{a}}",
    "${a}",
    "{a}",
    "{a[",
    '{a["',
    "{a['\\",
    "$${",
    "${a[",
    "{{a|default:[",
    "{{a.b",
]


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("unit", HOSTILE)
def test_templates_take_work_that_grows_with_the_text(syntax: Syntax, unit: str) -> None:
    """Twice the text takes at most about twice the work."""
    small, large = (
        operations(lambda n=n: compile_text(unit * n, syntax).render({"a": 1}))  # type: ignore[misc]
        for n in (200, 400)
    )
    assert large <= 2 * small + 50


@pytest.mark.parametrize(
    "unit", ["(", "[", "not ", "a ", "a and ", "a<", "len(", "'", "'\\", "a[", "a-", "-", "1", "a.", " "]
)
def test_expressions_take_work_that_grows_with_the_text(unit: str) -> None:
    """Twice the text takes at most about twice the work."""
    small, large = (
        operations(lambda n=n: compile_expr(parse(unit * n + "a")).test({"a": 1}))  # type: ignore[misc]
        for n in (300, 600)
    )
    assert large <= 2 * small + 50


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_anything_is_read_or_refused(syntax: Syntax, unit: str) -> None:
    """Large texts neither exhaust the stack nor grow without bound."""
    try:
        template = compile_text(unit * (1_000_000 // len(unit)), syntax)
    except BindingError as error:
        assert len(error.message) < 300
    else:
        assert isinstance(template.render({"a": 1}), str)


# Nothing but values.


class Spy:
    """An object that does not like to be looked at."""

    secret = "secret"

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was read")

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError(f"{key} was read")


INSIDE = ["secret", "__class__", "__dict__", "__init__", "__class__.__mro__", "upper", "keys", "append", "real", "0"]


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("name", INSIDE)
def test_attributes_are_out_of_reach(syntax: Syntax, name: str) -> None:
    """Paths enter dicts, lists and texts by key and position and never read an attribute."""
    values: dict[str, Any] = {"spy": Spy(), "text": "x", "object": {}, "list": [], "number": 1}
    for root in values:
        source = written((root, *name.split(".")), syntax)
        with pytest.raises(BindingError):
            compile_text(source, syntax).render(values)
        assert compile_expr(parse(f"{root}.{name}")).evaluate(values) is None


def test_globals_are_out_of_reach() -> None:
    """A name is looked up in the values and nowhere else."""
    for name in ("__builtins__", "__import__", "open", "self", "values"):
        assert compile_expr(parse(name)).evaluate({}) is None
        with pytest.raises(BindingError):
            compile_text("{" + name + "}", "brace").render({})

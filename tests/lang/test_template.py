"""Templates: examples for every rule, one section a syntax."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pflow.errors import BindingError
from pflow.lang.path import MalformedTemplate, Path, Reference
from pflow.lang.template import Missing, compile_text, compile_value, to_text
from pflow.model.workflow import Syntax

VALUES: dict[str, Any] = {
    "flow": {"input": {"name": "Ada", "none": None, "items": [1, {"x": "y"}]}},
    "fetch-data": {"text": "hi", "status": 200, "json": '{"user": {"id": 7}, "tags": ["a"]}', "word": "plain"},
    "a": {"b": [{"c": "deep"}], "ok": True, "raw": b"\xff!", "rate": 0.5, "my key": 1, "length": 99},
    "i": 0,
    "gone": None,
    "off": {"skipped": True},
    "_session_id": "s1",
    "tricky": "{{flow.input.name}} ${a.b} {i} {{x}} $${y}",
}


def render(text: str, syntax: Syntax, missing: Missing = "fail") -> Any:
    return compile_text(text, syntax, missing).render(VALUES)


def failure(text: str, syntax: Syntax, values: Mapping[str, Any] = VALUES) -> BindingError:
    with pytest.raises(BindingError) as caught:
        compile_text(text, syntax).render(values)
    return caught.value


# Every syntax.


@pytest.mark.parametrize(
    ("opening", "closing", "syntax"), [("{{", "}}", "mustache"), ("${", "}", "dollar"), ("{", "}", "brace")]
)
def test_every_syntax_reaches_the_same_values(opening: str, closing: str, syntax: Syntax) -> None:
    """Whole references keep their type, ids may contain hyphens, and indexes and quoted keys work everywhere."""
    expected: dict[str, Any] = {
        "fetch-data.status": 200,
        "a.b": [{"c": "deep"}],
        "a.b[0].c": "deep",
        "a.b.0.c": "deep",
        "a.ok": True,
        'a["my key"]': 1,
        "a['my key']": 1,
        "a.b.length": 1,
        "a.length": 99,
        "fetch-data.text.length": 2,
        "flow.input.length": 3,
        "_session_id": "s1",
    }
    for path, value in expected.items():
        assert render(f"{opening}{path}{closing}", syntax) == value


@pytest.mark.parametrize("syntax", ["mustache", "dollar", "brace"])
def test_values_are_never_read_as_templates(syntax: Syntax) -> None:
    """One pass: what a value says in any syntax stays as it is."""
    source = {"mustache": "<{{tricky}}>", "dollar": "<${tricky}>", "brace": "<{tricky}>"}[syntax]
    assert render(source, syntax) == f"<{VALUES['tricky']}>"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (10**30, "1" + "0" * 30),
        (0.5, "0.5"),
        (float("inf"), "inf"),
        ("é", "é"),
        (b"\xff!", "\ufffd!"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
    ],
)
def test_values_inside_text(value: Any, text: str) -> None:
    """Inside text, null is empty, lists and objects are compact JSON and bytes are decoded."""
    assert to_text(value) == text
    assert compile_text("-${v}-", "dollar").render({"v": value}) == f"-{text}-"


def test_several_references_in_a_text() -> None:
    """Text and references may alternate, at either end."""
    assert render("{{i}}{{a.ok}} and {{fetch-data.text}}", "mustache") == "0true and hi"


# mustache


def test_mustache_strict() -> None:
    """A strict reference that is missing or null is an error."""
    assert render("{{ flow.input.name }}", "mustache") == "Ada"
    assert "none" in failure("{{flow.input.none}}", "mustache").message
    assert 'no "nope"' in failure("{{flow.input.nope}}", "mustache").message


def test_mustache_optional() -> None:
    """An optional reference that is missing or null is empty text."""
    assert render("{{?flow.input.nope}}", "mustache") == ""
    assert render("{{ ?flow.input.none }}", "mustache") == ""
    assert render("{{? i }}", "mustache") == 0


@pytest.mark.parametrize(
    ("default", "value"),
    [
        ('"x | }} y"', "x | }} y"),
        ("null", None),
        ("[1, 2]", [1, 2]),
        ('{"a":{"b":1}}', {"a": {"b": 1}}),
        ("-1.5", -1.5),
    ],
)
def test_mustache_default(default: str, value: Any) -> None:
    """A default is any JSON and stands in for what is missing or null, and for nothing else."""
    assert render("{{nope | default:" + default + "}}", "mustache") == value
    assert render("{{ gone|default: " + default + " }}", "mustache") == value
    assert render("{{i | default:" + default + "}}", "mustache") == 0


def test_a_strict_binding_into_a_marker_fails() -> None:
    """The outputs that a skipped node would have had are missing."""
    error = failure("{{off.text}}", "mustache")
    assert "skipped (boolean)" in error.hint


# dollar


def test_dollar_null() -> None:
    """Null is a value; a path through null is missing."""
    assert render("${gone}", "dollar") is None
    assert render("<${flow.input.none}>", "dollar") == "<>"
    assert '"gone" is null' in failure("${gone.x}", "dollar").message


def test_dollar_literal() -> None:
    """A doubled dollar makes the reference text."""
    assert render("$${x} $$ $5 ${i}", "dollar") == "${x} $$ $5 0"
    assert compile_text("$${x}", "dollar").constant


def test_dollar_goes_into_json_texts() -> None:
    """A JSON text is parsed when the path goes into it, and only then."""
    assert render("${fetch-data.json.user.id}", "dollar") == 7
    assert render("${fetch-data.json.tags[0]}", "dollar") == "a"
    assert render("${fetch-data.json}", "dollar") == VALUES["fetch-data"]["json"]
    assert '"fetch-data.word" is text' in failure("${fetch-data.word.x}", "dollar").message
    assert "user (object)" in failure("${fetch-data.json.usr}", "dollar").hint


@pytest.mark.parametrize("source", ["{{fetch-data.json.user.id}}", "{fetch-data.json.user.id}"])
def test_other_syntaxes_do_not_parse_texts(source: str) -> None:
    """Going into JSON texts is one dialect's rule."""
    failure(source, "mustache" if source.startswith("{{") else "brace")


def test_dollar_nested_index() -> None:
    """An index may be a reference itself, and counts as one."""
    template = compile_text("${a.b[${i}].c}", "dollar")
    assert template.render(VALUES) == "deep"
    assert [reference.root for reference in template.references] == ["a", "i"]
    assert 'no "j"' in failure("${a.b[${j}].c}", "dollar").message
    assert "no index 5" in failure("${a.b[${n}].c}", "dollar", {**VALUES, "n": 5}).message


# brace


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{i}}", "{i}"),
        ("{{{i}}}", "{0}"),
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ('{"a": {"b": "{i}"}}', '{"a": {"b": "0"}}'),
        ('{{"a": {{"b": {i}}}}}', '{"a": {"b": 0}}'),
        ('{{"a": {"b": 1}}}', '{"a": {"b": 1}}'),
        ("{}", "{}"),
        ("{ i }", "{ i }"),
        ("{0} {3,4} {i!r} {i:>3} {a b}", "{0} {3,4} {i!r} {i:>3} {a b}"),
        ("if (x) { return; }", "if (x) { return; }"),
        ("a } b {", "a } b {"),
        ("{i[99999999999999999999]}", "{i[99999999999999999999]}"),
        ("}}{{", "}{"),
    ],
)
def test_braces(source: str, expected: str) -> None:
    """Doubled braces are single ones, and braces around anything but a path are left alone."""
    assert render(source, "brace") == expected


def test_brace_null_is_a_value() -> None:
    """In this syntax null is not missing."""
    assert render("{gone}", "brace") is None


# Missing.


def test_an_error_says_how_far_the_path_leads() -> None:
    """The message has the reference as written and the deepest part that exists; the hint what is there."""
    error = failure("<${fetch-data.txt.x}>", "dollar")
    assert error.message == '${fetch-data.txt.x}: "fetch-data" has no "txt"'
    assert error.hint.startswith('did you mean "text"? available in fetch-data: text (text), status (number)')


def test_an_error_lists_the_roots() -> None:
    """A root that is not there is answered with the nearest, first."""
    error = failure("{sesion_id}", "brace", {"zeta": 1, "session_id": "x"})
    assert error.hint == 'did you mean "session_id"? available: session_id (text), zeta (number)'


def test_an_error_in_a_list_says_its_size() -> None:
    """An index outside a list, or a key of one, is answered with the list's bounds."""
    assert '"a.b" is a list of 1 and has no index 4' in failure("{{a.b[4]}}", "mustache").message
    assert failure("{{a.b.x}}", "mustache").hint == "available in a.b: 0 (object) to 0 (object)"


def test_values_may_make_their_own_roots() -> None:
    """Roots are looked up with ``values[root]``, and ``available`` names what to list."""

    class Lazy(dict[str, Any]):
        def __missing__(self, key: str) -> Any:
            if key == "made":
                return {"x": 1}
            raise KeyError(key)

        def available(self) -> Iterator[str]:
            return iter(["made", "not-yet"])

    assert compile_text("{{made.x}}", "mustache").render(Lazy()) == 1
    assert failure("{{mad}}", "mustache", Lazy()).hint == 'did you mean "made"? available: made (object), not-yet'


def test_keep_leaves_what_is_missing() -> None:
    """With ``keep``, an unresolved reference stays as written and is not strict."""
    assert render("${nope.x}", "dollar", "keep") == "${nope.x}"
    assert render("<${nope}> ${i}", "dollar", "keep") == "<${nope}> 0"
    assert not compile_text("${nope}", "dollar", "keep").references[0].strict


# References.


@pytest.mark.parametrize(
    ("text", "path", "strict"),
    [
        ("{{ a.b[0] }}", ("a", "b", 0), True),
        ("{{?a}}", ("a",), False),
        ('{{a | default:"x"}}', ("a",), False),
    ],
)
def test_references_are_listed(text: str, path: Path, strict: bool) -> None:
    """A template says what it will look up, and whether that must exist."""
    (reference,) = compile_text(f"see {text}", "mustache").references
    assert reference == Reference(path, text, strict)
    assert reference.root == "a"


# Malformed.


@pytest.mark.parametrize(
    ("syntax", "text", "offset"),
    [
        ("mustache", "ab {{a", 3),
        ("mustache", "{{ }}", 3),
        ("mustache", "{{a..b}}", 4),
        ("mustache", "{{a[x]}}", 3),
        ("mustache", "{{a[-1]}}", 3),
        ("mustache", "{{a[0]b}}", 6),
        ("mustache", "{{a} }}", 3),
        ("mustache", "{{a | upper}}", 4),
        ("mustache", "{{a | default:x}}", 14),
        ("mustache", "{{a | default:NaN}}", 14),
        ("mustache", '{{a | default:"x"', 0),
        ("mustache", "{{a | default:[1,}}", 17),
        ("mustache", "{{{a}}}", 2),
        ("dollar", "ab ${a", 3),
        ("dollar", "${}", 2),
        ("dollar", "${a|b}", 3),
        ("dollar", "${a[${i]}", 7),
        ("dollar", "${a[" * 10 + "}", 35),
    ],
)
def test_a_malformed_template_is_refused_when_compiled(syntax: Syntax, text: str, offset: int) -> None:
    """The error gives the offset of what is wrong."""
    with pytest.raises(MalformedTemplate) as caught:
        compile_text(text, syntax)
    assert caught.value.offset == offset
    assert str(offset) in caught.value.message


# Values with templates in them.


def test_bind_reaches_texts_at_any_depth() -> None:
    """Texts in lists and objects are templates; keys are not."""
    source = {"{{i}}": "{{i}}", "deep": [{"x": ["{{a.ok}}", 1]}], "n": 5}
    bound = compile_value(source, "mustache")
    assert bound.bind(VALUES) == {"{{i}}": 0, "deep": [{"x": [True, 1]}], "n": 5}
    assert source["{{i}}"] == "{{i}}"
    assert [reference.root for reference in bound.references] == ["i", "a"]


@pytest.mark.parametrize("value", [{"a": [1, "x", None]}, [], "plain", 7, None, b"x"])
def test_a_constant_is_the_same_object(value: Any) -> None:
    """What holds no reference is passed on as it is."""
    bound = compile_value(value, "mustache")
    assert bound.constant
    assert bound.bind(VALUES) is value


def test_constant_parts_are_shared_and_escapes_are_undone() -> None:
    """A constant part is not copied, and a text whose only peculiarity is an escape is still constant."""
    inner = {"k": [1, 2]}
    result = compile_value({"inner": inner, "x": "${i}"}, "dollar").bind(VALUES)
    assert result["inner"] is inner
    escaped = compile_value({"x": ["$${HOME}"]}, "dollar")
    assert escaped.constant
    assert escaped.bind(VALUES) == {"x": ["${HOME}"]}


def test_bound_values_are_fresh() -> None:
    """Two binds do not share what they filled in."""
    bound = compile_value({"x": "${i}"}, "dollar")
    first, second = bound.bind(VALUES), bound.bind({"i": 1})
    assert (first, second) == ({"x": 0}, {"x": 1})

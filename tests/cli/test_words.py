"""The words of a command line: options anywhere, inputs typed, mistakes explained."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pflow.cli.line import parse
from pflow.errors import UsageError
from pflow.model.typed import typed
from tests.cli.conftest import Pflow


@pytest.mark.parametrize(
    "words",
    [
        ["flow.yaml", "a=1", "--jobs", "4", "-v"],
        ["--jobs", "4", "-v", "flow.yaml", "a=1"],
        ["-v", "run", "--jobs=4", "flow.yaml", "a=1"],
        ["run", "flow.yaml", "--input", "a=1", "-v", "--jobs", "4"],
    ],
)
def test_options_may_stand_anywhere(words: list[str]) -> None:
    line = parse(words)
    assert (line.command.name, line.words, line.inputs) == ("run", ["flow.yaml"], ["a=1"])
    assert line.count("jobs") == 4 and line.level == 2


def test_what_follows_two_dashes_is_no_option() -> None:
    line = parse(["reply", "RUN", "--node", "n", "--", "--yes", "-1"])
    assert line.words == ["RUN", "--yes", "-1"] and line.value("node") == "n"


def test_short_options_can_be_joined() -> None:
    line = parse(["-pvo", "key", "flow.yaml"])
    assert line.has("print") and line.has("verbose") and line.value("output") == "key"
    assert parse(["-okey", "flow.yaml"]).value("output") == "key"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("false", False), ("null", None), ("10", 10), ("-3", -3), ("3.14", 3.14), ("1e3", 1000.0),
        ('{"a": [1]}', {"a": [1]}), ('["x"]', ["x"]), ('"10"', "10"), ("007", "007"), ("--", "--"), ("-", "-"),
        ("", ""), ("hello", "hello"), ("True", "True"), ("nan", "nan"), ("{not json", "{not json"), ("1.2.3", "1.2.3"),
        ("12345678901234567890123", 12345678901234567890123), ("١٢", "١٢"), ("-007", "-007"), ("--5", "--5"),
    ],
)  # fmt: skip
def test_values_are_what_they_look_like(text: str, value: Any) -> None:
    made = typed(text)
    assert made == value and type(made) is type(value)


@pytest.mark.parametrize("text", ["10", "true", "null", "1e5", '{"a": 1}'])
def test_a_declared_type_goes_before_looks(text: str) -> None:
    assert typed(text, "string") == text


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["flow.yaml", "--jbos", "3"], "no option --jbos", "did you mean --jobs?"),
        (["flow.yaml", "-x"], "no option -x", "pflow --help"),
        (["validate", "flow.yaml", "--jobs", "3"], "`pflow validate` has no option --jobs", "pflow help validate"),
        (["flow.yaml", "--jobs"], "--jobs needs a value", "--jobs N"),
        (["flow.yaml", "--print=yes"], "--print takes no value", ""),
        (["flow.yaml", "--jobs", "1", "--jobs", "2"], "--jobs is given twice", ""),
        (["flow.yaml", "--output-format", "xml"], "one of text|json, not 'xml'", "text, json"),
        (["flow.yaml", "other.yaml"], "unexpected word 'other.yaml'", "key=value"),
        (["status"], "`pflow status` needs more words", "pflow status RUN"),
        (["status", "a", "b"], "unexpected word 'b'", "pflow status RUN"),
        (["registry"], "needs to know what to do", "list, search"),
        (["registry", "lst"], "has no 'lst'", 'did you mean "list"?'),
        (["flow.yaml", "-q", "-v"], "exclude each other", ""),
    ],
)
def test_mistakes_are_explained(words: list[str], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert message in caught.value.message and hint in caught.value.hint


@pytest.mark.parametrize(
    "words",
    [
        ["flow.yaml", "--jobs", "0"], ["flow.yaml", "--jobs", "many"], ["flow.yaml", "--timeout", "soon"],
        ["flow.yaml", "--timeout", "nan"], ["flow.yaml", "--timeout", "-1"], ["flow.yaml", "--context", "[1]"],
        ["flow.yaml", "--context", "{a"], ["flow.yaml", "--input", "novalue"], ["flow.yaml", "a=1", "--input", "a=2"],
    ],
)  # fmt: skip
def test_bad_values_are_refused_before_anything_runs(pflow: Pflow, greeting: str, words: list[str]) -> None:
    said = pflow(*(word.replace("flow.yaml", greeting) for word in words))
    assert said.code == 2 and said.out == "" and said.err.startswith("error: ")
    assert "[]" in pflow("runs", "--json").out


@pytest.mark.parametrize(
    "words",
    [
        ["ui"], ["in plain words"],
    ],
)  # fmt: skip
def test_what_comes_later_is_answered_with_a_sentence(pflow: Pflow, greeting: str, words: list[str]) -> None:
    said = pflow(*words)
    assert said.code == 2 and "later version of pflow" in said.err and said.out == ""


def test_bad_words_are_told_as_json_where_json_is_asked_for(pflow: Pflow) -> None:
    said = pflow("flow.yaml", "--output-format", "json", "--jbos", "3")
    assert said.code == 2 and said.json["success"] is False
    assert said.json["errors"][0]["message"] == "pflow has no option --jbos" and said.json["errors"][0]["hint"]
    assert pflow("validate", "nowhere.yaml", "--json").json["valid"] is False
    assert pflow("plan", "nowhere.yaml", "--json").json["nodes"] == []


def test_the_words_of_a_command_are_no_inputs_elsewhere(pflow: Pflow, question: str) -> None:
    """``a=b`` is a fine answer to a question that gives no choices."""
    assert json.dumps(parse(["reply", "RUN", "a=b"]).words) == '["RUN", "a=b"]'

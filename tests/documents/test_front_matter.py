"""Front matter is YAML as everywhere else, with one thing forgiven, and its lines are those of the file."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml

from pflow.documents.front_matter import split
from pflow.documents.source import load
from pflow.errors import Place, Problem, WorkflowError


def values(head: str) -> Any:
    return split(f"---\n{head}\n---\nbody", "x.md")[0].data


def refused(text: str) -> tuple[Problem, ...]:
    with pytest.raises(WorkflowError) as caught:
        split(text, "x.md")
    return caught.value.problems


ALIKE = [
    "a: text",
    "a: 'it''s'\nb: \"x\\n\\u00e9: #\"",
    "a: 1\nb: -2.5\nc: true\nd: null\ne: ~\nf:",
    "a: [x, 'y, z', 1, [2, 3], {k: v}]",
    "a: {memory_mb: 512, open_files: 64}",
    "a:\n  memory_mb: 512\n  inner:\n    deep: x\nb: 1",
    "a:\n- x\n- 1\nb: y",
    "a:\n  - x\n  - 'y: z'\n",
    "a:\n  - b: 1\n    c: 2",
    "a: x # comment\n# another: one\nb: y#z",
    "a: |\n  one: 1\n    two\n\n  three\nb: 1",
    "a: |-\n  one\n  two\n",
    "a: >\n  one\n  two\n\n  three\n",
    "a: one\n  two\n  three\nb: x",
    'a: [x,\n  y,\n  "z"]\nb: 1',
    "a: http://x/y\nb: [http://x/y, c:d]",
    "a: []\nb: {}",
    "\"a\": 1\n'b': 2",
]


@pytest.mark.parametrize("head", ALIKE)
def test_it_reads_what_yaml_reads(head: str) -> None:
    assert values(head) == yaml.safe_load(head)


@pytest.mark.parametrize(
    ("written", "value"),
    [("0o17", 15), ("0x1F", 31), (".inf", math.inf), ("&x 1", 1), ("!!str 5", "5"), ("yes", "yes"), ("017", 17)],
)
def test_it_reads_what_documents_read(written: str, value: Any) -> None:
    assert values(f"a: {written}") == load(f"a: {written}", "x.yaml").data == {"a": value}


@pytest.mark.parametrize("written", ["1e400", "- b", "*x", "{x", "'x' y"])
def test_it_refuses_what_documents_refuse(written: str) -> None:
    with pytest.raises(WorkflowError) as elsewhere:
        load(f"a: {written}\n", "x.md")
    (problem,) = elsewhere.value.problems
    place = Place("x.md", problem.place.line + 1, problem.place.column)
    assert refused(f"---\na: {written}\n---\n") == (Problem(problem.message, place, problem.hint, problem.code),)


@pytest.mark.parametrize(
    ("head", "text"),
    [
        ("description: Use it when: x. Example: <y>", "Use it when: x. Example: <y>"),
        ("description: Use it when:", "Use it when:"),
        ("description: it's: 'x' # no: comment\nb: 1", "it's: 'x'"),
        ("description: Use it\n  when: x\n  and: y\nb: 1", "Use it when: x and: y"),
        ("description: C#: x", "C#: x"),
    ],
)
def test_a_text_without_quotes_may_hold_a_colon(head: str, text: str) -> None:
    """As agents of other tools do, whose parsers forgive it."""
    assert values(head)["description"] == text


def test_what_stands_below_a_text_with_a_colon_keeps_its_place() -> None:
    source, _ = split("---\na: when: it's so\nb: x\nc:\n  d: 1\n---\n", "x.md")
    places = [(place.line, place.column) for place in map(source.place, [("a",), ("b",), ("c", "d")])]
    assert places == [(2, 4), (3, 4), (5, 6)]


@pytest.mark.parametrize("text", ["", " \n", "# Title\n\n---\ntext"])
def test_a_document_without_front_matter_is_all_body(text: str) -> None:
    source, body = split(text, "x.md")
    assert source.data == {} and body == text.strip()


@pytest.mark.parametrize("head", ["", "\n\n", "# nothing: yet\n"])
def test_front_matter_may_be_empty(head: str) -> None:
    source, body = split(f"---\n{head}---\nbody", "x.md")
    assert source.data == {} and body == "body"


def test_the_body_follows_and_lines_are_counted() -> None:
    source, body = split("\ufeff---\r\n# c\r\na: 1\r\nb:\r\n  - x\r\nc: 2\r\n---\r\n\r\nThe body.\r\n---\r\n", "x.md")
    assert [(key, source.key_place((key,)).line) for key in source.data] == [("a", 3), ("b", 4), ("c", 6)]
    assert body == "The body.\n---"


@pytest.mark.parametrize(
    ("head", "line", "said"),
    [
        ("a: 1\njust words", 3, "a key without"),
        ("a: 1\na: 2", 3, "twice"),
        ("a: [1, 2", 2, "not closed"),
        ("a: 1\nb: {x: 1", 3, "not closed"),
        ("a: 'x' y", 2, "after a complete value"),
        ('a: "\\q"', 2, "escape"),
        ("a:\n\tb: 1", 3, "tab"),
        ("a:\n  b: c: d", 3, 'unexpected ":"'),
        ("a: " + "[" * 300, 2, "nested"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(head: str, line: int, said: str) -> None:
    problem = refused(f"---\n{head}\n---\n")[0]
    assert said in problem.message and (problem.place.file, problem.place.line) == ("x.md", line)


def test_front_matter_that_never_ends() -> None:
    (problem,) = refused("---\na: 1\n")
    assert "not closed" in problem.message and problem.place == Place("x.md", 1, 1)

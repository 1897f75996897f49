"""Front matter, without a YAML parser, by the rules of one."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pflow.agents.front import read
from pflow.errors import NodeError


def values(head: str) -> dict[str, Any]:
    return {key: entry.value for key, entry in read(f"---\n{head}\n---\nbody")[0].items()}


ALIKE = [
    "a: text",
    "a: 'it''s'\nb: \"x\\n\\u00e9: #\"",
    "a: 1\nb: -2.5\nc: true\nd: null\ne: ~\nf:",
    "a: [x, 'y, z', 1, [2, 3], {k: v}]",
    "a: {memory_mb: 512, open_files: 64}",
    "a:\n  memory_mb: 512\n  inner:\n    deep: x\nb: 1",
    "a:\n- x\n- 1\nb: y",
    "a:\n  - x\n  - 'y: z'\n",
    "a: x # comment\n# another\nb: y#z",
    "a: |\n  one\n    two\n\n  three\nb: 1",
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


def test_yes_and_no_are_texts() -> None:
    assert values("a: yes\nb: no\nc: [on, off]\nd: 2026-01-01") == {
        "a": "yes", "b": "no", "c": ["on", "off"], "d": "2026-01-01",
    }  # fmt: skip


def test_a_text_without_quotes_may_hold_a_colon() -> None:
    """As agents of other tools do, whose parsers forgive it."""
    assert values("description: Use it when: x. Example: <y>") == {"description": "Use it when: x. Example: <y>"}


def test_a_document_without_front_matter_is_all_body() -> None:
    assert read("# Title\n\n---\ntext") == ({}, "# Title\n\n---\ntext")


def test_the_body_follows_and_lines_are_counted() -> None:
    entries, body = read("\ufeff---\r\n# c\r\na: 1\r\nb:\r\n  - x\r\nc: 2\r\n---\r\n\r\nThe body.\r\n---\r\n")
    assert [(key, entry.line) for key, entry in entries.items()] == [("a", 3), ("b", 4), ("c", 6)]
    assert body == "The body.\n---"


@pytest.mark.parametrize(
    ("head", "line", "said"),
    [
        ("a: 1\njust words", 3, "not understood"),
        ("a: 1\na: 2", 3, "twice"),
        ("a: [1, 2", 2, "not closed"),
        ("a: 1\nb: {x: 1", 3, "not closed"),
        ("a: 'x' y", 2, "complete"),
        ("a: [1 2] 3", 2, "complete"),
        ("a: {x}", 2, "missing"),
        ('a: "\\q"', 2, "escape"),
        ("a:\n\tb: 1", 3, "tab"),
        ("a:\n  - b: 1", 3, "mapping inside a list"),
        ("  a: 1", 2, "not understood"),
        ("a: " + "[" * 100, 2, "too deep"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(head: str, line: int, said: str) -> None:
    with pytest.raises(NodeError, match=said) as raised:
        read(f"---\n{head}\n---\n", "x.md")
    assert raised.value.message.startswith(f"x.md:{line}: ") and raised.value.kind == "validation"


def test_front_matter_that_never_ends() -> None:
    with pytest.raises(NodeError, match=r"x.md:1: .*not closed"):
        read("---\na: 1\n", "x.md")

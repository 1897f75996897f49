"""Whatever is wrong with a workflow: a message with place and hint, exit code 2, no traceback, and nothing was run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Pflow

HEAD = "flow: {name: w}\nnodes:\n"
ECHO = "  - {id: a, type: echo}\n"

WRONG: dict[str, tuple[str | bytes, str, str]] = {
    "empty": ("", ":1:1: the file is empty", "hint: "),
    "blank": ("\n  \n", "the file is empty", "hint: "),
    "binary": (b"\x00\xff\xfe\x01", "not text", "UTF-8"),
    "not utf-8": (b"flow: {name: \xe9}\n", ":1:14: ", "UTF-8"),
    "no mapping": ("- a\n- b\n", "a workflow is a mapping", "looked for"),
    "no dialect": ("colour: red\n", "no workflow of a known dialect", "looked for"),
    "yaml syntax": ("flow: {name: x\nnodes: [", ":1:7: ", "hint: "),
    "duplicate key": (f"flow: {{name: w, name: v}}\nnodes:\n{ECHO}edges: []\n", ":1:", "name"),
    "duplicate id": (f"{HEAD}{ECHO}{ECHO}edges: []\n", ':4:5: two nodes have the id "a"', "unique"),
    "unknown type": (f"{HEAD}  - {{id: a, type: ecko}}\nedges: []\n", 'unknown node type "ecko"', 'mean "echo"'),
    "edge to nowhere": (f"{HEAD}{ECHO}edges:\n  - {{from: a, to: z}}\n", 'there is no node "z"', "nodes: a"),
    "missing edges": (f"{HEAD}{ECHO}", '"edges"', "hint: "),
    "wrong type": (f"{HEAD}{ECHO}edges: none\n", '"edges"', "hint: "),
    "unknown key": (f"{HEAD}  - {{id: a, type: echo, inptu: {{}}}}\nedges: []\n", '"inptu"', 'mean "input"'),
    "unknown param": (f"{HEAD}  - {{id: a, type: echo, input: {{txt: x}}}}\nedges: []\n", 'no param "txt"', '"text"'),
    "cycle": (
        f"{HEAD}{ECHO}  - {{id: b, type: echo}}\nedges:\n  - {{from: a, to: b}}\n  - {{from: b, to: a}}\n",
        "a → b → a", "remove one",
    ),
    "no ancestor": (
        f'{HEAD}{ECHO}  - {{id: b, type: echo, input: {{text: "{{{{a.text}}}}"}}}}\nedges: []\n',
        '"a" does not run before "b"', "add an edge",
    ),
    "guard on no ancestor": (
        f"{HEAD}{ECHO}  - {{id: b, type: echo, when: {{equals: {{var: a.text, value: 1}}}}}}\nedges: []\n",
        '"a" does not run before "b"', "add an edge",
    ),
    "alias bomb": (
        "flow: {name: w}\na: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 10)}]\n" for a, b in zip("abcdefg", "bcdefgh", strict=True))
        + "nodes: *h\nedges: []\n",
        "with its aliases the document grows", "write the document out",
    ),
    "too large": ("# " + "x" * (17 << 20), "too large", "at most 16 MiB"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_document_is_refused_with_place_and_hint(pflow: Pflow, here: Path, case: str) -> None:
    text, message, hint = WRONG[case]
    (here / "w.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    for words in (("w.yaml",), ("run", "w.yaml"), ("validate", "w.yaml"), ("plan", "w.yaml")):
        said = pflow(*words)
        assert said.code == 2 and said.out == "", case
        assert "error: w.yaml" in said.err and message in said.err and hint in said.err, said.err
        assert "Traceback" not in said.err
    assert pflow("runs", "--json").json == []


def test_a_wrong_document_as_json(pflow: Pflow, here: Path) -> None:
    (here / "w.yaml").write_text(WRONG["unknown type"][0])  # type: ignore[arg-type]
    made = pflow("validate", "w.yaml", "--json").json
    assert made["valid"] is False
    (problem,) = made["problems"]
    assert set(problem) == {"code", "node_id", "message", "hint", "location", "warning"}
    assert problem["location"] == {"file": "w.yaml", "line": 3, "column": 19} and problem["node_id"] == "a"
    made = pflow("w.yaml", "--output-format", "json").json
    assert (made["success"], made["status"], made["run_id"]) == (False, "failed", None)
    assert made["errors"][0]["code"] == "unknown-type" and made["errors"][0]["location"]["line"] == 3
    made = pflow("plan", "w.yaml", "--json").json
    assert made["nodes"] == [] and made["problems"][0]["code"] == "unknown-type"


def test_all_problems_are_told_at_once_and_a_flood_is_cut(pflow: Pflow, here: Path) -> None:
    nodes = "".join(f"  - {{id: n{i}, type: ecko}}\n" for i in range(60))
    (here / "w.yaml").write_text(f"{HEAD}{nodes}edges: []\n")
    said = pflow("w.yaml")
    assert said.err.count("unknown node type") == 50 and "and 10 problems more" in said.err
    assert len(pflow("validate", "w.yaml", "--json").json["problems"]) == 60


def test_a_strict_binding_that_is_missing_fails_the_node(pflow: Pflow, here: Path) -> None:
    (here / "w.yaml").write_text(
        f'{HEAD}{ECHO}  - {{id: b, type: echo, input: {{text: "{{{{a.nothing}}}}"}}}}\nedges: [{{from: a, to: b}}]\n'
    )
    said = pflow("w.yaml")
    assert said.code in (1, 2) and "a.nothing" in said.err and "w.yaml:4" in said.err


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["nowhere.yaml"], "there is no file nowhere.yaml", "greeting.yaml"),
        (["greting.yaml"], "there is no file greting.yaml", 'did you mean "greeting.yaml"?'),
        (["validate", "nowhere.yaml"], "there is no file", ""),
        (["."], ". is a folder", "name a workflow file"),
        (["valdate", "greeting.yaml"], "unexpected word", "key=value"),
        (["valdate"], "no saved workflow 'valdate'", "did you mean `pflow validate`?"),
        (["greeting.yaml/x"], "greeting.yaml/x cannot be read", ""),
    ],
)
@pytest.mark.usefixtures("greeting")
def test_a_file_that_is_not_there(pflow: Pflow, words: list[str], message: str, hint: str) -> None:
    said = pflow(*words)
    assert said.code == 2 and message in said.err and hint in said.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(pflow: Pflow, here: Path, greeting: str) -> None:
    (here / greeting).chmod(0)
    assert "cannot be read: Permission denied" in pflow(greeting).err


def test_a_local_file_of_node_types_that_is_broken(pflow: Pflow, here: Path, greeting: str) -> None:
    folder = here / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    (folder / "bad.py").write_text("x = 1\nimport nowhere_at_all\n")
    said = pflow(greeting)
    assert said.code == 2 and "bad.py:2: ModuleNotFoundError" in said.err


def test_a_bug_of_ours_is_one_line_and_a_traceback_on_request(
    pflow: Pflow, greeting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("pflow.cli.run.gather", broken)
    said = pflow(greeting)
    assert said.code == 1 and "internal error: ZeroDivisionError: oops" in said.err and "please report" in said.err
    assert "Traceback" not in said.err and "Traceback" in pflow(greeting, "-v").err


def test_what_would_steer_the_terminal_is_shown_harmless(pflow: Pflow, here: Path) -> None:
    (here / "w.yaml").write_text(
        f'{HEAD}  - {{id: a, type: control.fail, input: {{message: "red \\e[31m and bell \\a"}}}}\nedges: []\n'
    )
    said = pflow("w.yaml")
    assert "\x1b" not in said.err and "\\x1b[31m" in said.err

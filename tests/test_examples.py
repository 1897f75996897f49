"""Documentation runs: the examples give what they promise, and the pages show what the program prints.

In a page, an invisible comment before a fenced block says what the block is:

    <!-- file: NAME -->       the block is written to NAME; below examples/, it must be equal to that file
    <!-- run -->              the block is run (sh or python); `<!-- run exit=1 -->` expects that exit code
    <!-- demo -->             the block is a part of what `make demo` prints

Alone on its line, ``<!-- with: examples/NAME -->`` puts an example beside the files that the page shows.

A ``text`` block right after a ``run`` block is what it prints, stderr and stdout together. In it, durations, dates,
sizes and ids stand for any, and ``…`` stands for anything: a part of a line, or alone on its line for any lines. An id
that a page prints and later uses in a command is the id of the same run in both places.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pflow.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PATIENCE = 60  # seconds before a block that never ends fails its test


# ── examples ──

Pflow = Any


@pytest.fixture
def pflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pflow:
    """The command line in a folder that holds the examples; returns the exit code and stdout."""
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PFLOW_HOME", str(tmp_path / "home"))

    def call(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(list(words))
        return code, capsys.readouterr().out.strip()

    return call


RESULTS = [
    (("release.yaml", "version=3"), 0, "Release 3: published pkg-3-linux.tar pkg-3-mac.tar"),
    (("policies.yaml",), 0, "warm; payments: exit code 7: no connection; legacy: skipped"),
    (("policies.yaml", "legacy=true"), 0, "warm; payments: exit code 7: no connection; legacy: the old way"),
    (("parallel.yaml",), 0, "lint passed, types passed, tests passed"),
    (("parallel.yaml", "--jobs", "1"), 0, "lint passed, types passed, tests passed"),
    (("foreach.yaml",), 0, "HELLO, GRACE!"),
    (("foreach.yaml", 'names=["a","b","c"]', "-o", "each.iterations[2].outputs.greet.text"), 0, "Hello, c"),
    (("branches.yaml",), 0, "sent by bicycle"),
    (("branches.yaml", "size=large"), 0, "sent by lorry"),
    (("approve.yaml",), 3, ""),
    (("approve.yaml", "--yes"), 0, "published site-1.2.tar"),
    (("batch.json",), 0, "2 of 3: Oslo is number 2"),
    (("nested.json", "name=Grace"), 0, "Hello, Grace! How are you?"),
    (("gate.yaml",), 0, "released, with 91% covered"),
    (("gate.yaml", "coverage=70%"), 0, "held back: 70% is not enough"),
    (("words/count.yaml",), 0, "6 words, most of all to"),
]


@pytest.mark.parametrize(("words", "code", "result"), RESULTS, ids=[" ".join(words) for words, _, _ in RESULTS])
def test_an_example_gives_its_result(pflow: Pflow, words: tuple[str, ...], code: int, result: str) -> None:
    assert pflow(*words, "-q") == (code, result)


def test_an_error_edge_is_taken_when_its_node_fails(pflow: Pflow) -> None:
    assert pflow("rescue.json")[1].startswith("no notes: there is no file")
    Path("notes.txt").write_text("buy milk")
    assert pflow("rescue.json") == (0, "the notes say: buy milk")


def test_the_example_node_type_keeps_its_promise(pflow: Pflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("words")
    assert pflow("registry", "verify", "text/word-count")[0] == 0


def test_every_example_is_valid(pflow: Pflow) -> None:
    for path in (*Path().glob("*.yaml"), *Path().glob("*.json"), *Path("parts").iterdir(), Path("words/count.yaml")):
        assert pflow("validate", str(path))[0] == 0, path


# ── pages ──


class Block(NamedTuple):
    """A fenced block of a page."""

    line: int
    mark: str  # what the comment before it says
    language: str
    text: str


_BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(text.count("\n", 0, found.start()) + 1, found["mark"] or "", found["language"], found["text"])
        for found in _BLOCK.finditer(text)
    ]


def expected(page: list[Block], number: int) -> str | None:
    """What a block should print: the text block right after it, if that is not marked as something else."""
    after = page[number + 1] if number + 1 < len(page) else None
    return after.text if after is not None and after.language == "text" and not after.mark else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_the_program_prints(page: Path, tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    for name in re.findall(r"^<!-- with: (examples/\S+) -->$", page.read_text(encoding="utf-8"), re.M):
        reader.write(name, (ROOT / name).read_text(encoding="utf-8"), page.name)
    found = blocks(page)
    for number, block in enumerate(found):
        where = f"{page.name}:{block.line}"
        if block.mark.startswith("file: "):
            reader.write(block.mark.removeprefix("file: "), block.text, where)
        elif block.mark.partition(" ")[0] == "run":
            reader.run(block, expected(found, number), where)
        else:
            assert block.mark in ("", "demo"), f"{where}: what is {block.mark!r}?"


def test_the_demo_prints_what_the_readme_shows() -> None:
    made = subprocess.run([sys.executable, EXAMPLES / "demo.py"], capture_output=True, text=True, timeout=PATIENCE)
    assert made.returncode == 0
    printed = made.stdout + made.stderr
    shown = [line for block in blocks(ROOT / "README.md") if block.mark == "demo" for line in block.text.splitlines()]
    assert shown
    for line in shown:
        assert re.search(f"^{pattern(line)}$", printed, re.M), line


class Reader:
    """Somebody who follows a page, command by command, in an empty folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.home = folder / ".pflow"
        self.known: dict[str, str] = {}  # an id that the page shows → the id that it had here
        programs = folder / "bin"
        for path in (self.folder, programs):
            path.mkdir()
        (programs / "pflow").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pflow "$@"\n')
        (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        for program in programs.iterdir():
            program.chmod(0o755)
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(folder),
            "PFLOW_HOME": str(self.home),
            "USER": "ada",
            "LANG": "C.UTF-8",
        }

    def write(self, name: str, text: str, where: str) -> None:
        if name.startswith("examples/"):
            assert (ROOT / name).read_text(encoding="utf-8") == text, f"{where} is not what {name} says"
            name = name.removeprefix("examples/")
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, block: Block, shown: str | None, where: str) -> None:
        code = int(found[1]) if (found := re.search(r"exit=(\d+)", block.mark)) else 0
        text = block.text
        for id_shown, id_here in self.known.items():
            text = text.replace(id_shown, id_here)
        command = [sys.executable, "-c", text] if block.language == "python" else ["sh", "-c", text]
        made = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        printed = self._as_shown(made.stdout)
        assert made.returncode == code, f"{where}: exit code {made.returncode}\n{printed}"
        if shown is not None:
            self._compare(shown, printed, where)

    def _as_shown(self, printed: str) -> str:
        """Printed text as a page would show it: at home with Ada."""
        return printed.replace(str(self.folder), "/home/ada/work").replace(str(self.home), "/home/ada/.pflow")

    def _compare(self, shown: str, printed: str, where: str) -> None:
        found = re.fullmatch(pattern(shown.rstrip("\n")), printed.rstrip("\n"))
        if found is None:
            lines = difflib.unified_diff(general(shown), general(printed), "shown", "printed", lineterm="")
            pytest.fail("\n".join([f"{where} prints something else", *lines]), pytrace=False)
        ids = [one[0] for one in re.finditer(_ID, shown)]
        self.known |= dict(zip(ids, found.groups(), strict=True))


_ID = r"(?<![\w/-])[A-Za-z0-9][\w.-]*?_\d{8}_\d{6}_[0-9a-f]{8}(?![\w])"
# What differs from run to run: each of these stands for any of its kind.
_VARIES = (
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\dZ)?",
    r"\b\d+(?:\.\d+)?(?:ms|s)\b",
    r"\b\d+ (?:s|min) ago",
    r"\b\d+(?:\.\d+)? (?:bytes|KB|MB)",
    r"(?<=/)[0-9a-f]{16}\b",
)
_SPECIAL = re.compile("|".join([r"^…\n", r"\n…$", "…", _ID, *_VARIES, "  +"]), re.M)


def pattern(shown: str) -> str:
    """A regular expression for whatever a shown text stands for; its groups are the ids, in their order."""
    made, at = [], 0
    for found in _SPECIAL.finditer(shown):
        made += [re.escape(shown[at : found.start()]), _meaning(found[0])]
        at = found.end()
    return "".join([*made, re.escape(shown[at:])])


def _meaning(special: str) -> str:
    if "…" in special:
        return {"…\n": r"(?:.*\n)*?", "\n…": r"(?:\n.*)*", "…": ".*"}[special]
    if special.isspace():
        return " +"
    if re.fullmatch(_ID, special):
        return f"({re.escape(special[:-24])}" + r"\d{8}_\d{6}_[0-9a-f]{8})"
    return next(one for one in _VARIES if re.fullmatch(one.removeprefix("(?<=/)"), special))


def general(text: str) -> list[str]:
    """Lines without what varies, to be compared by a person."""
    made = re.sub(_ID, "ID", text.rstrip("\n"))
    for one in _VARIES:
        made = re.sub(one, "#", made)
    return [re.sub(" +", " ", line) for line in made.splitlines()]


def marks() -> Iterator[tuple[Path, Block]]:
    for page in PAGES:
        for block in blocks(page):
            yield page, block


def test_every_workflow_that_a_page_shows_is_used() -> None:
    """A block of YAML or JSON that is a workflow is a file that some command of the page runs."""
    for page, block in marks():
        if block.language in ("yaml", "json") and re.search(r"^\s*\"?nodes\"?:", block.text, re.M):
            assert block.mark.startswith("file: "), f"{page.name}:{block.line} is run by nobody"


def test_the_table_of_node_types_is_complete(pflow: Pflow) -> None:
    import json

    page = (ROOT / "docs" / "nodes.md").read_text(encoding="utf-8")
    table = page.partition("## Built-in types")[2].partition("\n## ")[0]
    rows = {found[1]: line for line in table.splitlines() if (found := re.match(r"\| `([\w./-]+)`", line))}
    for kind in json.loads(pflow("registry", "list", "--json")[1]):
        row = rows.pop(kind["name"], None)
        assert row is not None, f"{kind['name']} is in no table"
        if kind["origin"] in ("pflow.builtins.model", "pflow.agents.node"):
            continue  # they have pages of their own
        names = [param["name"].rstrip("_") for param in kind["params"]] + (kind["outputs"] or [])
        missing = [name for name in names if not re.search(rf"\b{name}\b", row)]
        assert not missing, f"{kind['name']}: its row lacks {missing}"
        assert kind["effect"] in row, f"{kind['name']} is {kind['effect']}"
    assert not rows, f"no such types: {list(rows)}"

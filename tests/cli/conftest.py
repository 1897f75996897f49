from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pflow.cli.main import main


class Said(NamedTuple):
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Pflow = Callable[..., Said]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def pflow(capsys: pytest.CaptureFixture[str], here: Path) -> Pflow:
    """The command line, in this process."""

    def call(*words: str) -> Said:
        capsys.readouterr()
        code = main(list(words))
        return Said(code, *capsys.readouterr())

    return call


GREETING = """\
flow: {name: greeting, input: {name: world}}
nodes:
  - id: greet
    type: echo
    input: {text: "Hello, {{flow.input.name}}!"}
  - id: shout
    type: echo
    input: {text: "{{greet.text}}", uppercase: true}
edges:
  - {from: greet, to: shout}
"""

# A workflow whose second node fails until the file "mended" exists.
BROKEN = """\
flow: {name: broken}
nodes:
  - {id: first, type: shell, input: {command: "echo done >> first.log; echo one"}}
  - id: second
    type: shell
    input: {command: "test -e mended || { echo 'not mended' >&2; exit 3; }; echo two"}
  - {id: third, type: echo, input: {text: "{{second.stdout}} and three"}}
edges:
  - {from: first, to: second}
  - {from: second, to: third}
"""

QUESTION = """\
flow: {name: question}
nodes:
  - {id: approve, type: ask, input: {question: "Deploy?", choices: ["yes", "no"]}}
  - {id: say, type: echo, input: {text: "answer: {{approve.answer}}"}}
edges:
  - {from: approve, to: say}
"""


@pytest.fixture
def greeting(here: Path) -> str:
    (here / "greeting.yaml").write_text(GREETING)
    return "greeting.yaml"


@pytest.fixture
def broken(here: Path) -> str:
    (here / "broken.yaml").write_text(BROKEN)
    return "broken.yaml"


@pytest.fixture
def question(here: Path) -> str:
    (here / "question.yaml").write_text(QUESTION)
    return "question.yaml"

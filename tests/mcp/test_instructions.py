"""The page for agents, followed to the letter."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pflow.app.instructions import instructions as text
from pflow.cli.main import main

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
INVALID = ("wrong.json",)


def blocks() -> list[tuple[str, str, str]]:
    return [(lang, name or "", body) for lang, name, body in BLOCK.findall(text())]


@pytest.fixture
def files(here: Path) -> Path:
    """Every file of the page, where the page has it."""
    for _, name, body in blocks():
        if name:
            path = here / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)
    return here


def test_the_page_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["instructions"]) == 0
    assert capsys.readouterr().out == text()


def test_every_workflow_of_the_page_is_valid(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for lang, name, _ in blocks() if lang == "json"]
    assert len(names) > 4
    for name in names:
        assert main(["validate", name]) == (2 if name in INVALID else 0), name


def test_every_command_of_the_page_prints_what_it_says(files: Path) -> None:
    shown = [body for lang, _, body in blocks() if lang == "console"]
    assert len(shown) > 4
    for body in shown:
        for step in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, _, expected = step.partition("\n")
            got = subprocess.run(
                ["sh", "-c", command.replace("pflow ", f"{sys.executable} -m pflow ", 1)],
                cwd=files, capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            made = got.stdout + got.stderr
            pattern = expected.replace("[", "[[]").replace("…", "*")
            assert fnmatch.fnmatchcase(made, pattern), f"{command}\n{made}\n— expected —\n{expected}"


def test_every_command_and_tool_that_the_page_names_exists() -> None:
    from pflow.cli.commands import COMMANDS, FIRST
    from pflow.mcp_server.tools import OFFERS

    named = re.findall(r"`pflow ([a-z]+)(?: ([a-z]+))?", text())
    for first, second in named:
        if first in FIRST and first not in COMMANDS:
            assert f"{first} {second}" in COMMANDS
    tools = re.search(r"offers all of this as tools: (.*?)\. There", text(), re.S)
    assert tools is not None
    assert set(re.findall(r"`(\w+)`", tools[1])) <= set(OFFERS)

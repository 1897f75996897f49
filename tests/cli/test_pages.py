"""Help that teaches, completion for shells, and a start that imports next to nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pflow.cli.commands import COMMANDS
from pflow.cli.options import OPTIONS
from pflow.cli.pages import page
from pflow.version import __version__
from tests.cli.conftest import Pflow
from tests.cli.processes import COMMAND


def test_the_version(pflow: Pflow) -> None:
    assert pflow("--version")[:2] == (0, f"pflow {__version__}\n")


def test_help_names_every_command_and_exit_code(pflow: Pflow) -> None:
    everything = pflow("--help").out
    for name in COMMANDS:
        assert name in everything
    for code in ("0", "1", "2", "3", "130"):
        assert f"\n  {code} " in everything
    assert pflow().out == pflow("help").out == pflow("-h").out == everything


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_page_with_its_options(pflow: Pflow, name: str) -> None:
    said = pflow("help", *name.split())
    assert said.code == 0 and COMMANDS[name].usage in said.out
    assert pflow(*name.split(), "--help").out == said.out
    for option in COMMANDS[name].options:
        assert f"--{option}" in said.out
    if not COMMANDS[name].later:
        assert COMMANDS[name].function


def test_help_for_a_group_and_for_nothing_there_is(pflow: Pflow) -> None:
    assert "registry describe TYPE" in pflow("registry", "--help").out
    said = pflow("help", "regsitry")
    assert said.code == 2 and "did you mean" in said.err


def test_every_option_belongs_to_a_command_and_is_explained() -> None:
    used = {option for command in COMMANDS.values() for option in command.options} | {"help", "version"}
    assert used == set(OPTIONS) and all(option.text for option in OPTIONS.values())


def test_pages_fit_a_screen() -> None:
    for name in ("", "registry", *COMMANDS):
        assert max(map(len, page(name).splitlines())) <= 120, name


def test_the_workflow_on_the_help_page_runs(pflow: Pflow, here: Path) -> None:
    lines = page().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("  flow:"))
    text = "\n".join(line[2:] for line in lines[start : lines.index("", start)])
    assert set(yaml.safe_load(text)) == {"flow", "nodes", "edges"}
    (here / "hello.yaml").write_text(text)
    assert pflow("hello.yaml", "-p").out.strip() == "13"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid(pflow: Pflow, here: Path, shell: str) -> None:
    script = pflow("completion", shell).out
    assert "validate" in script and "on-doubt" in script
    if shutil.which(shell):
        (here / "script").write_text(script)
        assert subprocess.run([shell, "-n", "script"], cwd=here, check=False).returncode == 0


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("pflow va", "validate"), ("pflow registry de", "describe"), ("pflow f.yaml --on-doubt r", "retry"),
        ("pflow resume gre", "greeting_"), ("pflow f.yaml --vali", "--validate-only"), ("pflow completion f", "fish"),
    ],
)  # fmt: skip
def test_bash_completes(pflow: Pflow, here: Path, greeting: str, words: str, wanted: str) -> None:
    pflow(greeting)
    (here / "script").write_text(pflow("completion", "bash").out)
    last = words.split()
    code = (
        f'source ./script; COMP_WORDS=({words}); COMP_CWORD={len(last) - 1}; _pflow; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", code], cwd=here, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(wanted) and done.stderr == ""


def test_an_unknown_shell(pflow: Pflow) -> None:
    assert pflow("completion", "tcsh").code == 2


def imported(here: Path, *words: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", *COMMAND[1:], *words]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True, env=dict(os.environ))
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines[1:]}


def test_asking_for_the_version_imports_next_to_nothing(here: Path) -> None:
    heavy = {"asyncio", "msgspec", "yaml", "rich", "argparse", "httpx", "json", "logging", "inspect", "dataclasses"}
    assert not heavy & imported(here, "--version")
    assert not heavy & imported(here, "--help")


def test_a_run_imports_no_more_than_it_needs(here: Path, greeting: str) -> None:
    heavy = {"rich", "argparse", "httpx", "multiprocessing", "importlib_metadata", "email", "http"}
    assert not heavy & imported(here, greeting)

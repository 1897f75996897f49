"""``settings`` and ``registry``."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from pflow.settings import DESCRIPTIONS
from tests.cli.conftest import Pflow


def test_settings_are_shown_with_what_they_mean(pflow: Pflow) -> None:
    text = pflow("settings", "show").out
    for name, about in DESCRIPTIONS.items():
        assert about in text and name.partition(".")[0] in text
    assert pflow("settings").out == text
    assert pflow("settings", "show", "--json").json["cache.ttl"] == "24h"


def test_a_setting_is_changed_and_given_back(pflow: Pflow, home: Path) -> None:
    assert pflow("settings", "cache", "ttl", "48h").code == 0
    assert pflow("settings", "cache", "ttl").out == "48h\n"
    assert "cache ttl = 48h   (set)" in pflow("settings", "cache", "show").out
    assert json.loads((home / "settings.json").read_text()) == {"cache": {"ttl": "48h"}}
    assert pflow("settings", "cache", "iteration-mode", "off").code == 0
    assert pflow("settings", "cache.iteration_mode").out == "off\n"
    assert pflow("settings", "cache", "ttl", "--unset").code == 0
    assert pflow("settings", "cache", "ttl").out == "24h\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cach"], 'did you mean "cache"?'), (["cache", "tll", "1h"], 'did you mean "cache.ttl"?'),
        (["cache", "tll"], 'did you mean "cache.ttl"?'), (["cache", "ttl", "soon"], "not a duration"),
        (["cache", "max-mb", "lots"], "whole number"), (["cache", "ttl", "1h", "--unset"], "not both"),
        (["show", "cache"], "no section"),
    ],
)  # fmt: skip
def test_wrong_settings_are_explained(pflow: Pflow, words: list[str], message: str) -> None:
    said = pflow("settings", *words)
    assert said.code == 2 and message in said.err


def test_a_secret_is_kept_and_never_shown(pflow: Pflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hush-hush\n"))
    said = pflow("settings", "env", "TOKEN", "-")
    assert said.code == 0
    for words in (["show"], ["env", "show"], ["env", "TOKEN"], ["show", "--json"]):
        shown = pflow("settings", *words)
        assert "TOKEN" in shown.out or "[redacted]" in shown.out
        assert "hush" not in shown.out + shown.err + said.out + said.err


def test_a_damaged_settings_file_is_told(pflow: Pflow, home: Path, greeting: str) -> None:
    home.mkdir()
    (home / "settings.json").write_text('{"cache":\n  {"ttl": }}')
    said = pflow(greeting)
    assert said.code == 2 and "settings.json:2" in said.err


# Node types.


def test_node_types_are_listed_found_and_described(pflow: Pflow) -> None:
    assert "shell " in pflow("registry", "list").out
    names = [kind["name"] for kind in pflow("registry", "search", "exit", "command", "--json").json]
    assert "shell" in names and "echo" not in names
    said = pflow("registry", "describe", "shell").out
    assert "command: str  required" in said and "Outputs: stdout" in said and "(impure)" in said
    made = pflow("registry", "describe", "echo", "--json").json
    assert made["effect"] == "pure" and made["params"][0] == {
        "name": "text", "type": "str", "required": False, "default": "",
    }  # fmt: skip
    assert "no node type mentions" in pflow("registry", "search", "flibbertigibbet").err
    assert pflow("registry", "search", "flibbertigibbet", "--json").json == []


def test_local_node_types_are_known(pflow: Pflow, here: Path) -> None:
    folder = here / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    (folder / "t.py").write_text(
        "from pflow import node\n@node('t/double', version='2')\ndef double(n: int) -> int:\n    '''Twice n.'''\n"
        "    return n * 2\n"
    )
    assert "Twice n." in pflow("registry", "list").out
    assert "t/double@2" in pflow("registry", "describe", "t/double").out
    assert pflow("registry", "run", "t/double", "n=21").out == "42\n"


def test_one_node_runs_by_itself(pflow: Pflow) -> None:
    assert pflow("registry", "run", "echo", "text=a {{b}}", "count=2").out == "a {{b}} a {{b}}\n"
    assert pflow("registry", "run", "echo", "message=1e5", "-p").out == "1e5\n"
    assert pflow("registry", "run", "constant", "value=null", "-o", "constant.value").out == ""
    assert pflow("registry", "run", "shell", "command=exit 4").code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ecko"], 'did you mean "echo"?'), (["echo", "txt=x"], 'did you mean "text"?'),
        (["shell"], 'needs the param "command"'), (["echo", "count=many"], "must be int"),
    ],
)  # fmt: skip
def test_a_node_that_cannot_run(pflow: Pflow, words: list[str], message: str) -> None:
    said = pflow("registry", "run", *words)
    assert said.code in (1, 2) and message in said.err
    if words == ["ecko"]:
        assert message in pflow("registry", "describe", *words).err


# Secrets for runs.

SECRET = {
    "inputs": {"key": {"type": "string", "secret": True}},
    "nodes": [{"id": "n", "type": "shell", "params": {"command": "printf %s $K | wc -c", "env": {"K": "${key}"}}}],
}


def test_a_secret_input_is_given_or_in_the_settings_or_in_the_environment(
    pflow: Pflow, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "w.json").write_text(json.dumps(SECRET))
    said = pflow("w.json")
    assert said.code == 2 and 'the input "key" is missing' in said.err
    monkeypatch.setenv("key", "4444")
    assert pflow("w.json").out == "4\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("7777777\n"))
    pflow("settings", "env", "key", "-")
    assert pflow("w.json").out == "7\n" and pflow("plan", "w.json").code == 0
    assert pflow("w.json", "--validate-only").code == 0
    assert pflow("w.json", "key=55555").out == "5\n"
    assert "7777777" not in pflow("trace").out


def test_the_environment_is_asked_for_secrets_only(pflow: Pflow, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = {**SECRET, "inputs": {"key": {"type": "string"}}}
    (here / "w.json").write_text(json.dumps(flow))
    monkeypatch.setenv("key", "4444")
    assert pflow("w.json").code == 2

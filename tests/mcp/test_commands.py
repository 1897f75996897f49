"""``pflow mcp add``, ``import``, ``sync``, ``list`` and ``remove``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pflow import settings
from pflow.errors import WorkflowError
from pflow.mcp import config
from tests.cli.conftest import Pflow, pflow
from tests.mcp.conftest import SCRIPT

__all__ = ["pflow"]


def test_a_server_is_added_synced_listed_called_and_removed(pflow: Pflow) -> None:
    said = pflow("mcp", "add", "small", "--", sys.executable, SCRIPT, "--garbage")
    assert said.code == 0 and "next: pflow mcp sync small" in said.err
    assert "never asked" in pflow("mcp", "list").out
    said = pflow("mcp", "sync")
    assert said.code == 0 and "mcp-small-add" in said.out and "13 tools, 13 new" in said.err
    view = pflow("mcp", "list", "--json").json[0]
    assert view["name"] == "small" and view["program"] == "small 1.0" and "mcp-small-add" in view["types"]
    page = pflow("registry", "describe", "mcp-small-shout").out
    assert "text: str  required  What to shout" in page and 'From: the MCP server "small"' in page
    said = pflow("registry", "run", "mcp-small-add", "a=1", "b=2", "--json")
    assert said.code == 0 and said.json["result"] == {"sum": 3, "even": False}
    assert pflow("mcp", "remove", "small").code == 0
    assert pflow("registry", "describe", "mcp-small-add").code == 2


def test_a_file_of_another_program_is_imported_as_it_is(pflow: Pflow, here: Path, home: Path) -> None:
    servers = {
        "files": {"command": "npx", "args": ["-y", "server-files", "."], "env": {"MODE": "fast"}, "autoApprove": []},
        "remote": {"type": "http", "url": "https://example.com/mcp?key=abc", "headers": {"X-Word": "plain"}},
    }
    (here / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    assert pflow("mcp", "import", ".mcp.json").code == 0
    kept = json.loads((home / "mcp.json").read_text())
    assert kept["mcpServers"]["files"] == {
        "command": "npx",
        "args": ["-y", "server-files", "."],
        "env": {"MODE": "fast"},
    }
    assert os.stat(home / "mcp.json").st_mode & 0o777 == 0o600
    assert "key=abc" not in pflow("mcp", "list").out
    said = pflow("mcp", "import", ".mcp.json")
    assert said.code == 2 and 'there is an MCP server "files" already' in said.err
    assert pflow("mcp", "import", ".mcp.json", "--yes").code == 0


def test_secrets_in_plain_text_are_moved_to_the_settings(pflow: Pflow, here: Path, home: Path) -> None:
    servers = {
        "one": {"command": "a", "env": {"API_KEY": "first-secret"}},
        "two": {"command": "b", "env": {"API_KEY": "second-secret", "OTHER_TOKEN": "${MINE}"}},
        "three": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer third-secret"}},
    }
    (here / "servers.json").write_text(json.dumps({"mcpServers": servers}))
    said = pflow("mcp", "import", "servers.json")
    assert "API_KEY, AUTHORIZATION, TWO_API_KEY" in said.err
    assert "secret" not in (home / "mcp.json").read_text()
    kept = config.load()
    assert kept["one"].env == {"API_KEY": "${API_KEY}"}
    assert kept["two"].env == {"API_KEY": "${TWO_API_KEY}", "OTHER_TOKEN": "${MINE}"}
    assert settings.load().env["TWO_API_KEY"] == "second-secret"
    assert config.resolved("three", kept["three"]).headers == {"Authorization": "Bearer third-secret"}


def test_variables_and_headers_are_declared(pflow: Pflow) -> None:
    assert pflow("mcp", "add", "a", "--env", "WORD=x=y", "--env", "KEY", "--", "prog", "--flag").code == 0
    assert pflow("mcp", "add", "b", "https://example.com/mcp", "--header", "X-Token: ${T}").code == 0
    assert config.load()["a"] == config.Server(command="prog", args=("--flag",), env={"WORD": "x=y", "KEY": "${KEY}"})
    assert config.load()["b"].headers == {"X-Token": "${T}"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["add", "x"], "needs more words"),
        (["add", "a/b", "--", "prog"], "cannot be the name of a server"),
        (["add", "x", "--header", "A: b", "--", "prog"], "only a server at a URL takes headers"),
        (["add", "x", "http://localhost", "--env", "A=b"], "takes no command and no variables"),
        (["add", "x", "--env", "=b", "--", "prog"], "is no variable"),
        (["sync"], "there are no MCP servers to ask"),
        (["sync", "nobody"], 'there is no MCP server "nobody"'),
        (["remove", "nobody"], 'there is no MCP server "nobody"'),
        (["import", "nowhere.json"], "cannot be read"),
        (["import", "list.json"], "lists no MCP servers"),
        (["import", "text.json"], "text.json:1:1: this is not JSON"),
        (["import", "number.json"], 'number.json:1:34: "command" must be text, not a number'),
        (["import", "time.json"], '"timeout" must be above 0, not -1'),
        (["import", "key.json"], 'did you mean "headers"?'),
        (["import", "both.json"], "needs a command or a URL, and not both"),
        (["import", "type.json"], 'has the type "carrier-pigeon"'),
        (["serve", "--port", "80"], "--port is for --http"),
        (["serve", "--allow", "nowhere"], "nowhere is no folder"),
    ],
)
def test_bad_words_and_files_are_told(pflow: Pflow, here: Path, words: list[str], says: str) -> None:
    documents = {
        "list": "[]", "text": "hello", "number": '{"mcpServers": {"a": {"command": 1}}}',
        "time": '{"mcpServers": {"a": {"command": "x", "timeout": -1}}}',
        "key": '{"mcpServers": {"a": {"url": "http://y", "header": {}}}}',
        "both": '{"mcpServers": {"a": {"command": "x", "url": "http://y"}}}',
        "type": '{"mcpServers": {"a": {"url": "http://y", "type": "carrier-pigeon"}}}',
    }  # fmt: skip
    for name, text in documents.items():
        (here / f"{name}.json").write_text(text)
    said = pflow("mcp", *words)
    assert said.code == 2 and says in said.err, said.err
    assert config.load() == {}


def test_everything_wrong_in_a_file_is_told_at_once(here: Path) -> None:
    text = """{"mcpServers": {
        "one": {"comand": "npx"},
        "two": {"command": "x", "args": ["a", 1], "env": {"PORT": 80}},
        "three": {},
        "a/b": {"url": "http://y", "disabled": "yes", "alwaysAllow": ["z"]}}}"""
    with pytest.raises(WorkflowError) as caught:
        config.parse(text.encode(), "servers.json")
    assert [(problem.place.line, problem.message) for problem in caught.value.problems] == [
        (2, '"one" has no key "comand"'),
        (3, "args[1] must be text, not a number"),
        (3, '"PORT" must be text, not a number'),
        (4, 'server "three" needs a command or a URL, and not both'),
        (5, '"disabled" must be true or false, not text'),
    ]


def test_one_server_that_fails_does_not_keep_the_others_from_being_asked(pflow: Pflow) -> None:
    pflow("mcp", "add", "good", "--", sys.executable, SCRIPT)
    pflow("mcp", "add", "bad", "--", sys.executable, SCRIPT, "--die")
    said = pflow("mcp", "sync", "--json")
    assert said.code == 1 and "no licence found" in said.err
    good, bad = said.json
    assert len(good["types"]) == 13 and bad["types"] == []
    assert "ended before it was ready" in bad["errors"][0]["message"]


def test_what_a_server_offered_before_stays_when_it_cannot_be_asked(pflow: Pflow, home: Path) -> None:
    pflow("mcp", "add", "small", "--", sys.executable, SCRIPT)
    pflow("mcp", "sync")
    document = json.loads((home / "mcp.json").read_text())
    document["mcpServers"]["small"]["args"].append("--die")
    (home / "mcp.json").write_text(json.dumps(document))
    assert pflow("mcp", "sync").code == 1
    assert pflow("registry", "describe", "mcp-small-add").code == 0

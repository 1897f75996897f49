"""Tools as node types: known after a sync, without starting a server."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

import pflow
from pflow.app import Options, registry_for
from pflow.mcp import catalogue, config
from pflow.mcp.config import Server
from pflow.mcp.sync import sync
from pflow.model.workflow import Node, Workflow
from pflow.nodes.registry import Registry
from tests.mcp.conftest import flow, known, one, synced


def registry() -> Registry:
    return registry_for(Workflow("", "", ()), Options())


def test_a_synced_tool_is_a_type_with_its_schema_as_params() -> None:
    synced()
    config.add({"small": Server(command="nothing-that-could-be-started")}, replace=True)
    kind = registry().get("MCP-small-add")
    assert kind.name == "mcp-small-add" and kind.doc == "To add."
    assert list(kind.params) == ["a", "b"] and kind.params["a"].required and not kind.open
    assert kind.declared.outputs == ("result", "sum", "even", "content")
    assert registry().get("mcp_small_shout").declared.outputs is None


def test_wrong_params_and_outputs_of_a_tool_are_found_before_anything_runs() -> None:
    synced()
    nodes = (
        Node("a", "mcp-small-add", {"a": 1, "c": 2}),
        Node("b", "mcp-small-die_", {}),
        Node("c", "mcp-other-die", {}),
    )
    with pytest.raises(pflow.WorkflowError) as caught:
        pflow.run_sync(flow(*nodes))
    told = str(caught.value)
    assert 'mcp-small-add has no param "c"' in told and 'needs the param "b"' in told
    assert 'unknown node type "mcp-other-die"\n  hint: MCP servers: small' in told


def test_a_type_of_a_server_that_was_never_asked_says_so() -> None:
    known()
    assert registry().hint("mcp-small-add") == (
        'the MCP server "small" was never asked for its tools: pflow mcp sync small'
    )
    synced()
    assert 'did you mean "mcp-small-shout"?' in registry().hint("mcp-small-shouts")
    assert "no MCP server is known here" in _without_servers().hint("mcp-small-add")


def _without_servers() -> Registry:
    config.remove("small")
    return registry()


def test_a_tool_is_impure_unless_read_only_and_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    from pflow.cli.main import main

    synced()
    assert registry().get("mcp-small-add").effect_for({}) == "impure"
    assert main(["registry", "accept", "mcp-small-add"]) == 0
    assert registry().get("mcp-small-add").effect_for({}) == "quiet"
    assert main(["registry", "accept", "mcp-small-shout"]) == 2
    assert "its server does not call it read-only" in capsys.readouterr().err
    assert registry().get("mcp-small-shout").effect_for({}) == "impure"


def test_what_was_accepted_is_forgotten_when_the_server_changes() -> None:
    from pflow.nodes.purity import Standings

    synced()
    Standings().set(registry().get("mcp-small-add"), "accepted")
    synced("--garbage")
    assert registry().get("mcp-small-add").effect_for({}) == "impure"


def test_a_read_only_tool_that_was_accepted_is_tried_again(here: Path) -> None:
    from pflow.model.workflow import Policy, Retry
    from pflow.nodes.purity import Standings

    synced()
    Standings().set(registry().get("mcp-small-die_once"), "accepted")
    node = Node("n", "mcp-small-die_once", {"path": str(here / "mark")}, policy=Policy(retry=Retry(2)))
    result = pflow.run_sync(flow(node))
    assert result.success and result.visits["n#1"].attempts == 2


def test_tools_whose_types_would_be_called_the_same_are_told() -> None:
    synced()
    known(name="small-sh")
    catalogue.keep(catalogue.Offered("small-sh", 0.0, (catalogue.ServerTool("out"),)))
    known()
    made = asyncio.run(sync("small"))
    assert made.warnings == ("out of small-sh is hidden by shout of small: both are called mcp-small-sh-out",)


def test_null_for_an_optional_param_is_left_out() -> None:
    synced()
    assert one("shout", {"text": "hi", "times": None}).outputs["n"] == {"result": "HI"}


def test_an_agent_uses_mcp_tools(here: Path) -> None:
    synced()
    answers = [
        {"tool_calls": [{"name": "mcp-small-add", "arguments": {"a": 2, "b": 40}}]},
        {"tool_calls": [{"name": "mcp-small-add", "arguments": {"a": 2}}]},
        "forty-two",
    ]
    (here / "answers.json").write_text(json.dumps({"answers": answers, "calls": "calls.jsonl"}))
    folder = here / ".pflow" / "agents"
    folder.mkdir(parents=True)
    (folder / "adder.md").write_text(
        "---\nname: adder\ntools: [mcp-small-add]\nmodel: script:answers.json\n---\nYou add."
    )
    result = pflow.run_sync(flow(Node("n", "agent", {"agent": "adder", "prompt": "2 + 40?"})))
    assert result.success, result.error
    assert result.outputs["n"]["text"] == "forty-two"
    calls = [json.loads(line) for line in (here / "calls.jsonl").read_text().splitlines()]
    assert calls[0]["tools"][0]["parameters"]["properties"]["a"] == {"type": "integer", "minimum": -1000}
    told = [message["content"] for message in calls[2]["messages"] if message["role"] == "tool"]
    assert '"sum":42' in told[0] and told[1].startswith("Error: ") and '"b"' in told[1]


HEAVY = {"anyio", "httpx2", "mcp", "mcp_types", "pydantic", "starlette", "uvicorn"}
LAZY = """
import sys, pflow
{run}
print(sorted({{name.partition(".")[0] for name in sys.modules}} & {heavy}))
"""


@pytest.mark.parametrize(
    "run",
    [
        "",
        "from pflow.cli.main import main; main(['--version'])",
        "from pflow.cli.main import main; main(['registry', 'list'])",
        "from pflow.model.workflow import Node, Workflow\n"
        "assert pflow.run_sync(Workflow('w', 'test', (Node('a', 'echo', {'text': 'hi'}),)), keep=False).success",
    ],
)
def test_whoever_calls_no_tool_imports_nothing_of_it(run: str) -> None:
    synced()
    made = subprocess.run(
        [sys.executable, "-c", LAZY.format(run=run, heavy=HEAVY)], capture_output=True, text=True, check=True
    )
    assert made.stdout.splitlines()[-1] == "[]"

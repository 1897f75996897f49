"""The iteration cache, saved workflows, pipelines and promises, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Pflow

FLOW = {
    "inputs": {"word": {"type": "string", "default": "hi"}},
    "nodes": [
        {"id": "fetch-data", "type": "shell", "params": {"command": "echo ${word} >> log.txt; echo ${word}"}},
        {"id": "process", "type": "shell", "params": {"command": "echo ${fetch-data.stdout}! >> log.txt; echo done"}},
        {"id": "say", "type": "echo", "params": {"text": "${process.stdout}", "uppercase": True}},
    ],
}


@pytest.fixture
def flow(here: Path) -> str:
    write(here, FLOW)
    return "flow.json"


def write(here: Path, document: dict[str, Any]) -> None:
    (here / "flow.json").write_text(json.dumps(document))


def edited(**params: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(FLOW))
    for node in document["nodes"]:
        node["params"] |= params.get(node["id"].replace("-", "_"), {})
    return document


def test_a_file_is_iterated_on_and_says_so(pflow: Pflow, here: Path, flow: str) -> None:
    assert pflow(flow).out == "DONE\n"
    said = pflow("./" + flow)
    assert said.out == "DONE\n" and said.err.count("(cached, ") == 3
    assert pflow(str(here / flow)).err.count("(cached, ") == 3
    assert (here / "log.txt").read_text() == "hi\nhi!\n"
    made = pflow(flow, "--output-format", "json").json
    assert [step["cached"] for step in made["execution"]["steps"]] == [True] * 3 and made["nodes_executed"] == 0


def test_an_edit_re_runs_what_changed_and_what_is_below_and_names_it(pflow: Pflow, here: Path, flow: str) -> None:
    pflow(flow)
    write(here, edited(fetch_data={"command": "echo new"}))
    said = pflow(flow).err
    assert "ℹ Node 'fetch-data' config changed, re-executing... (params.command)" in said
    assert "ℹ Node 'process' invalidated (upstream changed) (fetch-data)" in said
    assert "✓ Node 'say' completed (cached, " in said  # what it was given is the same


def test_plan_says_what_would_run_and_why(pflow: Pflow, here: Path, flow: str) -> None:
    pflow(flow)
    nodes = pflow("plan", flow, "--json").json["nodes"]
    assert [node["cached"] for node in nodes] == [True, True, True]
    write(here, edited(process={"command": "echo other"}))
    nodes = pflow("plan", flow, "--json").json["nodes"]
    assert [node["cached"] for node in nodes] == [True, False, False]
    assert "config changed: params.command" in nodes[1]["reason"] and "upstream" in nodes[2]["reason"]
    assert (here / "log.txt").read_text() == "hi\nhi!\n"


def test_cache_status_why_and_clear(pflow: Pflow, here: Path, flow: str) -> None:
    pflow(flow)
    write(here, edited(process={"command": "exit 3"}))
    pflow(flow)
    said = pflow("cache", "status", flow).out
    assert "✓ fetch-data" in said and "cached (" in said and "✗ process" in said and "failed: exit code 3" in said
    why = pflow("cache", "why", flow, "process").out
    assert (
        "process would run: config changed: params.command" in why
        and "≠ params.command" in why
        and "= type: shell" in why
    )
    assert pflow("cache", "clear", flow).code == 0
    assert "·" in pflow("cache", "status", flow).out
    assert "Cleared the cache of" in pflow("cache", "clear", "--all").err
    assert pflow("cache", "why", flow, "proces").code == 2 and pflow("cache", "clear").code == 2


def test_no_cache_and_rerun(pflow: Pflow, here: Path, flow: str) -> None:
    pflow(flow)
    assert "cached" not in pflow(flow, "--no-cache").err
    said = pflow(flow, "--rerun", "process").err
    assert said.count("(cached") == 1 and "'fetch-data' completed (cached" in said
    assert pflow(flow, "--rerun", "nowhere").code == 2


def test_settings_turn_it_off(pflow: Pflow, flow: str) -> None:
    assert pflow("settings", "cache", "iteration-mode", "off").code == 0
    pflow(flow)
    assert "cached" not in pflow(flow).err


def test_saved_workflows_are_run_by_name_and_whole(pflow: Pflow, here: Path, flow: str) -> None:
    assert pflow("workflow", "save", flow, "--name", "mine").code == 0
    assert "mine" in pflow("workflow", "list").out and "word: string" in pflow("workflow", "describe", "mine").out
    assert pflow("mine", "word=yo").out == "DONE\n"
    assert "cached" not in pflow("mine", "word=yo").err
    assert pflow("workflow", "save", flow, "--name", "mine").code == 2
    assert pflow("workflow", "save", flow, "--name", "mine", "--yes").code == 0
    assert pflow("workflow", "delete", "mine").code == 0 and pflow("mine").code == 2
    (here / "mine").write_text(json.dumps(FLOW))
    assert pflow("mine").out == "DONE\n"  # a file that exists is a file


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("w.json", '{"nodes": [{"id": "s", "type": "workflow", "params": {"workflow_ref": "parts/in.json"}}]}',
         'and call it so: "workflow_name": "in"'),
        ("w.yaml", "name: w\nnodes: [{id: s, workflow: parts/in.yaml}]\n", "and call it so: workflow: in.yaml"),
        ("w.yaml", "name: w\nnodes: [{id: s, parallel_tasks: [{workflow: parts/in.yaml}], prompt: x}]\n", "in.yaml"),
        ("w.yaml", "flow: {name: w}\nnodes: [{id: s, type: agent, input: {promptFile: p.md}}]\nedges: []\n",
         "write the text itself"),
    ],
)  # fmt: skip
def test_a_workflow_that_needs_files_beside_it_is_not_saved(
    pflow: Pflow, here: Path, name: str, text: str, said: str
) -> None:
    (here / name).write_text(text)
    made = pflow("workflow", "save", name, "--name", "mine")
    assert made.code == 2 and f"{name}:" in made.err and 'node "s"' in made.err and said in made.err
    assert "no workflows" in pflow("workflow", "list").err


def test_saved_workflows_call_each_other(pflow: Pflow, here: Path, flow: str) -> None:
    """By name; and by path, as a routed one does, once the other is saved."""
    calls = {"id": "s", "type": "workflow", "params": {"workflow_name": "inner"}}
    (here / "outer.json").write_text(json.dumps({"nodes": [calls], "outputs": {"o": {"source": "${s}"}}}))
    (here / "routed.yaml").write_text(f"name: routed\nnodes: [{{id: s, workflow: inner{Path(flow).suffix}}}]\n")
    assert pflow("workflow", "save", "routed.yaml", "--name", "routed").code == 2
    for file, name in ((flow, "inner"), ("outer.json", "outer"), ("routed.yaml", "routed")):
        assert pflow("workflow", "save", file, "--name", name).code == 0
    assert pflow("outer").code == 0 and pflow("routed").code == 0


@pytest.mark.parametrize(
    "words",
    [
        ["echo --text hi --count 2 >> echo --uppercase"],
        ["echo", "--text", "hi", "--count", "2", ">>", "echo", "--uppercase"],
        ["-q", "run", "echo", "--text", "hi", "--count=2", ">>", "echo", "--uppercase"],
    ],
)
def test_pipelines(pflow: Pflow, here: Path, words: list[str]) -> None:
    said = pflow(*words)
    assert said.out == "HI HI\n" and said.code == 0


def test_directives_of_a_pipeline_are_no_params(pflow: Pflow, here: Path) -> None:
    nodes = pflow("plan", "fetch_url --url http://127.0.0.1:9/x --retries 3 >> echo", "--json").json["nodes"]
    assert nodes[0]["exec"]["retries"] == 3 and nodes[0]["params"] == {"url": "http://127.0.0.1:9/x"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("echo >>", "ends with >>"),
        ("ecko --text x >> echo", 'did you mean "echo"'),
        ("echo --txt x >> echo", 'did you mean "--text"'),
        ("shell --command true --retries 2 >> echo", "registry accept shell"),
    ],
)
def test_a_bad_pipeline_is_refused(pflow: Pflow, here: Path, words: str, said: str) -> None:
    made = pflow(words)
    assert made.code == 2 and said in made.err


def test_the_shell_that_ate_the_arrow_is_told_on(here: Path) -> None:
    command = f"{sys.executable} -m pflow 'echo --text hi' >> echo"
    done = subprocess.run(
        ["sh", "-c", command], cwd=here, env=dict(os.environ), capture_output=True, text=True, check=True
    )
    assert "took >> as a redirection" in done.stderr and (here / "echo").read_text() == "hi\n"


def test_use_cache_and_reset_cache(pflow: Pflow, here: Path, flow: str) -> None:
    pflow(flow, "--use-cache", "--no-cache")
    words = ("echo --text x >> echo --uppercase", "--use-cache")
    assert "cached" not in pflow(*words).err
    assert pflow(*words).err.count("(cached, ") == 2
    assert "cached" not in pflow(*words, "--reset-cache").err


def test_a_promise_is_verified_and_a_type_accepted(pflow: Pflow, here: Path) -> None:
    folder = here / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(
        "from pflow import node, flow_safe\n"
        "@flow_safe\n@node('mine/good')\ndef good(text: str) -> str:\n    return text\n"
        "@flow_safe\n@node('mine/bad')\ndef bad(text: str) -> str:\n    open('made', 'w').close()\n    return text\n"
        "@node('mine/flaky')\ndef flaky(text: str) -> str:\n    return text\n"
    )
    assert pflow("registry", "verify", "mine/good").code == 0
    said = pflow("registry", "verify", "mine/bad")
    assert said.code == 1 and "writes the file" in said.out and not (here / "made").exists()
    assert pflow("registry", "verify", "mine/flaky").code == 2
    assert pflow("registry", "verify", "echo").code == 0 and pflow("registry", "accept", "echo").code == 2
    flow = {"nodes": [{"id": "a", "type": "mine/flaky", "params": {"text": "x"}, "exec": {"retries": 2}}]}
    (here / "f.json").write_text(json.dumps(flow))
    assert pflow("f.json").code == 2
    assert pflow("registry", "accept", "mine/flaky").code == 0
    assert pflow("f.json").code == 0


# What is wrong with a cache or a pipeline is said.


@pytest.mark.parametrize("option", [(), ("--use-cache",)])
def test_a_cache_that_cannot_be_written_is_told(pflow: Pflow, home: Path, flow: str, option: tuple[str, ...]) -> None:
    home.mkdir()
    (home / "cache").write_text("not a folder")
    for words in ([flow, *option], ["echo --text hi", "--use-cache"]):
        said = pflow(*words)
        assert said.code == 0 and f"warning: nothing could be cached: {home / 'cache'}" in said.err
        assert "hint: " in said.err
    assert "could be cached" not in pflow(flow, "--no-cache").err


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        ("ecko --text x", 'unknown node type "ecko"\n  hint: did you mean "echo"'),
        ("echo --text", "--text needs a value"),
        ("echo --count --text x", "--count needs a value"),
    ],
)
def test_a_wrong_pipeline_of_one_node_is_explained(pflow: Pflow, pipeline: str, said: str) -> None:
    made = pflow(pipeline)
    assert made.code == 2 and said in made.err

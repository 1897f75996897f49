"""A graph on the command line: a chat on a terminal, lines in turn without one, and on again from another process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import COMMAND, PATIENCE, Terminal, process

GRAPH: dict[str, Any] = {
    "name": "talk",
    "nodes": [
        {"id": "start", "nodeType": "defaultContextStart", "config": {"systemInstructions": "Be brief."}},
        {"id": "ask", "nodeType": "userInput", "config": {}},
        {"id": "llm", "nodeType": "llmRequest", "config": {}},
        {"id": "in", "nodeType": "portalInput", "config": {"id": "loop"}},
        {"id": "out", "nodeType": "portalOutput", "config": {"id": "loop"}},
        {"id": "kit", "nodeType": "tools", "config": {"tools": ["fs.read_file", "nobody.knows"]}},
    ],
    "edges": [
        {"source": "start", "target": "ask"},
        {"source": "ask", "target": "llm"},
        {"source": "ask", "target": "llm", "sourceHandle": "data", "targetHandle": "data"},
        {"source": "kit", "target": "llm", "sourceHandle": "tools", "targetHandle": "tools"},
        {"source": "llm", "target": "in"},
        {"source": "out", "target": "ask"},
    ],
}
ANSWERS = ["Hello you", "Second thing", "Third one", "Fourth"]


@pytest.fixture
def talk(here: Path) -> Path:
    (here / "talk.json").write_text(json.dumps(GRAPH))
    script(here, *ANSWERS)
    return here


def script(here: Path, *answers: Any) -> None:
    (here / "a.json").write_text(json.dumps({"answers": answers, "calls": "calls.jsonl"}))


def said(here: Path, *words: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *words, "--model", "script:a.json"]
    return subprocess.run(command, cwd=here, input=lines, capture_output=True, text=True, timeout=PATIENCE)


def calls(here: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (here / "calls.jsonl").read_text().splitlines()]


def run_id(made: subprocess.CompletedProcess[str]) -> str:
    return made.stderr.partition("pflow reply ")[2].partition(" ")[0]


def test_piped_lines_answer_in_turn_and_then_the_run_pauses(talk: Path) -> None:
    made = said(talk, "talk.json", lines="hi\nwhat else\n")
    assert (made.returncode, made.stdout) == (3, "Hello you\nSecond thing\n")
    last = calls(talk)[-1]
    assert [message["content"] for message in last["messages"]] == ["Be brief.", "hi", "Hello you", "what else"]
    assert [tool["name"] for tool in last["tools"]] == ["read-file"] and "nobody.knows" in made.stderr


def test_a_file_on_stdin_is_lines_too(talk: Path) -> None:
    (talk / "lines").write_text("hi")
    with (talk / "lines").open() as lines:
        command = [*COMMAND, "talk.json", "--model", "script:a.json"]
        made = subprocess.run(command, cwd=talk, stdin=lines, capture_output=True, text=True, timeout=PATIENCE)
    assert (made.returncode, made.stdout) == (3, "Hello you\n")


def test_reply_and_resume_go_on_from_another_process_with_the_whole_conversation(talk: Path) -> None:
    first = said(talk, "talk.json", lines="hi\n")
    script(talk, *ANSWERS[1:])
    second = said(talk, "reply", run_id(first), "and", "then?")
    assert (second.returncode, second.stdout) == (3, "Second thing\n")
    script(talk, *ANSWERS[2:])
    third = said(talk, "resume", run_id(first), lines="more\n")
    assert (third.returncode, third.stdout) == (3, "Third one\n")
    texts = [message["content"] for message in calls(talk)[-1]["messages"]]
    assert texts == ["Be brief.", "hi", "Hello you", "and then?", "Second thing", "more"]


def test_json_is_one_object_with_what_it_waits_for(talk: Path) -> None:
    made = said(talk, "talk.json", "--json", lines="hi\n")
    view = json.loads(made.stdout)
    assert made.returncode == 3 and view["waiting"][0]["node_id"] == "ask#2"
    history = view["outputs"]["llm"]["context"]["message_history"]
    assert [message["content"] for message in history] == ["hi", "Hello you"]


def test_killed_in_the_middle_of_a_stream_it_asks_the_model_again_and_not_the_user(talk: Path) -> None:
    folder = talk / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    os.mkfifo(talk / "pipe")
    (folder / "stall.py").write_text(
        "import asyncio\n"
        "from pathlib import Path\n"
        "from pflow import node\n\n"
        '@node("stall")\n'
        "async def stall(flow, context, data_in, inputs, config):\n"
        '    flow.conversation.stream_chunk("half of an ans")\n'
        '    if not Path("hurry").exists():\n'
        "        with open('pipe', 'w') as pipe:\n"
        "            pipe.write('here')\n"
        "        await asyncio.Event().wait()\n"
        "    made = flow.context.add_message(context, 'user', data_in)\n"
        '    return {"context": made, "data": data_in, "status": "success"}\n'
    )
    graph = {**GRAPH, "nodes": [{**one, "nodeType": "stall"} if one["id"] == "llm" else one for one in GRAPH["nodes"]]}
    (talk / "stall.json").write_text(json.dumps(graph))
    with process(talk, "stall.json", stdin=subprocess.PIPE) as running:
        assert running.stdin is not None
        running.stdin.write("hi\n")
        running.stdin.flush()
        assert (talk / "pipe").read_text() == "here"
        os.kill(running.pid, signal.SIGKILL)
    (talk / "hurry").touch()
    run = next((Path(os.environ["PFLOW_HOME"]) / "runs").iterdir()).name
    made = said(talk, "resume", run, "--on-doubt", "retry")
    assert made.returncode == 3 and made.stdout == "half of an ans\n"
    state = json.loads((Path(os.environ["PFLOW_HOME"]) / "runs" / run / "context.json").read_text())
    assert [one["content"] for one in state["contexts"]["main"]["message_history"]] == ["hi"]


def test_a_provider_that_drops_the_stream_ends_the_branch_and_the_run_can_be_resumed(talk: Path) -> None:
    script(talk, {"pieces": ["half "], "error": "dropped"})
    made = said(talk, "talk.json", lines="hi\nmore\n")
    assert made.returncode == 1 and "✗ Node 'llm' failed" in made.stderr
    script(talk, "whole answer", "next")
    run = made.stderr.partition("pflow resume ")[2].split()[0]
    again = said(talk, "resume", run, lines="more\n")
    assert (again.returncode, again.stdout) == (3, "whole answer\nnext\n")


def test_a_model_calls_tools_in_a_loop_and_is_told_of_their_errors(talk: Path) -> None:
    (talk / "notes.txt").write_text("buy milk")
    look = {"tool_calls": [{"id": "1", "name": "read-file", "arguments": {"file_path": "notes.txt"}}]}
    miss = {"tool_calls": [{"id": "2", "name": "read-file", "arguments": {"file_path": "gone.txt"}}]}
    script(talk, look, miss, "You wanted milk.")
    made = said(talk, "talk.json", lines="what did I want?\n")
    assert (made.returncode, made.stdout) == (3, "You wanted milk.\n")
    told = [message for message in calls(talk)[-1]["messages"] if message["role"] == "tool"]
    assert "buy milk" in told[0]["content"] and told[1]["content"].startswith("Error:")


def test_a_model_that_only_calls_tools_is_stopped(talk: Path) -> None:
    graph = json.loads((talk / "talk.json").read_text())
    graph["nodes"][2]["config"] = {"maxSteps": 3}
    (talk / "talk.json").write_text(json.dumps(graph))
    look = {"tool_calls": [{"id": "1", "name": "read-file", "arguments": {"file_path": "x"}}], "match": ""}
    script(talk, *[look] * 5)
    made = said(talk, "talk.json", lines="hi\n")
    assert made.returncode == 1 and "after 3 steps" in made.stderr


ROUTER: dict[str, Any] = {
    "nodes": [
        {"id": "start", "nodeType": "defaultContextStart"},
        {"id": "ask", "nodeType": "userInput"},
        {"id": "route", "nodeType": "intentRouter", "config": {"routes": {"plan": "wants a plan", "act": ""}}},
        {"id": "plan", "nodeType": "echo", "config": {"prefix": "plan: "}},
        {"id": "act", "nodeType": "echo", "config": {"prefix": "act: "}},
    ],
    "edges": [
        {"source": "start", "target": "ask"},
        {"source": "ask", "target": "route"},
        {"source": "ask", "target": "route", "sourceHandle": "data", "targetHandle": "data"},
        {"source": "route", "target": "plan", "sourceHandle": "plan-data", "targetHandle": "data"},
        {"source": "route", "target": "plan", "sourceHandle": "plan-context", "targetHandle": "context"},
        {"source": "route", "target": "act", "sourceHandle": "act-data", "targetHandle": "data"},
    ],
}


@pytest.mark.parametrize(
    ("answer", "config", "code", "result"),
    [
        ({"json": {"intent": "plan"}}, {}, 0, "plan: a house"),
        ('"Act"', {}, 0, "act: a house"),
        ({"json": {"intent": "sing"}}, {}, 1, ""),
        ({"json": {"intent": "sing"}}, {"fallback": "act"}, 0, "act: a house"),
    ],
    ids=["plan", "act", "invented", "fallback"],
)
def test_a_router_goes_where_the_intent_leads(here: Path, answer: Any, config: Any, code: int, result: str) -> None:
    graph = json.loads(json.dumps(ROUTER))
    graph["nodes"][2]["config"] |= config
    (here / "route.json").write_text(json.dumps(graph))
    script(here, answer)
    made = said(here, "route.json", lines="a house\n")
    assert (made.returncode, made.stdout.strip()) == (code, result), made.stderr
    if code:
        assert "sing" in made.stderr and "plan, act" in made.stderr


def test_a_cache_survives_a_restart_of_the_flow(here: Path) -> None:
    graph: dict[str, Any] = {
        "nodes": [
            {"id": "start", "nodeType": "defaultContextStart"},
            {"id": "keep", "nodeType": "cache", "config": {"ttl": 3600}},
            {"id": "work", "nodeType": "shell", "config": {"command": "echo x >> log; wc -l < log"}},
            {"id": "show", "nodeType": "echo"},
        ],
        "edges": [
            {"source": "start", "target": "keep"},
            {"source": "work", "target": "keep", "sourceHandle": "data", "targetHandle": "data"},
            {"source": "keep", "target": "show", "sourceHandle": "data", "targetHandle": "data"},
        ],
    }
    (here / "cache.json").write_text(json.dumps(graph))
    results = [said(here, "cache.json").stdout.strip() for _ in range(3)]
    assert results == ["1", "1", "1"] and (here / "log").read_text() == "x\n"
    graph["nodes"][1]["config"] = {"ttl": 0}
    (here / "cache.json").write_text(json.dumps(graph))
    assert said(here, "cache.json").stdout.strip() == "2"


def test_at_a_terminal_it_is_a_chat(talk: Path) -> None:
    screen = Terminal(talk, "talk.json", "--model", "script:a.json")
    screen.see("you> ")
    screen.type('first \\\nline\n"""')
    screen.see("you> ")
    screen.type("\na\nb\n" + '"""\n')
    screen.see("you> ")
    screen.type("/context\n")
    screen.see("main context main")
    screen.see("user: first line")
    screen.see("you> ")
    screen.type("/stop\n")
    code, out, _ = screen.end()
    assert code == 130 and out == "Hello you\nSecond thing\n"
    assert [message["content"] for message in calls(talk)[-1]["messages"]][-1] == "a\nb"


def test_plan_and_trace_speak_of_pushes_and_pulls(talk: Path) -> None:
    planned = subprocess.run([*COMMAND, "plan", "talk.json"], cwd=talk, capture_output=True, text=True).stdout
    assert "would run: first" in planned and "would run: when it is pulled" in planned
    assert planned.count("would not run: a portal is stepped through") == 2
    made = said(talk, "talk.json", lines="hi\n")
    traced = subprocess.run([*COMMAND, "trace", run_id(made)], cwd=talk, capture_output=True, text=True).stdout
    assert "llm pulls tools" in traced and "ask waits for its user" in traced and "you say" in made.stderr


def test_a_graph_inside_another_workflow_waits_and_goes_on(talk: Path) -> None:
    graph = {
        "nodes": [{"id": "start", "nodeType": "defaultContextStart"}, {"id": "ask", "nodeType": "userInput"},
                  {"id": "note", "nodeType": "shell", "config": {"command": "echo x >> log; cat"}}],
        "edges": [{"source": "start", "target": "ask"},
                  {"source": "ask", "target": "note", "sourceHandle": "data", "targetHandle": "stdin"}],
    }  # fmt: skip
    (talk / "g.json").write_text(json.dumps(graph))
    (talk / "outer.yaml").write_text(
        "flow: {name: outer}\n"
        "nodes:\n"
        "  - {id: before, type: shell, input: {command: 'echo b >> log; echo before'}}\n"
        "  - {id: chat, type: workflow, input: {workflow_ref: g.json}}\n"
        "  - {id: done, type: echo, input: {text: '{{before.stdout}}: {{chat.note.stdout}}'}}\n"
        "edges: [{from: before, to: chat}, {from: chat, to: done}]\n"
    )
    made = said(talk, "outer.yaml")
    assert made.returncode == 3, made.stderr
    again = said(talk, "reply", run_id(made), "hello")
    assert (again.returncode, again.stdout) == (0, "before: hello\n"), again.stderr
    assert (talk / "log").read_text() == "b\nx\n"

"""``pflow FILE``: the result on stdout, everything else on stderr, the exit code for scripts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

import pflow as library
from pflow.app.outcome import main_value, run_view, shown_value
from pflow.app.session import Session
from pflow.cli.report import print_value
from pflow.errors import JournalError
from pflow.model.workflow import Node, Output, Workflow
from pflow.storage.journal import Journal
from tests.cli.conftest import Pflow

NODES = """\
from pflow import NodeError, StepContext, node

@node("t/prints")
def prints() -> dict:
    print("a word from node code")
    return {"a": 1, "b": [2]}

@node("t/flaky")
async def flaky(step: StepContext) -> str:
    if step.attempt < 3:
        raise NodeError(f"try {step.attempt}")
    return "at last"

@node("t/says")
async def says(step: StepContext) -> None:
    step.log.debug("a detail")
    step.log.warn("a warning")
    step.emit("task:start", nonsense=1)
    step.emit("task:complete", taskId=7)
    step.progress(1, 2)
    step.usage(cost_usd=0.25, tokens=10)

@node("t/forever")
async def forever() -> None:
    import asyncio
    await asyncio.Event().wait()
"""


@pytest.fixture
def local_nodes(here: Path) -> None:
    folder = here / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    (folder / "t.py").write_text(NODES)


def one_node(here: Path, kind: str, **rest: Any) -> str:
    node = {"id": "only", "type": kind, **rest}
    (here / "one.yaml").write_text(json.dumps({"flow": {"name": "one"}, "nodes": [node], "edges": []}))
    return "one.yaml"


def test_the_result_goes_to_stdout_and_the_rest_to_stderr(pflow: Pflow, greeting: str) -> None:
    said = pflow(greeting, "name=Ada")
    assert (said.code, said.out) == (0, "HELLO, ADA!\n")
    lines = said.err.splitlines()
    assert lines[0].startswith("✓ Node 'greet' completed (") and lines[0].endswith("ms)")
    assert lines[1].startswith("✓ Node 'shout' completed (")
    assert lines[2].startswith("✓ greeting completed: 2 nodes in ") and " · greeting_" in lines[2]


def test_json_tells_everything_in_one_object(pflow: Pflow, greeting: str) -> None:
    made = pflow(greeting, "--output-format", "json").json
    assert made["success"] is True and made["status"] == "completed" and made["result"] == "HELLO, WORLD!"
    assert made["outputs"]["greet"]["text"] == "Hello, world!"
    assert (made["nodes_executed"], made["execution"]["nodes_total"], made["total_cost_usd"]) == (2, 2, 0)
    step = made["execution"]["steps"][0]
    assert step["node_id"] == "greet" and step["status"] == "completed" and step["cached"] is False
    assert {"reason", "attempts", "duration_ms", "cost_usd"} < set(step) and step["attempts"] == 1
    assert made["errors"] == [] and Path(made["trace"]).is_file() and made["run_id"] in made["trace"]
    assert made["duration_ms"] > 0


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["-o", "greet.text"], "Hello, world!\n"),
        (["-o", "greet"], '{\n  "text": "Hello, world!",\n  "echo": "Hello, world!",\n  "data": null\n}\n'),
    ],
)
def test_one_output_can_be_asked_for(pflow: Pflow, greeting: str, words: list[str], printed: str) -> None:
    assert pflow(greeting, *words).out == printed


def test_an_output_that_a_run_did_not_make_is_an_error(pflow: Pflow, greeting: str) -> None:
    said = pflow(greeting, "-o", "shout.txt")
    assert said.code == 1 and said.out == "" and 'did you mean "shout.text"?' in said.err
    said = pflow(greeting, "-o", "shout.txt", "--json")
    assert said.code == 1 and said.json["success"] is False and said.json["errors"][0]["code"] == "output"


def test_an_output_that_cannot_be_is_refused_before_anything_runs(pflow: Pflow, greeting: str) -> None:
    said = pflow(greeting, "-o", "gret.text")
    assert said.code == 2 and "greet" in said.err and pflow("runs", "--json").json == []


def test_print_and_quiet_say_nothing_but_the_result(pflow: Pflow, greeting: str) -> None:
    for option in ("-p", "-q", "--print", "--quiet"):
        assert pflow(greeting, option)[1:] == ("HELLO, WORLD!\n", "")


def test_verbose_says_more(pflow: Pflow, greeting: str) -> None:
    assert "ℹ Node 'greet' started (echo)" in pflow(greeting, "-v").err


def test_key_value_goes_before_context_and_context_before_defaults(pflow: Pflow, greeting: str) -> None:
    context = ("--context", '{"name": "Bob"}')
    assert pflow(greeting, "-p", *context).out == "HELLO, BOB!\n"
    assert pflow(greeting, "-p", *context, "name=Cy").out == "HELLO, CY!\n"
    assert pflow(greeting, "-p", *context, "--input", "name=Dee").out == "HELLO, DEE!\n"


def test_an_input_that_nothing_reads_is_mentioned(pflow: Pflow, greeting: str) -> None:
    said = pflow(greeting, "nmae=Ada")
    assert said.code == 0 and 'no input "nmae"' in said.err and 'did you mean "name"?' in said.err


def test_a_failure_tells_what_where_and_what_to_do_next(pflow: Pflow, broken: str) -> None:
    said = pflow(broken)
    assert said.code == 1 and said.out == ""
    assert "✗ Node 'second' failed (attempt 1/1): exit code 3: not mended" in said.err
    run_id = pflow("runs", "--json").json[0]["run_id"]
    assert "error: broken.yaml:4:5: node 'second' failed: exit code 3: not mended" in said.err
    assert f"pflow resume {run_id}" in said.err and f"pflow trace {run_id}" in said.err
    assert "error: " in pflow(broken, "-q").err and "Node 'first'" not in pflow(broken, "-q").err


def test_what_a_command_said_before_it_failed_is_shown(pflow: Pflow, here: Path) -> None:
    file = one_node(here, "shell", input={"command": "seq 1 20 >&2; exit 5"})
    said = pflow(file)
    assert "  stderr ends:\n    11\n    12\n" in said.err and "\n    20\n" in said.err and "\n    10\n" not in said.err


def test_a_failure_as_json(pflow: Pflow, broken: str) -> None:
    said = pflow(broken, "--output-format", "json")
    made = said.json
    assert said.code == 1 and (made["success"], made["status"], made["result"]) == (False, "failed", None)
    (error,) = made["errors"]
    assert (error["code"], error["node_id"], error["location"]["line"]) == ("node", "second", 4)
    assert error["context"]["stderr"] == "not mended\n" and error["error_type"] == "NodeError"
    assert "NodeError" in error["stack_trace"] and error["recovery_suggestions"] == []
    assert [step["status"] for step in made["execution"]["steps"]] == ["completed", "failed"]


def test_a_disk_that_fills_up_ends_the_run_with_a_word(
    pflow: Pflow, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(journal: Journal) -> None:
        raise JournalError("the journal cannot be written: No space left on device", "free space, then resume")

    monkeypatch.setattr(Journal, "sync", full)
    said = pflow(broken, "--json")
    assert said.code == 1 and "No space left" in said.err and "hint: free space" in said.err
    assert f"pflow resume {said.json['run_id']}" in said.err and said.json["errors"][0]["code"] == "journal"


@pytest.mark.usefixtures("local_nodes")
def test_each_attempt_that_fails_has_its_line(pflow: Pflow, here: Path) -> None:
    file = one_node(here, "t/flaky", policy={"retry": {"maxAttempts": 3}})
    said = pflow(file)
    assert said.out == "at last\n"
    assert [line for line in said.err.splitlines() if "failed" in line] == [
        "✗ Node 'only' failed (attempt 1/3): try 1",
        "✗ Node 'only' failed (attempt 2/3): try 2",
    ]
    assert pflow(file, "--no-cache", "--output-format", "json").json["execution"]["steps"][0]["attempts"] == 3


@pytest.mark.usefixtures("local_nodes")
def test_what_node_code_prints_is_not_the_result(pflow: Pflow, here: Path) -> None:
    said = pflow(one_node(here, "t/prints"))
    assert json.loads(said.out) == {"a": 1, "b": [2]} and "a word from node code" in said.err


@pytest.mark.usefixtures("local_nodes")
def test_logs_costs_and_events_of_any_shape(pflow: Pflow, here: Path) -> None:
    file = one_node(here, "t/says")
    said = pflow(file)
    assert said.code == 0 and "says: a warning" in said.err and "a detail" not in said.err and "$0.2500" in said.err
    assert "says: a detail" in pflow(file, "-v", "--no-cache").err
    made = pflow(file, "--output-format", "json", "--no-cache").json
    assert made["total_cost_usd"] == 0.25 and made["execution"]["steps"][0]["cost_usd"] == 0.25


def test_events_are_lines_of_json(pflow: Pflow, here: Path, greeting: str) -> None:
    assert pflow(greeting, "--events", "events.jsonl").out == "HELLO, WORLD!\n"
    events = [json.loads(line) for line in (here / "events.jsonl").read_text().splitlines()]
    assert [event["event"]["type"] for event in events] == [
        "phase:start", "task:start", "task:complete", "task:start", "task:complete", "phase:complete",
    ]  # fmt: skip
    assert all(set(event) == {"id", "timestamp", "context", "event"} for event in events)
    assert stat.S_IMODE((here / "events.jsonl").stat().st_mode) & 0o077 == 0


def test_events_on_stdout_leave_nothing_else_there(pflow: Pflow, greeting: str) -> None:
    assert all("event" in json.loads(line) for line in pflow(greeting, "--events", "-").out.splitlines())
    *events, last = pflow(greeting, "--events", "-", "--output-format", "json").out.splitlines()
    assert json.loads(last)["result"] == "HELLO, WORLD!" and all("event" in json.loads(line) for line in events)


@pytest.mark.usefixtures("local_nodes")
def test_a_run_that_takes_too_long_is_cancelled(pflow: Pflow, here: Path) -> None:
    said = pflow(one_node(here, "t/forever"), "--timeout", "0.05", "--output-format", "json")
    assert said.code == 1 and said.json["status"] == "cancelled" and "longer than 0.05 s" in said.err


@pytest.mark.usefixtures("local_nodes")
def test_jobs_run_at_once(pflow: Pflow, here: Path) -> None:
    """Two nodes that wait for each other complete only side by side."""
    nodes = [
        {"id": "make", "type": "shell", "input": {"command": "mkfifo pipe"}},
        {"id": "write", "type": "shell", "input": {"command": "echo met > pipe"}},
        {"id": "read", "type": "shell", "input": {"command": "cat pipe"}},
    ]
    edges = [{"from": "make", "to": "write"}, {"from": "make", "to": "read"}]
    (here / "meet.yaml").write_text(json.dumps({"flow": {"name": "meet"}, "nodes": nodes, "edges": edges}))
    assert pflow("meet.yaml", "--jobs", "2", "-p", "-o", "read.stdout").out == "met\n"


def test_validate_only_runs_nothing(pflow: Pflow, greeting: str) -> None:
    said = pflow(greeting, "--validate-only")
    assert said.code == 0 and "is valid" in said.out and pflow("runs", "--json").json == []
    assert pflow(greeting, "--validate-only", "--output-format", "json").json == {"valid": True, "problems": []}


# Piped input.


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch, here: Path) -> Iterator[Callable[[bytes], TextIO]]:
    """Puts something on stdin."""
    with contextlib.ExitStack() as stack:

        def put(data: bytes) -> TextIO:
            (here / "piped").write_bytes(data)
            stream = stack.enter_context((here / "piped").open(encoding="utf-8"))
            monkeypatch.setattr("sys.stdin", stream)
            return stream

        yield put


READS_STDIN = """\
flow: {name: reader}
nodes:
  - {id: read, type: echo, input: {text: "got {{flow.input.stdin | default:\\"nothing\\"}}"}}
edges: []
"""


@pytest.mark.parametrize(
    ("data", "words", "printed"),
    [(b"words", [], "got words"), (b"", [], "got nothing"), (b"words", ["stdin=mine"], "got mine")],
)
def test_what_is_piped_in_goes_to_the_input_that_asks_for_it(
    pflow: Pflow, here: Path, pipe: Callable[[bytes], TextIO], data: bytes, words: list[str], printed: str
) -> None:
    (here / "reader.yaml").write_text(READS_STDIN)
    pipe(data)
    assert pflow("reader.yaml", "-p", *words).out == f"{printed}\n"


def test_a_pipe_that_nobody_reads_is_left_alone(pflow: Pflow, greeting: str, pipe: Callable[[bytes], TextIO]) -> None:
    stream = pipe(b"words")
    assert pflow(greeting, "-p").out == "HELLO, WORLD!\n"
    assert stream.read() == "words"


# The result, in all its forms.


def ran(workflow: Workflow) -> tuple[library.Result, Session]:
    kept: list[Session] = []
    result = asyncio.run(library.run(workflow, keep=False, started=kept.append))
    return result, kept[0]


def test_declared_outputs_are_the_result() -> None:
    nodes = (Node("a", "constant", {"value": [1, 2]}), Node("b", "constant", {"value": "x"}))
    one = ran(Workflow("w", "t", nodes, outputs=(Output("first", "{{a.value}}"),)))
    assert main_value(*one) == [1, 2] and shown_value(*one) == [1, 2]
    two = ran(Workflow("w", "t", nodes, outputs=(Output("first", "{{a.value}}"), Output("second", "{{b.value}}"))))
    assert main_value(*two) == [1, 2] and shown_value(*two) == {"first": [1, 2], "second": "x"}
    assert run_view(*two, key="second")["result"] == "x" and run_view(*two, key="b.value")["result"] == "x"


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("text", "text\n"),
        ("line\n", "line\n"),
        (None, ""),
        (True, "true\n"),
        (3, "3\n"),
        ({"a": "é"}, '{\n  "a": "é"\n}\n'),
    ],
)
def test_values_are_printed_for_people_and_programs(
    capsys: pytest.CaptureFixture[str], value: Any, printed: str
) -> None:
    print_value(value)
    assert capsys.readouterr().out == printed


def test_bytes_are_printed_as_they_are(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_value(b"\xff\x00")
    assert capfdbinary.readouterr().out == b"\xff\x00"


# Results of workflows that find their own way.


def test_the_result_of_a_loop_is_that_of_the_last_visit(pflow: Pflow, here: Path) -> None:
    """Wherever its node stands in the file: ``fix`` is the last one listed, and the run ends at ``check``."""
    (here / "loop.yaml").write_text("""\
name: loop
nodes:
  - {id: check, agent: checker, prompt: "?", outputs: [state], next: {bad: fix, good: end}}
  - {id: end, agent: closer, prompt: "{state}", outputs: [said], type: terminal}
  - {id: fix, agent: fixer, prompt: "?", outputs: [fixed], next: check}
""")
    agents = here / ".pflow" / "agents"
    agents.mkdir(parents=True)
    commands = {
        "checker": "test -e fixed && echo good || echo bad",
        "fixer": "touch fixed; echo done",
        "closer": "echo over",
    }
    for name, command in commands.items():
        text = f"---\nname: {name}\ncommand: [sh, -c, 'cat > /dev/null; {command}']\n---\n"
        (agents / f"{name}.md").write_text(text)
    said = pflow("loop.yaml", "--output-format", "json")
    assert said.code == 0 and said.json["result"] == "over"
    assert [step["visit"] for step in said.json["execution"]["steps"]] == ["check#1", "fix#1", "check#2", "end#1"]
    plan = pflow("plan", "loop.yaml")
    assert plan.code == 0 and "end    agent  impure  would run if the run comes to it" in plan.out

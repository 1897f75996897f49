"""A budget, as the command line has it: exit code 3, a message, and on with more."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pflow.cli.main import main


class Said(NamedTuple):
    code: int
    out: str
    err: str


Pflow = Callable[..., Said]


@pytest.fixture
def pflow(capsys: pytest.CaptureFixture[str]) -> Pflow:
    def call(*words: str) -> Said:
        capsys.readouterr()
        return Said(main(list(words)), *capsys.readouterr())

    return call


def answers(*lines: Any) -> None:
    Path("answers.json").write_text(json.dumps({"answers": lines, "calls": "calls.jsonl"}))


def paid(text: str, cost: float | None = 0.5) -> dict[str, Any]:
    return {"text": text, "usage": {"input_tokens": 10, "output_tokens": 3, "cost_usd": cost}}


def calls() -> int:
    return len(Path("calls.jsonl").read_text().splitlines())


def last_run(pflow: Pflow) -> str:
    return str(json.loads(pflow("runs", "--json").out)[0]["run_id"])


TWO = """
nodes:
  - {id: a, type: llm, params: {prompt: first, model: "script:answers.json"}}
  - {id: b, type: llm, params: {prompt: "second ${a.response}", model: "script:answers.json"}}
edges: [{from: a, to: b}]
"""


@pytest.fixture
def two() -> str:
    answers(paid("one"), paid("two"))
    Path("two.yaml").write_text(TWO)
    return "two.yaml"


def test_a_spent_budget_pauses_and_more_of_it_goes_on(two: str, pflow: Pflow) -> None:
    paused = pflow(two, "--budget", "0.5")
    run = last_run(pflow)
    assert paused.code == 3 and calls() == 1
    assert "Paused: node 'b' is held: the budget of $0.50 would be passed: $0.50 is spent" in paused.err
    assert f"next: pflow resume {run} --budget USD" in paused.err
    again = pflow("resume", run, "--budget", "0.5")
    assert again.code == 3 and calls() == 1
    done = pflow("resume", run, "--budget", "1.50")
    assert (done.code, done.out) == (0, "two\n") and calls() == 2 and "$1.0000" in done.err


def test_what_is_held_is_in_the_json(two: str, pflow: Pflow) -> None:
    view = json.loads(pflow(two, "--budget", "0.5", "--output-format", "json").out)
    (held,) = view["held"]
    assert view["status"] == "paused" and held["node_id"] == "b" and "$0.50 is spent" in held["message"]
    assert "--budget" in held["hint"] and view["total_cost_usd"] == 0.5


def test_a_limit_stays_until_another_is_given(two: str, pflow: Pflow) -> None:
    """Who resumes without a word about money has not said that it does not matter any more."""
    pflow(two, "--budget", "0.5")
    again = pflow("resume", last_run(pflow))
    assert again.code == 3 and "the budget of $0.50 would be passed" in again.err and calls() == 1


def test_status_says_why_it_waits(two: str, pflow: Pflow) -> None:
    pflow(two, "--budget", "0.5")
    run = last_run(pflow)
    said = pflow("status", run).out
    assert "the budget of $0.50 would be passed" in said and f"pflow resume {run} --budget USD" in said


REPAIRED = """
nodes:
  - id: a
    type: llm
    params: {prompt: first, model: "script:answers.json", schema: {type: object}}
"""


def test_what_a_held_node_has_spent_already_counts(pflow: Pflow) -> None:
    """Its first answer did not fit and was paid; the repair is refused; the next process knows about it."""
    answers(paid("no JSON"), paid("no JSON"), paid("{}"))
    Path("flow.yaml").write_text(REPAIRED)
    first = pflow("flow.yaml", "--budget", "0.4", "--output-format", "json")
    assert first.code == 3 and calls() == 1 and json.loads(first.out)["total_cost_usd"] == 0.5
    run = last_run(pflow)
    assert pflow("resume", run, "--budget", "0.5").code == 3
    assert calls() == 1
    done = pflow("resume", run, "--budget", "9", "--output-format", "json")
    assert done.code == 0 and json.loads(done.out)["total_cost_usd"] == 1.5 and calls() == 3


FAILING = """
nodes:
  - {id: a, type: agent, params: {agent: reader, prompt: first, outputs: [x, y], strict_outputs: true}}
"""
READER = """---
model: script:answers.json
tools: [shell]
---
You read.
"""


def test_what_a_failed_node_has_spent_counts_when_it_is_tried_again(pflow: Pflow) -> None:
    answers(paid("nothing"), paid("x: 1\ny: 2"))
    Path(".pflow/agents").mkdir(parents=True)
    Path(".pflow/agents/reader.md").write_text(READER)
    Path("flow.yaml").write_text(FAILING)
    assert pflow("flow.yaml", "--budget", "0.5").code == 1
    run = last_run(pflow)
    assert pflow("resume", run, "--budget", "0.5").code == 3
    done = pflow("resume", run, "--budget", "9", "--output-format", "json")
    assert done.code == 0 and json.loads(done.out)["total_cost_usd"] == 1.0


def test_an_agent_that_has_used_tools_is_in_doubt_when_it_is_held(pflow: Pflow) -> None:
    """It would begin anew, and what its tools did would be done twice."""
    tool = {"name": "shell", "arguments": {"command": "echo x >> log"}}
    answers(paid("") | {"tool_calls": [tool]}, paid("x: 1\ny: 2"))
    Path(".pflow/agents").mkdir(parents=True)
    Path(".pflow/agents/reader.md").write_text(READER)
    Path("flow.yaml").write_text(FAILING)
    paused = pflow("flow.yaml", "--budget", "0.5")
    run = last_run(pflow)
    assert paused.code == 3 and "--on-doubt retry|skip|fail" in paused.err
    asked = pflow("resume", run, "--budget", "9")
    assert asked.code == 3 and "may have taken effect" in asked.err and Path("log").read_text() == "x\n"
    done = pflow("resume", run, "--budget", "9", "--on-doubt", "retry", "--output-format", "json")
    assert done.code == 0 and json.loads(done.out)["total_cost_usd"] == 1.0


def test_a_tool_that_is_refused_for_its_price_holds_the_agent(pflow: Pflow) -> None:
    """The model would only be told that its tool failed, and would answer without."""
    dear = {"name": "llm", "arguments": {"prompt": "y" * 40_000, "model": "https://api.openai.com/v1#gpt-4o"}}
    answers(paid("", 0.0) | {"tool_calls": [dear]}, paid("x: 1\ny: 2", 0.0))
    Path(".pflow/agents").mkdir(parents=True)
    Path(".pflow/agents/reader.md").write_text(READER.replace("shell", "llm"))
    Path("flow.yaml").write_text(FAILING)
    assert pflow("flow.yaml", "--budget", "0.0001").code == 3
    assert calls() == 1


def test_unknown_prices_are_said_to_be_unknown(pflow: Pflow) -> None:
    answers(paid("one", None), paid("two"))
    Path("two.yaml").write_text(TWO)
    view = json.loads(pflow("two.yaml", "--output-format", "json", "--no-cache").out)
    assert view["total_cost_usd"] is None and view["unpriced_calls"] == 1
    assert [step["cost_usd"] for step in view["execution"]["steps"]] == [None, 0.5]
    Path("calls.jsonl").unlink()
    answers(paid("one", None), paid("two", None))
    assert "2 calls of unknown price" in pflow("two.yaml", "--no-cache").err


def test_a_refusal_takes_no_try_away(pflow: Pflow) -> None:
    answers(paid("one") | {"match": "first"}, {"error": "model"}, paid("two"))
    Path("two.yaml").write_text(TWO.replace("id: b,", "id: b, exec: {retries: 1},"))
    assert pflow("two.yaml", "--budget", "0.5").code == 3
    done = pflow("resume", last_run(pflow), "--budget", "9")
    assert (done.code, done.out) == (0, "two\n") and "attempt 2/3" in done.err

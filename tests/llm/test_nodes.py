"""The node types `llm` and `summarize`: a small workflow in, events and outputs out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pflow
from pflow import settings
from pflow.llm.budget import Budget, Means, using
from pflow.model.records import Failure, Outcome
from pflow.nodes.registry import Registry
from tests.builtins.running import VISIT, driven
from tests.kernel.driving import Driven
from tests.llm.serving import ChatServer, chunk, refuses, says, streams

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def script(*answers: Any) -> str:
    Path("answers.json").write_text(json.dumps({"answers": answers, "calls": "calls.jsonl"}))
    return "script:answers.json"


def calls() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("calls.jsonl").read_text().splitlines()]


def ended(run: Driven) -> Outcome:
    return run.ended[VISIT]


def failure(run: Driven) -> Failure:
    found = ended(run).failure
    assert found is not None
    return found


def events(run: Driven, kind: str) -> list[dict[str, Any]]:
    return [dict(event.event.data) for event in run.events if event.event.type == kind]


@pytest.mark.parametrize(
    ("name", "main_in", "outputs"),
    [("llm", "prompt", ("response", "llm_usage")), ("summarize", "text", ("summary", "llm_usage"))],
)
def test_a_type_says_what_it_is(name: str, main_in: str, outputs: tuple[str, ...]) -> None:
    kind = Registry().get(name)
    assert (kind.main_in, kind.main_out, kind.declared.outputs) == (main_in, outputs[0], outputs)
    assert kind.effect_for({}) == "quiet" and kind.version == "1" and kind.trusted
    for example in kind.declared.examples:
        kind.convert({kind.canonical(key): value for key, value in example.items()})


# ── answers ──


def test_a_question_is_answered_with_its_pieces_on_the_feed() -> None:
    answer = {"text": "Tiber and Po", "usage": {"input_tokens": 9, "output_tokens": 3, "cost_usd": 0.5}}
    run = driven("llm", prompt="Name two rivers.", system="be short", model=script(answer), seed=7, temperature=0.1)
    made = ended(run).outputs
    assert made["response"] == "Tiber and Po"
    assert made["llm_usage"] == {
        "model": "script:answers.json", "input_tokens": 9, "output_tokens": 3, "total_tokens": 12, "cost_usd": 0.5,
        "calls": 1,
    }  # fmt: skip
    assert [event["text"] for event in events(run, "llm:text")] == ["Tiber", " and", " Po"]
    used = ended(run).usage
    assert (used["input_tokens"], used["output_tokens"], used["cost_usd"]) == (9, 3, 0.5)
    assert used["model"] == "script:answers.json"
    (call,) = calls()
    assert [message["role"] for message in call["messages"]] == ["system", "user"]
    assert (call["seed"], call["temperature"]) == (7, 0.1)


def test_an_unknown_price_is_unknown_not_zero() -> None:
    run = driven("llm", prompt="?", model=script("hi"))
    assert ended(run).outputs["llm_usage"]["cost_usd"] is None
    assert "cost_usd" not in ended(run).usage and ended(run).usage["unpriced_calls"] == 1


def test_the_model_of_the_settings_answers_where_none_is_named() -> None:
    name = script("hi")
    settings.save(settings.set_value(settings.Settings(), "model.default", name))
    assert ended(driven("llm", prompt="?")).outputs["response"] == "hi"


def test_a_key_in_the_settings_is_used(server: ChatServer) -> None:
    server.turns = [says("ok")]
    settings.save(settings.set_value(settings.Settings(), "env.TEAM_KEY", "from-settings"))
    driven("llm", prompt="?", model=f"{server.url}/v1?key=TEAM_KEY#small")
    assert server.requests[0].headers["Authorization"] == "Bearer from-settings"


def test_without_any_model_the_failure_shows_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "(3)" in failure(driven("llm", prompt="?")).hint


@pytest.mark.parametrize(
    "params",
    [
        {"prompt": "  "},
        {"prompt": "x", "schema": {"type": "strng"}},
        {"prompt": "x", "attachments": ["none.txt"]},
        {"prompt": "x", "attachments": [{}]},
        {"prompt": "x", "attachments": "https://example.org/a.png"},
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_paid(params: dict[str, Any]) -> None:
    assert failure(driven("llm", model=script("never"), **params)).kind == "validation"
    assert not Path("calls.jsonl").exists()


@pytest.mark.parametrize("name", ["attachments", "images"])
def test_attachments_are_files_bytes_or_objects(name: str) -> None:
    Path("note.txt").write_text("hi")
    Path("unnamed").write_bytes(b"\x89PNG....")
    given = ["note.txt", "unnamed", {"data": "a,b", "type": "text/csv"}]
    driven("llm", prompt="?", model=script("ok"), **{name: given})
    attached = calls()[0]["messages"][0]["attachments"]
    assert [item["type"] for item in attached] == ["text/plain", "image/png", "text/csv"]


def test_an_answer_that_is_cut_off_is_said_to_be(server: ChatServer) -> None:
    server.turns = [streams(chunk("half"), chunk(finish="length"))]
    run = driven("llm", prompt="?", model=server.model, max_tokens=1)
    assert ended(run).outputs["response"] == "half"
    assert "cut off" in events(run, "log")[0]["message"]


# ── schemas ──


def test_a_schema_makes_the_response_a_value() -> None:
    run = driven("llm", prompt="?", model=script({"json": {"n": 3}}), schema=SCHEMA)
    assert ended(run).outputs["response"] == {"n": 3} and events(run, "llm:repair") == []
    assert calls()[0]["schema"] == SCHEMA


def test_an_answer_that_does_not_fit_is_sent_back_once() -> None:
    run = driven("llm", prompt="?", model=script('{"n": "three"}', {"json": {"n": 3}}), schema=SCHEMA)
    made = ended(run).outputs
    assert made["response"] == {"n": 3} and made["llm_usage"]["calls"] == 2
    (repair,) = events(run, "llm:repair")
    assert repair["problem"] == "the answer.n is text, not integer" and repair["call"] == 2
    assert ended(run).usage["model_calls"] == 2
    assert {event["call"] for event in events(run, "llm:text")} == {1, 2}
    roles = [message["role"] for message in calls()[1]["messages"]]
    assert roles == ["user", "assistant", "user"] and "is text, not integer" in calls()[1]["messages"][2]["content"]


@pytest.mark.parametrize(("repairs", "asked"), [(0, 1), (2, 3)])
def test_repairs_are_counted_and_what_was_used_is_not_lost(repairs: int, asked: int) -> None:
    answers = ["no", "[]", '{"n":']
    run = driven("llm", prompt="?", model=script(*answers), schema=SCHEMA, schema_repair=repairs)
    assert "does not fit the schema: it is no JSON" in failure(run).message
    assert failure(run).details["response"] == answers[asked - 1] and len(calls()) == asked
    assert ended(run).usage["model_calls"] == asked


# ── what goes wrong on the way ──


def test_retries_of_the_transport_are_events(server: ChatServer) -> None:
    server.turns = [refuses(429, Retry_After="0"), says("there")]
    run = driven("llm", prompt="?", model=server.model)
    assert ended(run).outputs["response"] == "there" and ended(run).attempts == 1
    (retry,) = events(run, "llm:retry")
    assert retry["attempt"] == 1 and "429" in retry["reason"]


def test_a_failure_has_its_kind(server: ChatServer) -> None:
    server.turns = [refuses(429, Retry_After="0")]
    found = failure(driven("llm", prompt="?", model=server.model))
    assert found.kind == "rate_limit" and found.details["status_code"] == 429


def test_an_exhausted_budget_refuses_the_next_call() -> None:
    paid = {"text": "hi", "usage": {"cost_usd": 0.5}}
    name = script(paid, paid)
    with using(Means(budget=Budget(0.5))):
        assert ended(driven("llm", prompt="one", model=name)).outputs["response"] == "hi"
        paused = driven("llm", prompt="two", model=name)
    assert paused.run.status == "paused"
    (found,) = paused.run.people.held.values()
    assert found.kind == "budget" and "$0.50 is spent" in found.message and len(calls()) == 1


def test_a_call_that_a_budget_cannot_count_is_warned_about() -> None:
    with using(Means(budget=Budget(0.5))):
        run = driven("llm", prompt="one", model=script("hi"))
    assert "is not known" in events(run, "log")[0]["message"]


# ── reuse ──

FLOW = """
nodes:
  - id: ask
    type: llm
    params: {prompt: "Name a river.", model: "script:answers.json", seed: SEED}
"""


def test_a_second_run_costs_nothing_and_a_changed_option_asks_again() -> None:
    script("Po", "Tiber")
    results = []
    for seed in (1, 1, 2):
        Path("flow.yaml").write_text(FLOW.replace("SEED", str(seed)))
        results.append(pflow.run_sync("flow.yaml", iterate=True))
    first, second, third = results
    assert [result.outputs["ask"]["response"] for result in results] == ["Po", "Po", "Tiber"]
    assert first.usage["model_calls"] == 1 and second.usage == {} and third.usage["model_calls"] == 1
    assert second.visits["ask#1"].reused


ATTACHED = """
nodes:
  - id: ask
    type: llm
    params: {prompt: "Is it friendly?", model: "script:answers.json", attachments: [letter.txt]}
"""


def test_a_changed_attachment_is_asked_about_again() -> None:
    script("yes", "no")
    Path("flow.yaml").write_text(ATTACHED)
    answers = []
    for letter in ("Dear you", "Dear you", "You fool"):
        Path("letter.txt").write_text(letter)
        answers.append(pflow.run_sync("flow.yaml", iterate=True).outputs["ask"]["response"])
    assert answers == ["yes", "yes", "no"]


@pytest.mark.parametrize("kind", ["llm", "summarize"])
def test_another_default_is_another_model(kind: str, tmp_path: Path) -> None:
    """Whether the default is ours or that of the package llm."""
    depends = Registry().get(kind).declared.depends
    assert depends is not None
    (tmp_path / "llm").mkdir(exist_ok=True)
    (tmp_path / "llm" / "default_model.txt").write_text("mine")
    assert depends({"text": "x"}, tmp_path, None) == {"model": "mine"}
    settings.save(settings.Settings(model=settings.ModelSettings("ours")))
    assert depends({"text": "x"}, tmp_path, None) == {"model": "ours"}
    assert depends({"text": "x", "model": "theirs"}, tmp_path, None) == {}


# ── summarize ──


def test_a_text_is_summarized_in_so_many_words() -> None:
    run = driven("summarize", text="A long text.", words=20, model=script(" short "))
    assert ended(run).outputs["summary"] == "short"
    system, user = calls()[0]["messages"]
    assert "at most 20 words" in system["content"] and user["content"] == "A long text."


def test_nothing_is_summarized_without_a_call() -> None:
    run = driven("summarize", text=" ", model=script("never"))
    assert ended(run).outputs["summary"] == "" and not Path("calls.jsonl").exists()
    assert failure(driven("summarize", text="x", words=0)).kind == "validation"

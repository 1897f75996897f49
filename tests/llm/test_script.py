"""A scripted model: what tests and demonstrations are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pflow.errors import NodeError
from pflow.llm.errors import ModelError
from pflow.llm.find import find
from pflow.llm.interface import ToolCall, Usage
from pflow.llm.script import Scripted
from tests.llm.serving import Asked, question


def written(text: str) -> str:
    Path("answers.yaml").write_text(text)
    return "script:answers.yaml"


def test_answers_come_in_order_word_by_word() -> None:
    name = written("[one two, three]")
    first, second, third = Asked(name), Asked(name), Asked(name)
    assert first.pieces == ["one", " two"] and first.reply.text == "one two"
    assert second.reply.text == "three"
    assert isinstance(third.error, ModelError) and "no answer left for: hello" in third.error.message


def test_a_matching_answer_is_given_every_time() -> None:
    name = written("""
        - {match: Weather, pieces: ["It is ", "sunny."]}
        - {match: json, json: {"city": "Rome"}}
        - else
    """)
    assert [Asked(name, question("the weather?")).pieces for _ in range(2)] == [["It is ", "sunny."]] * 2
    assert json.loads(Asked(name, question("as JSON")).reply.text) == {"city": "Rome"}
    assert Asked(name, question("?")).reply.text == "else"


def test_a_script_may_call_tools_and_say_what_it_used() -> None:
    name = written("""
        - tool_calls: [{name: look, arguments: {at: sky}}]
          usage: {input_tokens: 9, output_tokens: 4, cost_usd: 0.002}
    """)
    reply = Asked(name).reply
    assert reply.tool_calls == (ToolCall("call_0", "look", {"at": "sky"}),) and reply.finish == "tool_calls"
    assert reply.usage == Usage(name, 9, 4, cost_usd=0.002)


def test_failures_before_the_answer_are_repeated_and_those_in_it_are_not() -> None:
    name = written("""
        - {error: rate_limit, retry_after: 0}
        - {error: dropped}
        - fine
        - {pieces: ["half "], error: dropped}
        - {error: auth}
    """)
    asked = Asked(name)
    assert asked.reply.text == "fine" and [retry.attempt for retry in asked.retries] == [1, 2]
    cut = Asked(name)
    assert cut.pieces == ["half "] and "in the middle" in str(cut.error)
    refused = Asked(name).error
    assert isinstance(refused, ModelError) and refused.kind == "auth"


def test_calls_are_recorded() -> None:
    name = written("{answers: [a, b], calls: calls.jsonl}")
    Asked(name, question("first", seed=1))
    Asked(name, question("second"))
    model = find(name)
    assert isinstance(model, Scripted)
    assert [call.messages[0].content for call in model.script.calls] == ["first", "second"]
    lines = [json.loads(line) for line in Path("calls.jsonl").read_text().splitlines()]
    assert lines[0]["seed"] == 1 and lines[1]["messages"][0]["content"] == "second"


@pytest.mark.parametrize("text", ["- {txet: a}", "- [", "[{tool_calls: 3}]"])
def test_a_wrong_script_is_refused(text: str) -> None:
    with pytest.raises(NodeError, match="is no script"):
        find(written(text))


def test_a_missing_script_is_refused() -> None:
    with pytest.raises(NodeError, match="cannot be read"):
        find("script:none.yaml")

"""An OpenAI-compatible endpoint, as a real server gives it: good answers, and every way in which they go wrong."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pflow.errors import NodeError
from pflow.llm.answer import LARGEST
from pflow.llm.errors import ModelError
from pflow.llm.find import find
from pflow.llm.interface import Attachment, Request, Tool, ToolCall, Turn, Usage
from tests.builtins.server import Handler
from tests.llm.serving import USED, Asked, ChatServer, begin, chunk, question, refuses, says, send, streams


def failed(asked: Asked) -> ModelError:
    assert isinstance(asked.error, ModelError), asked.error
    return asked.error


# ── good answers ──


def test_an_answer_comes_in_pieces_with_its_usage(server: ChatServer) -> None:
    server.turns = [says("Hel", "lo ", "wörld")]
    asked = Asked(server.model)
    assert asked.error is None
    assert asked.pieces == ["Hel", "lo ", "wörld"]
    assert asked.reply.text == "Hello wörld" and asked.reply.finish == "stop"
    assert asked.reply.usage == Usage("small-1", 7, 3)


def test_everything_asked_for_is_sent(server: ChatServer) -> None:
    server.turns = [says("ok")]
    schema = {"type": "object"}
    request = Request(
        (
            Turn("system", "be short"),
            Turn("user", "look", attachments=(Attachment("image/png", "a.png", b"png"),)),
            Turn("assistant", "", (ToolCall("c1", "see", {"at": 1}),)),
            Turn("tool", "a cat", tool_call_id="c1"),
        ),
        temperature=0.5,
        max_tokens=9,
        seed=3,
        schema=schema,
        tools=(Tool("see", "sees", {"type": "object", "properties": {"at": {"type": "integer"}}}),),
        options={"top_p": 0.9},
    )
    Asked(server.model, request)
    (body,) = server.bodies
    assert body["model"] == "small" and body["stream"] and body["stream_options"] == {"include_usage": True}
    assert (body["temperature"], body["max_tokens"], body["seed"], body["top_p"]) == (0.5, 9, 3, 0.9)
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert body["tools"][0]["function"]["name"] == "see"
    system, user, assistant, tool = body["messages"]
    assert system == {"role": "system", "content": "be short"}
    assert user["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}}
    assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == {"at": 1}
    assert tool == {"role": "tool", "content": "a cat", "tool_call_id": "c1"}


@pytest.mark.parametrize(
    ("type_", "part"),
    [
        ("text/plain", {"type": "text", "text": "n.bin:\nabc"}),
        ("audio/mpeg", {"type": "input_audio", "input_audio": {"data": "YWJj", "format": "mp3"}}),
        (
            "application/pdf",
            {"type": "file", "file": {"filename": "n.bin", "file_data": "data:application/pdf;base64,YWJj"}},
        ),
    ],
)
def test_an_attachment_is_sent_in_the_form_of_its_type(server: ChatServer, type_: str, part: dict[str, Any]) -> None:
    server.turns = [says("ok")]
    Asked(server.model, Request((Turn("user", "x", attachments=(Attachment(type_, "a/n.bin", b"abc"),)),)))
    assert server.bodies[0]["messages"][0]["content"][1] == part


def test_a_server_that_does_not_stream_is_understood(server: ChatServer) -> None:
    whole = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": USED["usage"]}
    server.turns = [lambda handler: handler.json(whole)]
    asked = Asked(server.model)
    assert asked.pieces == ["hi"] and asked.reply.usage == Usage("small", 7, 3)


def test_a_server_that_cannot_count_is_asked_without(server: ChatServer) -> None:
    server.turns = [refuses(422, "stream_options: extra inputs are not permitted"), streams(chunk("hi", "stop"))]
    asked = Asked(server.model)
    assert asked.reply.text == "hi" and "stream_options" not in server.bodies[1]


def test_a_stream_without_its_last_mark_is_whole_when_it_says_why_it_ended(server: ChatServer) -> None:
    server.turns = [streams(chunk("hi"), chunk(finish="length"), done=False)]
    assert Asked(server.model).reply.finish == "length"


def test_tool_calls_are_put_together_from_their_pieces(server: ChatServer) -> None:
    first = {"index": 0, "id": "c1", "function": {"name": "see", "arguments": '{"at"'}}
    rest = {"index": 0, "function": {"arguments": ": 1}"}}
    other = {"index": 1, "id": "c2", "function": {"name": "go", "arguments": ""}}
    server.turns = [
        streams(*[chunk(None, None, tool_calls=[call]) for call in (first, rest, other)], chunk(finish="tool_calls"))
    ]
    reply = Asked(server.model).reply
    assert reply.tool_calls == (ToolCall("c1", "see", {"at": 1}), ToolCall("c2", "go", {}))
    assert reply.finish == "tool_calls"


# ── keys ──


@pytest.mark.parametrize(
    ("name", "env", "sent"),
    [
        ("{url}/v1?key=TEAM#small", {"TEAM": "k1"}, "Bearer k1"),
        ("{url}/v1#small", {"OPENAI_API_KEY": "k2"}, None),  # made for another host
        ("openai:small", {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "k3"}, "Bearer k3"),
        ("{url}/v1#small", {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "k4"}, "Bearer k4"),
    ],
)
def test_a_key_is_sent_to_the_host_it_was_made_for(
    server: ChatServer, name: str, env: dict[str, str], sent: str | None
) -> None:
    server.turns = [says("ok")]
    made = {key: value.format(url=server.url) for key, value in env.items()}
    assert Asked(name.format(url=server.url), env=made).error is None
    assert server.requests[0].headers.get("Authorization") == sent


def test_a_host_finds_its_key_by_its_own_name() -> None:
    model = find("https://api.groq.com/openai/v1#llama", env={"GROQ_API_KEY": "k", "OPENAI_API_KEY": "other"})
    assert vars(model)["_key"] == "k"


def test_a_refused_key_is_named_and_never_shown(server: ChatServer) -> None:
    server.turns = [refuses(401, "Incorrect key: sk-secret")]
    error = failed(Asked(f"{server.url}/v1?key=TEAM#small", env={"TEAM": "sk-secret"}))
    assert error.kind == "auth" and "$TEAM" in error.hint
    assert "sk-secret" not in f"{error}{error.hint}{error.details}"


@pytest.mark.parametrize("name", ["http://h/v1", "openai:", "https://me:secret@h/v1#m", "http://[h/v1#m"])
def test_a_name_that_cannot_be_asked_is_refused(name: str) -> None:
    with pytest.raises(NodeError) as caught:
        find(name)
    assert caught.value.kind == "validation" and "secret" not in str(caught.value)


# ── retries ──


def test_too_many_requests_are_repeated_when_the_server_says_so(server: ChatServer) -> None:
    server.turns = [refuses(429, "slow down", Retry_After="0"), refuses(429, Retry_After="0"), says("there")]
    asked = Asked(server.model)
    assert asked.reply.text == "there"
    assert [(retry.attempt, retry.delay) for retry in asked.retries] == [(1, 0.0), (2, 0.0)]
    assert "429" in asked.retries[0].reason and "slow down" in asked.retries[0].reason


def test_a_third_refusal_is_the_last(server: ChatServer) -> None:
    server.turns = [refuses(429, Retry_After="0")]
    asked = Asked(server.model)
    assert failed(asked).kind == "rate_limit"
    assert len(server.requests) == 3 and len(asked.retries) == 2


def test_nobody_waits_for_an_hour(server: ChatServer) -> None:
    server.turns = [refuses(429, Retry_After="3600")]
    asked = Asked(server.model)
    assert "3600 s" in failed(asked).hint and asked.retries == []
    assert failed(asked).details["retry_after"] == 3600.0


def test_an_account_without_credit_is_not_asked_again(server: ChatServer) -> None:
    server.turns = [refuses(429, "You exceeded your current quota", "insufficient_quota", Retry_After="0")]
    asked = Asked(server.model)
    assert "credit" in failed(asked).hint and len(server.requests) == 1


def test_a_connection_dropped_before_the_answer_is_made_again(server: ChatServer) -> None:
    server.turns = [Handler.hang_up, streams(done=False), says("here")]
    asked = Asked(server.model)
    assert asked.reply.text == "here" and len(asked.retries) == 2


def test_a_connection_dropped_in_mid_answer_is_a_failure(server: ChatServer) -> None:
    server.turns = [streams(chunk("half an ans"), done=False)]
    asked = Asked(server.model)
    assert "in the middle of the answer" in failed(asked).message
    assert asked.pieces == ["half an ans"] and len(server.requests) == 1 and asked.retries == []


def test_a_tool_call_that_has_begun_is_not_asked_for_twice(server: ChatServer) -> None:
    begun = {"index": 0, "id": "c1", "function": {"name": "see", "arguments": "{"}}
    server.turns = [streams(chunk(None, None, tool_calls=[begun]), done=False)]
    assert "in the middle" in failed(Asked(server.model)).message and len(server.requests) == 1


ROOT = Path(__file__).parents[2]
KILLED = f"""
import json, sys, threading
from tests.llm.serving import ChatServer, begin, chunk, send
def turn(handler):
    begin(handler)
    send(handler, {chunk("one ")!r})
    threading.Event().wait()
server = ChatServer()
server.turns = [turn]
print(server.model, flush=True)
threading.Event().wait()
"""


def test_a_server_killed_in_mid_stream_is_a_failure_that_says_so() -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    with process, process.stdout:
        model = find(process.stdout.readline().strip())

        def kill(piece: str) -> None:
            process.send_signal(signal.SIGKILL)

        with pytest.raises(ModelError, match="in the middle of the answer"):
            asyncio.run(model.ask(question(), kill))


def test_a_server_that_is_not_there_is_tried_three_times(server: ChatServer) -> None:
    model = server.model
    server.server_close()
    asked = Asked(model)
    assert "connection refused" in failed(asked).message and len(asked.retries) == 2


# ── nonsense ──


@pytest.mark.parametrize(
    "turn",
    [
        streams('{"choices": [{"delta"'),
        streams('{"choices": 7}'),
        streams("[]"),
        lambda handler: handler.answer(200, b'{"choices": [', "application/json"),
        lambda handler: handler.answer(200, b"<html>not here</html>", "text/html"),
        lambda handler: handler.json({}),
        streams(),
        streams(chunk(None, None, tool_calls=[{"id": "c", "function": {"name": "see", "arguments": "{at: 1"}}])),
    ],
)
def test_an_answer_that_is_none_is_a_failure_that_shows_it(server: ChatServer, turn: Any) -> None:
    server.turns = [turn]
    error = failed(Asked(server.model))
    assert error.kind == "model" and len(server.requests) == 1
    assert any(word in error.message for word in ("no answer", "empty answer", "no JSON object"))


def test_what_was_received_is_shown(server: ChatServer) -> None:
    server.turns = [streams('{"oops": "this is cut')]
    assert "this is cut" in failed(Asked(server.model)).message


def test_an_error_inside_the_stream_is_a_failure(server: ChatServer) -> None:
    server.turns = [streams(chunk("a"), {"error": {"message": "out of memory"}})]
    assert "out of memory" in failed(Asked(server.model)).message


@pytest.mark.parametrize("last", [chunk(finish="content_filter"), chunk(None, "stop", refusal="I will not.")])
def test_a_refusal_is_called_one(server: ChatServer, last: dict[str, Any]) -> None:
    server.turns = [streams(chunk(""), last)]
    assert failed(Asked(server.model)).kind == "refused"


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "model"), (403, "auth"), (404, "model"), (408, "timeout"), (500, "model")]
)
def test_a_status_has_its_kind(server: ChatServer, status: int, kind: str) -> None:
    server.turns = [refuses(status, "no such thing")]
    error = failed(Asked(server.model))
    assert error.kind == kind and "no such thing" in error.message and error.details["status_code"] == status


def test_a_prompt_that_is_too_long_is_advised_about(server: ChatServer) -> None:
    server.turns = [refuses(400, "request (9031 tokens) exceeds the available context size")]
    assert "too long" in failed(Asked(server.model)).hint


# ── size ──


def test_ten_million_characters_are_an_answer(server: ChatServer) -> None:
    piece = "x" * 1_000_000
    server.turns = [says(*[piece] * 10)]
    assert len(Asked(server.model).reply.text) == LARGEST


@pytest.mark.parametrize("size", [100_000, 2 * LARGEST])
def test_more_than_that_is_refused_and_not_kept(server: ChatServer, size: int) -> None:
    def turn(handler: Handler) -> None:
        begin(handler)
        try:
            for _ in range(2 * LARGEST // size):
                send(handler, chunk("x" * size))
        except OSError:
            handler.close_connection = True  # nobody reads on

    server.turns = [turn]
    error = failed(Asked(server.model))
    assert "over 10,000,000 characters" in error.message and "max_tokens" in error.hint


# ── cancelling ──


def test_cancelling_closes_the_connection(server: ChatServer) -> None:
    closed = threading.Event()

    def turn(handler: Handler) -> None:
        begin(handler)
        send(handler, chunk("a"))
        handler.connection.recv(1)  # returns when the other side has closed
        closed.set()

    server.turns = [turn]

    async def ask_and_cancel() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(find(server.model).ask(question(), lambda piece: begun.set()))
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(ask_and_cancel())
    closed.wait()


# ── prices ──


def test_a_price_is_known_by_provider_or_not_at_all(server: ChatServer) -> None:
    pytest.importorskip("genai_prices")
    usage = Usage("gpt-4o-mini", 1000, 1000)
    known = find("openai:gpt-4o-mini").price(usage)
    assert known is not None and 0 < known < 0.1
    assert find(server.model).price(usage) is None
    assert find("openai:gpt-4o-mini").price(Usage(input_tokens=1000)) is not None  # by the name it is asked by
    assert find("openai:gpt-4o-mini").price(Usage("gpt-4o-mini")) is None  # nobody counted

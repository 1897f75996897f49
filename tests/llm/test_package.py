"""The package llm as a backend, with a plugin of its own and with its own OpenAI client on a real server."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

llm = pytest.importorskip("llm")

from llm.plugins import pm  # noqa: E402

from pflow.errors import NodeError  # noqa: E402
from pflow.llm.answer import LARGEST  # noqa: E402
from pflow.llm.errors import ModelError  # noqa: E402
from pflow.llm.find import find  # noqa: E402
from pflow.llm.interface import Attachment, Request, Tool, ToolCall, Turn, Usage  # noqa: E402
from tests.builtins.server import Handler  # noqa: E402
from tests.llm import plugin  # noqa: E402
from tests.llm.serving import Asked, ChatServer, Reaction, chunk, question, refuses, says, streams  # noqa: E402


@pytest.fixture(autouse=True)
def parrots() -> Iterator[None]:
    plugin.seen.clear()
    plugin.going_on.clear()
    plugin.ended.clear()
    pm.register(plugin, "parrots")
    yield
    pm.unregister(plugin)


def failed(asked: Asked) -> NodeError:
    assert isinstance(asked.error, NodeError), asked.error
    return asked.error


def test_a_sync_model_streams_from_its_thread() -> None:
    request = Request((Turn("system", "short"), Turn("user", "a b")), temperature=0.5, max_tokens=9)
    asked = Asked("polly", request)
    assert asked.error is None and asked.pieces == ["a", "b"]
    assert asked.reply.usage == Usage("parrot", 5, 2)
    (prompt,) = plugin.seen
    assert (prompt.system, prompt.options.temperature, prompt.options.num_predict) == ("short", 0.5, 9)


def test_an_async_model_is_taken_where_there_is_one() -> None:
    asked = Asked("swift-parrot", question("a b c"))
    assert asked.pieces == ["a", "b", "c"] and asked.reply.usage == Usage("swift-parrot", 5, 2, 4)


def test_tools_are_offered_and_their_calls_taken() -> None:
    asked = Asked("swift-parrot", question(tools=(Tool("see", "sees"),)))
    assert asked.reply.tool_calls == (ToolCall("c1", "see", {"at": 1}),) and asked.reply.finish == "tool_calls"
    assert find("swift-parrot").takes_tools and not find("parrot").takes_tools


def test_a_conversation_is_handed_on_as_it_was() -> None:
    talk = (
        Turn("user", "look"),
        Turn("assistant", "I do", (ToolCall("c1", "see", {"at": 1}),)),
        Turn("tool", "a cat", tool_call_id="c1"),
        Turn("user", "and now?"),
    )
    assert Asked("swift-parrot", Request(talk)).reply.text == "andnow?"
    user, assistant, tool, last = plugin.seen[0].messages
    assert assistant.parts[1].arguments == {"at": 1}
    assert (tool.parts[0].name, tool.parts[0].output) == ("see", "a cat")
    assert last.parts[0].text == "and now?" and user.role == "user"


def test_a_model_without_schemas_is_told_in_words() -> None:
    Asked("parrot", question("what?", schema={"type": "object"}))
    assert plugin.seen[0].schema is None and "JSON schema" in plugin.seen[0].prompt
    Asked("swift-parrot", question("what?", schema={"type": "object"}))
    assert plugin.seen[1].schema == {"type": "object"}


def test_attachments_are_handed_on_or_refused() -> None:
    noted = (Attachment("text/plain", "n.txt", b"abc"),)
    Asked("parrot", Request((Turn("user", "x", attachments=noted),)))
    assert plugin.seen[0].attachments[0].content == b"abc"
    image = (Attachment("image/png", "n.png", b"abc"),)
    refused = failed(Asked("parrot", Request((Turn("user", "x", attachments=image),))))
    assert "does not support attachments" in refused.message


def test_an_option_that_a_model_lacks_is_an_error() -> None:
    error = failed(Asked("parrot", question(seed=1)))
    assert error.kind == "validation" and "takes no seed" in error.message and "num_predict" in error.hint


@pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (429, "rate_limit"), (504, "timeout"), (500, "model")])
def test_what_a_client_raises_has_its_kind(monkeypatch: pytest.MonkeyPatch, status: int, kind: str) -> None:
    monkeypatch.setenv("PARROT_KEY", "sk-secret")
    error = failed(Asked("sick-parrot", question(str(status))))
    assert isinstance(error, ModelError) and error.kind == kind and error.message == "sick-parrot: no, [redacted]"


def test_a_missing_key_says_how_to_set_it() -> None:
    error = failed(Asked("sick-parrot", question("500")))
    assert error.kind == "auth" and "llm keys set parrots, or put it into $PARROT_KEY" in error.hint


def test_keys_come_from_the_package_and_then_from_the_settings(tmp_path: Path) -> None:
    def key_of(name: str, env: dict[str, str]) -> Any:
        return vars(find(name, env=env))["_key"]

    assert key_of("sick-parrot", {"PARROT_KEY": "set"}) == "set"
    (tmp_path / "llm").mkdir(exist_ok=True)
    (tmp_path / "llm" / "keys.json").write_text(json.dumps({"parrots": "kept"}))
    assert key_of("sick-parrot", {"PARROT_KEY": "set"}) == "kept"


def test_a_sync_model_is_left_behind_when_it_is_cancelled() -> None:
    async def ask_and_cancel() -> list[str]:
        heard: list[str] = []
        begun = asyncio.Event()

        def on_text(piece: str) -> None:
            heard.append(piece)
            begun.set()

        task = asyncio.create_task(find("slow-parrot").ask(question(), on_text))
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})  # it ends although the model is still blocked
        assert task.cancelled()
        return heard

    assert asyncio.run(ask_and_cancel()) == ["a"]
    assert not plugin.ended.is_set()
    plugin.going_on.set()
    plugin.ended.wait()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # the package leaves its connections to the collector
def test_its_own_client_speaks_to_a_server(server: ChatServer, tmp_path: Path) -> None:
    entry = f"- {{model_id: mine, model_name: small, api_base: {server.url}/v1, aliases: [m], supports_schema: true}}"
    (tmp_path / "llm").mkdir(exist_ok=True)
    (tmp_path / "llm" / "extra-openai-models.yaml").write_text(entry)
    server.turns = [says("he", "llo")]
    asked = Asked("m", question("hi", seed=3, max_tokens=5))
    assert asked.error is None and asked.pieces == ["he", "llo"]
    assert asked.reply.usage == Usage("mine", 7, 3)
    assert server.bodies[0]["seed"] == 3
    server.turns = [refuses(401, "who are you?")]
    assert failed(Asked("m")).kind == "auth"
    gc.collect()


MINE = "- {{model_id: mine, model_name: small, api_base: {url}/v1, supports_tools: true}}"


@pytest.fixture
def mine(server: ChatServer, tmp_path: Path) -> Iterator[str]:
    """A model of the package whose own client speaks to a server."""
    (tmp_path / "llm").mkdir(exist_ok=True)
    (tmp_path / "llm" / "extra-openai-models.yaml").write_text(MINE.format(url=server.url))
    yield "mine"
    gc.collect()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_its_retries_are_two_at_most_and_seen(server: ChatServer, mine: str) -> None:
    server.turns = [refuses(429, "slow down", Retry_After="0"), Handler.hang_up, says("here")]
    asked = Asked(mine)
    assert asked.error is None and asked.reply.text == "here"
    assert [retry.attempt for retry in asked.retries] == [1, 2] and len(server.requests) == 3
    server.requests.clear()
    server.turns = [refuses(429, Retry_After="0")]
    asked = Asked(mine)
    assert failed(asked).kind == "rate_limit" and len(server.requests) == 3 and len(asked.retries) == 2


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (refuses(429, Retry_After="3600"), "rate_limit"),
        (refuses(429, "quota", "insufficient_quota", Retry_After="0"), "rate_limit"),
        (refuses(500, "broken"), "model"),
        (streams(chunk("half an ans"), done=False), "model"),
    ],
)
def test_what_would_not_help_is_not_repeated(server: ChatServer, mine: str, turn: Reaction, kind: str) -> None:
    server.turns = [turn]
    asked = Asked(mine)
    assert failed(asked).kind == kind and len(server.requests) == 1 and asked.retries == []


@pytest.mark.parametrize("name", ["parrot", "swift-parrot"])
def test_an_answer_without_an_end_is_refused(name: str) -> None:
    assert "over 10,000,000 characters" in failed(Asked(name, question("x" * (LARGEST + 1)))).message


# ── names ──


def test_an_unknown_name_gets_the_nearest_and_what_to_install() -> None:
    with pytest.raises(NodeError) as caught:
        find("parot")
    assert 'did you mean "parrot"?' in caught.value.hint
    with pytest.raises(NodeError) as caught:
        find("claude-9")
    assert "pip install llm-anthropic" in caught.value.hint


def test_the_default_is_the_users_then_the_packages(tmp_path: Path) -> None:
    assert find("", default="polly").name == "polly"
    (tmp_path / "llm").mkdir(exist_ok=True)
    (tmp_path / "llm" / "default_model.txt").write_text("swift-parrot")
    assert find("").name == "swift-parrot"


def test_without_any_model_there_are_three_ways_to_get_one() -> None:
    with pytest.raises(NodeError) as caught:
        find("")
    assert all(way in caught.value.hint for way in ("(1)", "(2)", "(3)", "http://", "llm keys set", "local"))


def test_a_plugin_that_cannot_be_imported_does_not_take_the_others_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "llm_sick-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: llm-sick\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[llm]\nsick = no_such_module_anywhere\n")
    monkeypatch.syspath_prepend(str(info.parent))
    assert find("parrot").name == "parrot"
    with pytest.raises(NodeError) as caught:
        find("no-such-model")
    assert "the plugin sick cannot be loaded: No module named" in caught.value.hint


def test_without_the_package_a_name_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llm", None)
    with pytest.raises(NodeError, match="needs the package llm"):
        find("gpt-4o")
    with pytest.raises(NodeError, match="no model is named"):
        find("")

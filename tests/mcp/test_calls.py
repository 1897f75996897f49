"""Tools of a real server as nodes of a run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import pflow
from pflow.mcp import config
from pflow.mcp.config import Server
from pflow.mcp.sync import sync
from pflow.model.workflow import Node, Policy
from tests.limits import LIMIT, run_out
from tests.mcp.conftest import flow, known, one, synced


def test_structured_content_becomes_outputs_and_text_the_result() -> None:
    synced()
    result = one("add", {"a": "2", "b": 3})
    assert result.outputs["n"] == {"sum": 5, "even": False, "result": {"sum": 5, "even": False}}
    assert one("shout", {"text": "hi"}).outputs["n"] == {"result": "HI"}


def test_what_is_no_text_is_kept_as_content() -> None:
    synced()
    made = one("picture").outputs["n"]
    assert made["result"] == "a pixel"
    assert [block["type"] for block in made["content"]] == ["text", "image"]


def test_an_answer_of_ten_megabytes_arrives_whole() -> None:
    synced()
    assert len(one("big", {"size": 10_000_000}).outputs["n"]["result"]) == 10_000_000


def test_one_server_serves_every_visit_of_a_run_and_ends_with_it() -> None:
    synced()
    result = pflow.run_sync(flow(*(Node(f"n{n}", "mcp-small-pid") for n in range(3))))
    pids = {made["result"] for made in result.outputs.values()}
    assert len(pids) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(int(pids.pop()), 0)


def test_an_error_of_a_tool_is_a_failure_with_its_words() -> None:
    synced()
    result = one("fail", {"why": "closed on Sundays"})
    assert result.error is not None and result.error.kind == "tool"
    assert "no: closed on Sundays" in result.error.message


def test_a_server_that_dies_in_a_call_fails_the_node_with_its_last_words() -> None:
    synced()
    result = one("die")
    assert result.error is not None and result.error.kind == "lost"
    assert "ended while it was asked for die" in result.error.message
    assert "out of cheese" in result.error.message


def test_a_call_that_a_servers_death_cut_off_is_in_doubt_when_the_run_is_resumed() -> None:
    synced()
    failed = one("die")
    paused = asyncio.run(pflow.resume(failed.run_id))
    assert paused.status == "paused" and paused.doubts == (("n#1", 1),)
    assert asyncio.run(pflow.resume(failed.run_id, on_doubt="skip")).success


def test_a_server_that_died_is_started_again_for_the_next_visit(here: Path) -> None:
    synced()
    tolerated = Node("first", "mcp-small-die", policy=Policy(tolerate=True))
    result = pflow.run_sync(flow(tolerated, Node("then", "mcp-small-shout", {"text": "up"})))
    assert result.success and result.outputs["then"] == {"result": "UP"}


def test_a_timeout_of_the_node_cancels_the_call_at_the_server(here: Path) -> None:
    synced()
    params = {"begun": str(here / "begun"), "cancelled": str(here / "cancelled")}
    node = Node("n", "mcp-small-wait", params, policy=Policy(timeout=LIMIT, tolerate=True))
    both = flow(node, Node("then", "mcp-small-shout", {"text": "still here"}))
    result = run_out(pflow.run(both), (here / "begun").exists)
    assert (here / "cancelled").read_text() == "cancelled"
    failure = result.visits["n#1"].failure
    assert failure is not None and failure.kind == "timeout"
    assert result.outputs["then"] == {"result": "STILL HERE"}


def test_the_timeout_of_a_server_bounds_each_call(here: Path) -> None:
    synced(timeout=0.5)
    result = one("wait", {"begun": str(here / "begun"), "cancelled": str(here / "cancelled")})
    assert result.error is not None and result.error.kind == "timeout"
    assert "timed out after 0.5 s" in result.error.message


def test_a_server_that_hangs_is_ended_and_started_again(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pflow.mcp.connection.PROBE", 0.2)
    synced()
    hung = Node("n", "mcp-small-hang", {"pid": str(here / "pid")}, policy=Policy(timeout=LIMIT, tolerate=True))
    result = run_out(pflow.run(flow(hung, Node("then", "mcp-small-pid"))), (here / "pid").exists)
    assert result.success
    assert result.outputs["then"]["result"] != (here / "pid").read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(int((here / "pid").read_text()), 0)


def test_a_server_gets_a_minimal_environment_and_what_is_declared(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    monkeypatch.setenv("OTHER_TOKEN", "not for you")
    monkeypatch.setenv("MY_KEY", "sesame-open")
    synced(env={"WORD": "plain", "KEY": "${MY_KEY}", "MORE": "${NOBODY:-default}"})
    made = one("environment").outputs["n"]
    assert made["env"]["WORD"] == "plain" and made["env"]["KEY"] == "sesame-open" and made["env"]["MORE"] == "default"
    assert "OTHER_TOKEN" not in made["env"] and "PFLOW_HOME" not in made["env"]
    assert made["cwd"] == str(here)


def test_progress_of_a_tool_is_progress_of_its_node() -> None:
    synced()
    seen: list[tuple[float, float]] = []

    def hear(envelope: pflow.Envelope) -> None:
        if envelope.event.type == "task:progress":
            seen.append((envelope.event.data["done"], envelope.event.data["total"]))

    one("steps", on_event=hear)
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_server_that_prints_garbage_between_messages_is_understood() -> None:
    synced("--garbage")
    assert one("shout", {"text": "hi"}).outputs["n"] == {"result": "HI"}


# Bad input.


def failure(tool: str, params: dict[str, object] | None = None) -> pflow.Failure:
    result = one(tool, params)
    assert result.error is not None
    return result.error


def test_a_server_that_dies_at_the_start_shows_its_last_words() -> None:
    synced()
    known("--die")
    made = failure("pid")
    assert made.kind == "connection" and "ended before it was ready" in made.message
    assert "no licence found" in made.message


def test_a_server_that_cannot_be_started_is_named() -> None:
    synced()
    config.add({"small": Server(command="no-such-program")}, replace=True)
    made = failure("pid")
    assert "cannot be started" in made.message and "no-such-program" in made.message


@pytest.mark.parametrize(("how", "says"), [("--hang", ""), ("--only-garbage", "Listening…")])
def test_a_server_that_is_never_ready_is_given_up(how: str, says: str, here: Path) -> None:
    synced()
    known(how, start_timeout=45.0, env={"MARK": str(here / "up")})
    result = run_out(pflow.run(flow(Node("n", "mcp-small-pid"))), (here / "up").exists, limit=45.0)
    assert result.error is not None
    assert "was not ready after 45 s" in result.error.message and says in result.error.message


def test_a_tool_that_is_gone_since_the_sync_is_missed_by_name() -> None:
    synced()
    known(env={"HIDE": "shout"})
    made = failure("shout", {"text": "hi"})
    assert 'has no tool "shout" any more' in made.message and "pflow mcp sync small" in made.hint


def test_a_param_that_the_schema_forbids_is_named() -> None:
    synced()
    made = failure("add", {"a": 1, "b": -5000})
    assert "params.b is under -1000" in made.message
    made = failure("add", {"a": 1, "b": "many"})
    assert 'param "b"' in made.message


def test_a_param_that_is_required_since_the_sync_is_named() -> None:
    synced()
    known(env={"STRICT": "1"})
    made = failure("shout", {"text": "hi"})
    assert 'params has no "times"' in made.message and "schema may have changed" in made.hint


def test_an_answer_that_does_not_fit_its_own_schema_is_refused_by_field() -> None:
    synced()
    made = failure("misfit")
    assert "its answer.count" in made.message and "'many' is not of type 'integer'" in made.message


def test_a_secret_that_is_not_set_is_named_before_anything_starts() -> None:
    synced()
    known(env={"KEY": "${NOWHERE_TO_BE_FOUND}"})
    made = failure("pid")
    assert "NOWHERE_TO_BE_FOUND" in made.message and "pflow settings env" in made.hint


# By HTTP.


def test_a_server_at_a_url_is_called(http: Callable[[], str]) -> None:
    config.add({"small": Server(url=http())})
    assert asyncio.run(sync("small")).problem is None
    result = pflow.run_sync(flow(*(Node(f"n{n}", "mcp-small-add", {"a": n, "b": 1}) for n in range(2))))
    assert [made["sum"] for made in result.outputs.values()] == [1, 2]


def test_nobody_at_a_url_is_said(http: Callable[[], str]) -> None:
    config.add({"small": Server(url="http://127.0.0.1:9/mcp")})
    made = asyncio.run(sync("small")).problem
    assert made is not None and "cannot be reached" in made.message and "127.0.0.1:9" in made.hint


def test_an_answer_of_two_megabytes_comes_by_http(http: Callable[[], str]) -> None:
    config.add({"small": Server(url=http())})
    asyncio.run(sync("small"))
    assert len(one("big", {"size": 2_000_000}).outputs["n"]["result"]) == 2_000_000

"""Four nodes that decide for themselves, as local node types: a cache, a request, an input, an injection."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import pflow
from pflow.model.conversation import Conversation

NODES = """
import time

from pflow import chat_stream, node


@node("own/cache")
async def cache_node(flow, context, data_in, inputs, config):
    ttl = config.get("ttl", 300)
    cached = flow.store.get_node_cache(flow.node_id)
    if cached and time.time() - cached["timestamp"] < ttl:
        flow.log.debug("Cache HIT", {"age": time.time() - cached["timestamp"]})
        flow.conversation.add_badge({"type": "info", "label": "Using cached data", "icon": "💾"})
        return {"context": context, "data": cached["data"], "status": "success", "metadata": {"cached": True}}
    flow.log.debug("Cache MISS - pulling from input")
    fresh = data_in if data_in is not None else await inputs.pull("data")
    flow.store.set_node_cache(flow.node_id, {"data": fresh, "timestamp": time.time()})
    return {"context": context, "data": fresh, "status": "success", "metadata": {"cached": False}}


@node("own/request")
async def llm_request_node(flow, context, data_in, inputs, config):
    flow.check_cancelled()
    message = data_in if data_in is not None else await inputs.pull("data")
    tools = await inputs.pull("tools") if inputs.has("tools") else None
    badge_id = flow.conversation.add_badge({"type": "info", "label": "Calling LLM", "icon": "🤖"})
    response = ""
    stream = chat_stream(context, message, tools)
    async for chunk in stream:
        flow.check_cancelled()
        response += chunk
        flow.conversation.stream_chunk(chunk)
    flow.usage.report(
        provider=context.provider,
        model=context.model,
        input_tokens=stream.usage.input_tokens,
        output_tokens=stream.usage.output_tokens,
    )
    flow.conversation.update_badge(badge_id, {"status": "success"})
    new_context = flow.context.add_messages(
        context, [{"role": "user", "content": message}, {"role": "assistant", "content": response}]
    )
    return {"context": new_context, "data": response, "status": "success"}


@node("own/input")
async def user_input_node(flow, context, _data_in, _inputs, _config):
    return None


@node("own/user")
async def user_node(flow, context, data_in, inputs, config):
    flow.log.info("Waiting for user input...")
    user_input = await flow.wait_for_user_input()
    flow.log.debug("Received user input", {"length": len(user_input)})
    return {"context": context, "data": user_input, "status": "success"}


@node("own/inject")
async def inject_messages_node(flow, context, data_in, inputs, config):
    user_message = await inputs.pull("userMessage") if inputs.has("userMessage") else config.get("staticUserMessage")
    assistant_message = (
        await inputs.pull("assistantMessage")
        if inputs.has("assistantMessage")
        else config.get("staticAssistantMessage")
    )
    if not (user_message or "").strip() or not (assistant_message or "").strip():
        error = (
            "User message is required and must be non-empty"
            if not (user_message or "").strip()
            else "Assistant message is required and must be non-empty"
        )
        flow.log.error("Validation failed", {"error": error})
        return {"context": context, "status": "error", "error": error}
    new_context = flow.context.inject_pair(
        context,
        user_message.strip(),
        assistant_message.strip(),
        mode=config.get("injectionMode") or "prepend",
        pinned=config.get("pinned") or False,
        priority=config.get("priority") or 50,
        id_prefix=flow.node_id,
    )
    return {"context": new_context, "data": {"userMessage": user_message.strip()}, "status": "success"}
"""

GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "start", "nodeType": "defaultContextStart", "config": {"systemInstructions": "Be kind."}},
        {"id": "boot", "nodeType": "own/inject", "config": {"staticUserMessage": " Who? ", "pinned": True}},
        {"id": "fact", "nodeType": "own/cache", "config": {}},
        {"id": "slow", "nodeType": "manualInput", "config": {"message": "An assistant."}},
        {"id": "user", "nodeType": "own/user", "config": {}},
        {"id": "llm", "nodeType": "own/request", "config": {}},
    ],
    "edges": [
        {"source": "start", "target": "boot"},
        {"source": "fact", "target": "boot", "sourceHandle": "data", "targetHandle": "assistantMessage"},
        {"source": "slow", "target": "fact", "sourceHandle": "data", "targetHandle": "data"},
        {"source": "boot", "target": "user"},
        {"source": "user", "target": "llm"},
        {"source": "user", "target": "llm", "sourceHandle": "data", "targetHandle": "data"},
    ],
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PFLOW_HOME", str(tmp_path / "home"))
    nodes = tmp_path / ".pflow" / "nodes"
    nodes.mkdir(parents=True)
    (nodes / "own.py").write_text(NODES)
    (tmp_path / "a.json").write_text(json.dumps({"answers": ["I am well"] * 3, "calls": "calls.jsonl"}))
    return tmp_path


def ran(here: Path, graph: dict[str, Any]) -> tuple[pflow.Result, list[pflow.Event]]:
    (here / "g.json").write_text(json.dumps(graph))
    events: list[pflow.Event] = []

    async def answer(asked: Any) -> str:
        return "How are you?"

    made = asyncio.run(
        pflow.run("g.json", model="script:a.json", answer=answer, on_event=lambda one: events.append(one.event))
    )
    return made, events


def test_the_four_nodes_work_as_local_nodes(here: Path) -> None:
    result, events = ran(here, GRAPH)
    assert result.success, result.error
    context = result.outputs["llm"]["context"]
    assert isinstance(context, Conversation)
    shown = [(message.role, message.content, message.pinned) for message in context.message_history]
    assert shown == [
        ("user", "Who?", True),
        ("assistant", "An assistant.", True),
        ("user", "How are you?", False),
        ("assistant", "I am well", False),
    ]
    kinds = [event.type for event in events]
    assert "".join(event.data["text"] for event in events if event.type == "conversation:chunk") == "I am well"
    assert kinds.count("conversation:badge") == kinds.count("conversation:badge:update") == 1
    assert result.usage["output_tokens"] > 0 and result.usage["model_calls"] == 1
    assert "Cache MISS - pulling from input" in [event.data["message"] for event in events if event.type == "log"]


def test_a_cache_that_hits_does_not_pull(here: Path) -> None:
    ran(here, GRAPH)
    result, events = ran(here, GRAPH)
    assert result.success and "slow#1" not in result.visits and result.visits["fact#1"].outputs["metadata"]["cached"]
    assert any(event.type == "conversation:badge" and event.data["label"] == "Using cached data" for event in events)


def test_a_status_of_error_fails_the_visit_with_its_message(here: Path) -> None:
    graph = json.loads(json.dumps(GRAPH))
    graph["nodes"][1]["config"] = {}
    result, _ = ran(here, graph)
    assert result.status == "failed" and result.error is not None
    assert result.error.message == "User message is required and must be non-empty"


def test_autonomous_nodes_work_in_the_other_dialects(here: Path) -> None:
    (here / "f.yaml").write_text(
        "flow: {name: f}\n"
        "nodes:\n"
        "  - {id: boot, type: own/inject, input: {staticUserMessage: hi, staticAssistantMessage: ho}}\n"
        "  - {id: show, type: echo, input: {text: '{{boot.context.message_history[1].content}}'}}\n"
        "edges: [{from: boot, to: show}]\n"
    )
    result = pflow.run_sync("f.yaml")
    assert result.success and result.outputs["show"]["text"] == "ho"


def test_a_node_without_the_five_parameters_is_an_ordinary_one(here: Path) -> None:
    from pflow.app.options import Options
    from pflow.app.session import registry_for

    kind = registry_for(pflow.load("g.json") if Path("g.json").exists() else _empty(), Options()).get("own/input")
    assert not kind.autonomous and "flow" in kind.params


def _empty() -> pflow.Workflow:
    return pflow.Workflow("w", "test", ())

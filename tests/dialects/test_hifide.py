"""HiFide graphs: old forms are read, and what is cosmetic survives."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.dialects.detect import detect
from pflow.dialects.hifide import dump, parse
from pflow.documents.source import load
from pflow.errors import WorkflowError
from pflow.model.workflow import Workflow, meaning


def read(data: Any) -> Workflow:
    source = load(json.dumps(data, indent=1), "g.json")
    assert detect(source) == "hifide"
    return parse(source)


START = {"id": "start", "nodeType": "defaultContextStart", "config": {}}
CHAT: dict[str, Any] = {
    "name": "chat",
    "description": "d",
    "version": "1.2",
    "nodes": [
        {**START, "position": {"x": 1.5, "y": -2}, "label": "Start", "expanded": True, "colour": "red"},
        {"id": "ask", "nodeType": "userInput", "config": {}},
    ],
    "edges": [{"id": "e1", "source": "start", "target": "ask", "sourceHandle": "contextOut", "animated": True}],
    "_comments": {"why": "because"},
}


def test_nodes_and_edges_are_read() -> None:
    made = read(CHAT)
    assert made.scheduler == "reactive" and [node.type for node in made.nodes] == ["defaultContextStart", "userInput"]
    (edge,) = made.edges
    assert (edge.source, edge.on, edge.target, edge.port) == ("start", "context", "ask", "context")
    assert made.nodes[0].place.line == 6


def test_a_round_trip_keeps_what_is_cosmetic() -> None:
    printed = json.loads(dump(read(CHAT)))
    assert printed["nodes"][0]["position"] == {"x": 1.5, "y": -2} and printed["nodes"][0]["colour"] == "red"
    assert printed["edges"][0]["animated"] and printed["edges"][0]["id"] == "e1" and printed["_comments"]
    assert (printed["name"], printed["description"], printed["version"]) == ("chat", "d", "1.2")


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
COSMETIC = st.dictionaries(st.sampled_from(["position", "label", "expanded", "style"]), TEXT | st.integers(0, 9))


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    ids = draw(st.lists(st.from_regex(r"[a-z][a-z0-9-]{0,5}", fullmatch=True), unique=True, min_size=1, max_size=4))
    nodes: list[dict[str, Any]] = []
    for name in ids:
        kind = draw(st.sampled_from(["llmRequest", "chat", "tools", "my/own"]))
        config = draw(st.dictionaries(TEXT, TEXT | st.integers() | st.booleans(), max_size=2))
        key = draw(st.sampled_from(["nodeType", "kind"]))
        nodes.append({"id": name, key: kind, "config": config, **draw(COSMETIC)})
    ends = st.fixed_dictionaries(
        {"source": st.sampled_from(ids), "target": st.sampled_from(ids)},
        optional={"sourceHandle": st.sampled_from(["ctx", "data", "x-context"]), "id": TEXT},
    )
    return {"name": "g", "nodes": nodes, "edges": draw(st.lists(ends, max_size=4))}


@given(documents())
def test_parse_print_parse_is_stable(data: dict[str, Any]) -> None:
    first = read(data)
    printed = dump(first)
    second = parse(load(printed, "g.json"))
    assert meaning(second) == meaning(first) and dump(second) == printed
    assert [node.notes for node in second.nodes] == [node.notes for node in first.nodes]


@given(documents(), COSMETIC)
def test_cosmetic_edits_do_not_change_the_meaning(data: dict[str, Any], more: dict[str, Any]) -> None:
    edited = msgspec.json.decode(msgspec.json.encode(data))
    edited["nodes"][0] |= more
    edited["description"] = "another"
    assert meaning(read(edited)) == meaning(read(data))


@pytest.mark.parametrize(
    "node",
    [
        {"id": "a", "kind": "userInput", "config": {"x": 1}},
        {"id": "a", "type": "userInput", "config": {"x": 1}},
        {"id": "a", "type": "customNode", "data": {"nodeType": "userInput", "config": {"x": 1}, "label": "A"}},
    ],
    ids=["kind", "type", "data"],
)
def test_legacy_forms_load(node: dict[str, Any]) -> None:
    made = read({"nodes": [START, node], "edges": [{"source": "start", "target": "a"}]})
    assert (made.nodes[1].type, made.nodes[1].params) == ("userInput", {"x": 1})


def test_chat_is_a_request_and_an_old_edge_is_warned_about() -> None:
    nodes = [{"id": "start", "type": "defaultContextStart"}, {"id": "c", "type": "chat", "config": {}}]
    edges = [{"source": "start", "target": "c", "sourceHandle": "data", "targetHandle": "context"}]
    made = read({"nodes": nodes, "edges": edges})
    assert made.nodes[1].type == "llmRequest" and made.edges[0].on == "context" and len(made.warnings) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": [{"nodeType": "userInput"}]}, '"id"'),
        ({"nodes": [START, {"id": "b", "nodeType": ""}]}, "no type"),
        ({"edges": [{"source": "start", "nodeType": 1}]}, '"target"'),
        ({"edges": [{"source": "start", "target": "ask", "sourceHandle": 5}]}, "text"),
        ({"nodes": [{**START, "config": [1]}]}, "mapping"),
    ],
    ids=["no id", "no type", "no target", "handle", "config"],
)
def test_what_is_wrong_is_told_with_its_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        read(CHAT | change)
    assert any(message in problem.message and problem.place.line for problem in caught.value.problems)

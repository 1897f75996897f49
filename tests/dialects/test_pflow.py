from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.dialects import pflow as dialect
from pflow.dialects.detect import detect
from pflow.documents.source import load
from pflow.errors import WorkflowError
from pflow.model.value import digest
from pflow.model.workflow import DEFAULT, Workflow, meaning


def parse(document: Any) -> Workflow:
    text = document if isinstance(document, str) else json.dumps(document)
    return dialect.parse(load(text, "w.json"))


def problems(document: Any) -> list[str]:
    with pytest.raises(WorkflowError) as caught:
        parse(document)
    return [f"{problem.place.line}: {problem.message} | {problem.hint}" for problem in caught.value.problems]


NODES = [
    {"id": "a", "type": "echo", "params": {"text": "hi"}},
    {"id": "b", "type": "echo"},
    {"id": "c", "type": "echo"},
]


def test_without_edges_nodes_are_a_chain() -> None:
    flow = parse({"nodes": NODES})
    assert [(edge.source, edge.target, edge.on) for edge in flow.edges] == [("a", "b", DEFAULT), ("b", "c", DEFAULT)]
    assert flow.name == "w" and flow.syntax == "dollar" and flow.open_inputs


def test_edges_have_actions_and_execution_directives_stay_out_of_params() -> None:
    node = {"id": "a", "type": "x", "params": {"url": "X"}, "exec": {"retries": 3, "timeout": 2.5, "cache": False}}
    flow = parse({"nodes": [node, NODES[1]], "edges": [{"from": "a", "to": "b", "action": "error"}]})
    assert flow.edges[0].on == "error"
    assert flow.nodes[0].params == {"url": "X"}
    policy = flow.nodes[0].policy
    assert (policy.retry.attempts, policy.timeout, policy.cache) == (4, 2.5, False)


def test_inputs_and_outputs() -> None:
    flow = parse({
        "inputs": {"url": {"type": "string"}, "n": {"type": "number", "default": 3, "required": True}},
        "nodes": NODES,
        "outputs": {"x": {"source": "${a.text}"}, "y": {"source": "b.text"}, "text": {"type": "string"}},
    })  # fmt: skip
    assert [(item.name, item.required, item.default) for item in flow.inputs] == [("url", True, None), ("n", False, 3)]
    assert [(item.name, item.source) for item in flow.outputs] == [
        ("x", "${a.text}"),
        ("y", "${b.text}"),
        ("text", "${c.text}"),
    ]
    assert not flow.open_inputs


def test_a_start_node_leaves_out_what_it_cannot_reach_and_says_so() -> None:
    flow = parse({"nodes": NODES, "edges": [{"from": "b", "to": "c"}], "start_node": "b"})
    assert [node.id for node in flow.nodes] == ["b", "c"]
    assert "left out: a" in flow.warnings[0].message and flow.warnings[0].warning


def test_a_saved_wrapper_is_opened() -> None:
    flow = parse({"name": "saved", "description": "d", "ir": {"nodes": NODES}})
    assert flow.name == "saved" and flow.description == "d" and len(flow.nodes) == 3


def test_legacy_mappings_become_templates() -> None:
    mappings = {"a": {"output_mappings": {"text": "said"}}, "c": {"input_mappings": {"text": "said", "prefix": "echo"}}}
    flow = parse({"nodes": NODES, "mappings": mappings})
    assert flow.nodes[2].params == {"text": "${a.text}", "prefix": "${b.echo}"}


@pytest.mark.parametrize("items", [[], [1], "${a}", " [1, 2]", "x ${a}"])
def test_items_may_be_a_list_its_json_or_a_template(items: Any) -> None:
    made = parse({"nodes": [{"id": "b", "type": "echo", "batch": {"items": items}}]}).nodes[0].batch
    assert made is not None and made.items == items


def test_batches() -> None:
    batch = {"items": "${a.list}", "as": "x", "parallel": True, "max_concurrent": 4, "error_handling": "continue"}
    flow = parse({"nodes": [NODES[0], {"id": "b", "type": "echo", "batch": batch}]})
    made = flow.nodes[1].batch
    assert made is not None and (made.items, made.name, made.width, made.fail_fast) == ("${a.list}", "x", 4, False)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nodez": []}, 'did you mean "nodes"'),
        ({"edges": [{"from": "a"}]}, '"to"'),
        ({"start_node": "d"}, "names no node"),
        ({"inputs": {"x": {"type": "strin"}}}, 'did you mean "string"'),
        ({"template_resolution_mode": "lax"}, "strict or permissive"),
        ({"nodes": [{"id": "a", "type": "echo", "exec": {"retries": -1}}]}, "at least 0"),
        ({"nodes": [{"id": "a", "type": "echo", "exec": {"retries": 10**6}}]}, "at most 100"),
        ({"nodes": [{"id": "a", "type": "echo", "retries": 3}]}, 'no key "retries"'),
        ({"nodes": [{"id": "a", "type": "echo", "batch": {"items": {"a": 1}}}]}, "a list or a template"),
        ({"nodes": [{"id": "a", "type": "echo", "batch": {"items": "hello"}}]}, "a list or a template"),
        ({"nodes": [{"id": "a", "type": "echo", "batch": {"items": '{"a": 1}'}}]}, "a list or a template"),
        ({"nodes": [{"id": "a", "type": "echo", "batch": {"items": [], "error_handling": "x"}}]}, "error_handling"),
        ({"mappings": {"q": {}}}, "names no node"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], said: str) -> None:
    assert any(said in problem for problem in problems({"nodes": NODES} | change))


def test_the_dialect_is_told_by_content() -> None:
    assert detect(load(json.dumps({"nodes": NODES}), "x.yaml")) == "pflow"
    assert detect(load("nodes:\n- id: a\n  type: echo\n  params: {text: x}\n", "x.json5")) == "pflow"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
IDS = st.from_regex(r"[a-z][a-z-]{0,4}", fullmatch=True)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    ids = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    nodes = []
    for node_id in ids:
        node: dict[str, Any] = {"id": node_id, "type": "echo", "params": draw(st.dictionaries(IDS, VALUES, max_size=2))}
        if draw(st.booleans()):
            node["exec"] = {
                "retries": draw(st.integers(0, 5)),
                "timeout": draw(st.integers(1, 9)),
                "cache": draw(st.booleans()),
            }
        if draw(st.booleans()):
            node["batch"] = {"items": draw(st.lists(VALUES, max_size=2)), "parallel": draw(st.booleans())}
        if draw(st.booleans()):
            node["purpose"] = draw(st.text(max_size=5))
        nodes.append(node)
    edges = [
        {"from": a, "to": b, "action": draw(st.sampled_from(["default", "error", "x"]))}
        for a in ids
        for b in ids
        if a < b
    ]
    inputs = draw(
        st.dictionaries(
            IDS, st.fixed_dictionaries({"type": st.sampled_from(["string", "any"]), "default": VALUES}), max_size=2
        )
    )
    return {"nodes": nodes, "edges": edges, "inputs": inputs}


@given(documents())
def test_parse_print_parse_is_stable(document: dict[str, Any]) -> None:
    """Law 5."""
    flow = parse(document)
    again = parse(dialect.dump(flow))
    assert meaning(again) == meaning(flow)
    assert dialect.dump(again) == dialect.dump(flow)


@given(documents(), st.text(max_size=5))
def test_cosmetic_edits_do_not_change_the_digest(document: dict[str, Any], words: str) -> None:
    before = digest(meaning(parse(document)))
    for node in document["nodes"]:
        node["purpose"] = words
    edited = {"metadata": {"note": words}, **dict(reversed(list(document.items())))}
    assert digest(meaning(parse(json.dumps(edited, indent=3)))) == before


@given(
    VALUES | documents(),
    VALUES,
    st.sampled_from(["nodes", "edges", "inputs", "outputs", "batch", "exec", "mappings", "start_node"]),
)
def test_nonsense_is_refused_and_never_crashes(document: Any, value: Any, key: str) -> None:
    broken = {**document, key: value} if isinstance(document, dict) else document
    if (
        isinstance(broken, dict)
        and key in ("batch", "exec")
        and isinstance(broken.get("nodes"), list)
        and broken["nodes"]
    ):
        broken["nodes"][0] = {**broken["nodes"][0], key: value}
        del broken[key]
    try:
        parse(broken)
    except WorkflowError as error:
        assert error.problems

"""Detection: each dialect by what it says, and help for a document that is none of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.dialects import detect as module
from pflow.dialects.detect import detect, parse
from pflow.documents.source import Source, load
from pflow.errors import Place, Problem, WorkflowError


def refused(text: str) -> Problem:
    with pytest.raises(WorkflowError) as caught:
        detect(load(text, "x"))
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("flowspec", "flow: {name: x}\nnodes: []\nedges: []"),
        ("flowspec", "flow: {}"),
        ("flowspec", "flow: {name: x}\nnodes: [{id: a, type: agent, prompt: x}]"),
        ("hifide", "{nodes: [{id: a, nodeType: userInput}], edges: [{source: a, target: a}]}"),
        ("hifide", "{nodes: [{id: a, nodeType: userInput}], edges: []}"),
        ("hifide", "{nodes: [{id: a, type: hifiNode, data: {nodeType: userInput}}]}"),
        ("hifide", "{nodes: [{id: a, type: chat, config: {}}], edges: [{source: a, target: b}]}"),
        ("hifide", "{nodes: [{id: a, kind: manualInput}], edges: [{source: a, target: b}]}"),
        ("dotrunner", "workflow: {name: x}\nnodes: [{id: a, prompt: do}]"),
        ("dotrunner", "name: x\nnodes:\n  - {id: a, prompt: do}\n  - {id: b, type: terminal}"),
        ("dotrunner", "nodes: [{id: a, agent: reviewer}]"),
        ("dotrunner", "nodes: [{id: a, workflow: other.yaml}]"),
        ("pflow", '{"nodes": [{"id": "a", "type": "llm", "params": {"prompt": "x"}}]}'),
        ("pflow", '{"ir_version": "0.1.0", "nodes": []}'),
        ("pflow", '{"name": "x", "description": "", "ir": {"nodes": []}}'),
        (
            "pflow",
            '{"nodes": [{"id": "a", "type": "x"}, {"id": "b", "type": "y"}], "edges": [{"from": "a", "to": "b"}]}',
        ),
    ],
)
def test_each_dialect_is_told_by_its_content(dialect: str, text: str) -> None:
    """Under any file name."""
    for file in ("x.json", "x.yaml", "x") if text.startswith('{"') else ("x.yaml", "x"):
        assert detect(load(text, file)) == dialect


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("flwo: {name: x}\nedges: []", "FlowSpec"),
        ("nodes: [{id: a, type: echo, input: {text: x}}]\nedges: []", "FlowSpec"),
        ("flow: x\nnodes: []\nedges: []", "FlowSpec"),
        ("workflw: {name: x}", "DotRunner"),
        ("nodes: [{id: a, next: b}]", "DotRunner"),
        ("nodes: [{id: a, position: {x: 1}}]", "HiFide"),
        ("ir_verison: 1", "pflow"),
        ("nodes: [{id: a, purpose: x}]", "pflow"),
    ],
)
def test_the_nearest_dialect_is_named(text: str, near: str) -> None:
    """With what it would need, and what was looked for."""
    problem = refused(text)
    assert problem.message == "this is no workflow of a known dialect"
    assert problem.hint.startswith(f"nearest is {near}, which needs ")
    assert all(sign in problem.hint for sign in ('"flow"', '"nodeType"', '"prompt"', '"ir_version"'))
    assert problem.place == Place("x", 1, 1)


@pytest.mark.parametrize("text", ["[1]", "just text", "5", "~"])
def test_a_workflow_is_a_mapping(text: str) -> None:
    assert refused(text).message.startswith("a workflow is a mapping, not ")


def test_nothing_is_near() -> None:
    assert refused("colour: blue").hint.startswith("looked for ")


def test_parse_finds_the_parser() -> None:
    workflow = parse(load("flow: {name: x}\nnodes: [{id: a, type: echo}]\nedges: []", "x"))
    assert workflow.dialect == "flowspec"


words = st.sampled_from(
    ["flow", "nodes", "edges", "workflow", "ir", "data", "type", "params", "prompt", "source", "kind"]
)
wild = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


@given(wild)
def test_any_data_are_told_or_refused(data: object) -> None:
    """Nothing but a ``WorkflowError`` ever comes out."""
    try:
        assert detect(Source("x", data)) in module.DIALECTS
    except WorkflowError as error:
        assert error.problems[0].hint

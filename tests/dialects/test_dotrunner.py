from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.dialects import dotrunner
from pflow.dialects.detect import detect
from pflow.documents.source import load
from pflow.documents.yaml_print import dump as as_yaml
from pflow.errors import WorkflowError
from pflow.model.value import digest
from pflow.model.workflow import Workflow, meaning


def parse(document: Any) -> Workflow:
    text = document if isinstance(document, str) else as_yaml(document)
    return dotrunner.parse(load(text, "w.yaml"))


def ways(flow: Workflow) -> list[tuple[str, str, str]]:
    return [(edge.source, edge.target, "when" if edge.guard else edge.on) for edge in flow.edges]


def said(document: Any) -> str:
    with pytest.raises(WorkflowError) as caught:
        parse(document)
    return str(caught.value)


def ask(node_id: str, **rest: Any) -> dict[str, Any]:
    return {"id": node_id, "prompt": "x", **rest}


def test_both_layouts() -> None:
    nodes = "nodes: [{id: a, prompt: hi}]\n"
    for text in (f"workflow: {{name: n, context: {{x: 1}}}}\n{nodes}", f"name: n\ncontext: {{x: 1}}\n{nodes}"):
        flow = parse(text)
        assert flow.name == "n" and flow.inputs[0].name == "x" and flow.scheduler == "routed"


def test_without_next_the_listed_order_counts_unless_a_route_names_the_node() -> None:
    assert ways(parse({"nodes": [ask("a"), ask("b"), ask("c")]})) == [("a", "b", "*"), ("b", "c", "*")]
    flow = parse({"nodes": [ask("a", next={"yes": "c", "default": "b"}, outputs=["ok"]), ask("b"), ask("c")]})
    assert ways(flow) == [("a", "c", "yes"), ("a", "b", "default")]
    assert "the run ends after" in flow.warnings[0].message
    assert ways(parse({"nodes": [ask("a", type="terminal"), ask("b")]})) == []


def test_yes_and_no_are_words() -> None:
    first = "{id: a, prompt: x, outputs: [ok], next: {yes: b, no: c}}"
    flow = parse(f"nodes:\n- {first}\n- {{id: b, prompt: x}}\n- {{id: c, prompt: x}}\n")
    assert ways(flow)[:2] == [("a", "b", "yes"), ("a", "c", "no")]
    assert any("no default" in warning.message for warning in flow.warnings)


def test_conditions_errors_and_options() -> None:
    node = ask(
        "a",
        next=[{"when": "score > 80 and ok == 'yes'", "goto": "b"}, {"default": "a"}],
        outputs=["score", "ok"],
        on_error="b",
        optional=True,
        on_optional_failure="b",
        retry_on_failure=3,
        retry_delay=5,
        retry={"timeout": {"retries": 1, "delay": 2, "backoff": "constant"}},
        timeout=60,
        max_visits=7,
        agent="helper",
        agent_mode="ANALYZE",
    )
    flow = parse({"nodes": [node, ask("b", critical=True)]})
    first = flow.nodes[0]
    assert [kind for *_, kind in ways(flow)] == ["when", "default", "error", "optional-failure"]
    assert first.policy.tolerate and first.policy.retry.attempts == 4 and first.policy.retry.backoff == "exponential"
    assert first.policy.by_kind["timeout"].attempts == 2 and first.policy.timeout == 60 and first.max_visits == 7
    assert first.params == {"prompt": "x", "agent": "helper", "mode": "ANALYZE", "outputs": ["score", "ok"]}
    assert flow.nodes[1].policy.critical


def test_workflows_and_tasks() -> None:
    flow = parse({
        "nodes": [
            {"id": "s", "workflow": "sub.yaml", "inputs": {"code": "{x}"}, "outputs": ["score"]},
            {"id": "t", "agent": "v", "parallel_tasks": ["lint", {"id": "types", "prompt": "p"}]},
            {"id": "f", "prompt": "{item}", "for_each": "{files}"},
        ]
    })  # fmt: skip
    kinds = [(node.type, node.params) for node in flow.nodes]
    assert kinds[0] == (
        "workflow",
        {"workflow_ref": "sub.yaml", "inputs": {"code": "{x}"}, "outputs": {"score": "score"}},
    )
    assert kinds[1][0] == "agent.tasks" and kinds[1][1]["tasks"] == ["lint", {"id": "types", "prompt": "p"}]
    assert kinds[2][1]["tasks"] == "{files}" and kinds[2][1]["as_"] == "item"


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({"id": "a"}, "needs a prompt"),
        (ask("a", workflow="x.yaml"), "not both"),
        (ask("a", next=[{"when": "__import__('os')", "goto": "a"}]), "when:"),
        (ask("a", next=[{"when": "x.upper()", "goto": "a"}]), "when:"),
        (ask("a", next=[{"when": "{x} contains 'y'", "goto": "a"}]), "allowed are"),
        (ask("a", next=[{"when": "x > 1"}]), '"goto"'),
        (ask("a", next=5), "list"),
        (ask("a", retry_on_failure=-1), "at least 0"),
        (ask("a", timeout=0), "above 0"),
        (ask("a", type="loop"), "terminal"),
        (ask("a", outputs=["a b"]), "name of an output"),
        (ask("a", promt="x"), 'did you mean "prompt"'),
        (ask("a", retry={"timeout": {"retries": 1, "backoff": "wild"}}), "constant or exponential"),
        (ask("a", for_each=3), "a list or a template"),
    ],
)
def test_what_is_wrong_is_said(node: dict[str, Any], text: str) -> None:
    assert text in said({"nodes": [node]})


def test_the_dialect_is_told_by_content() -> None:
    assert detect(load("nodes:\n- {id: a, prompt: x}\n", "x")) == "dotrunner"
    assert detect(load("workflow: {name: n}\nnodes:\n- {id: a, workflow: x}\n", "x")) == "dotrunner"


WORDS = st.from_regex(r"[a-z]{1,4}", fullmatch=True)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    ids = draw(st.lists(WORDS, min_size=1, max_size=4, unique=True))
    nodes = []
    for node_id in ids:
        node: dict[str, Any] = {"id": node_id, "prompt": draw(st.text(min_size=1, max_size=8).filter(str.strip))}
        target = st.sampled_from(ids)
        condition = st.fixed_dictionaries({"when": st.sampled_from(["a > 1", "len(x) == 2"]), "goto": target})
        node["next"] = draw(
            target
            | st.dictionaries(WORDS | st.sampled_from(["default", "yes", "no"]), target, min_size=1, max_size=3)
            | st.lists(condition, min_size=1, max_size=2)
            | st.none()
        )
        if draw(st.booleans()):
            node |= {"retry_on_failure": draw(st.integers(0, 3)), "optional": draw(st.booleans()), "timeout": 5}
        if draw(st.booleans()):
            node |= {"outputs": draw(st.lists(WORDS, max_size=2)), "agent": draw(WORDS), "on_error": draw(target)}
        nodes.append({key: value for key, value in node.items() if value is not None})
    context = draw(st.dictionaries(WORDS, st.integers() | st.text(max_size=5) | st.booleans(), max_size=2))
    return {"name": draw(WORDS), "context": context, "nodes": nodes}


@given(documents())
def test_parse_print_parse_is_stable(document: dict[str, Any]) -> None:
    """Law 5."""
    flow = parse(document)
    printed = dotrunner.dump(flow)
    again = parse(printed)
    assert meaning(again) == meaning(flow)
    assert dotrunner.dump(again) == printed


@given(documents())
def test_cosmetic_edits_do_not_change_the_digest(document: dict[str, Any]) -> None:
    before = digest(meaning(parse(document)))
    for node in document["nodes"]:
        node |= {"name": "another", "description": "words"}
    assert digest(meaning(parse("# a comment\n" + as_yaml(dict(reversed(list(document.items()))))))) == before


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["next", "outputs", "retry", "inputs", "parallel_tasks", "workflow", "timeout", "context"]


@given(documents(), VALUES, st.sampled_from(KEYS))
def test_nonsense_is_refused_and_never_crashes(document: dict[str, Any], value: Any, key: str) -> None:
    if key == "context":
        document["context"] = value
    else:
        document["nodes"][0][key] = value
    try:
        parse(document)
    except WorkflowError as error:
        assert error.problems

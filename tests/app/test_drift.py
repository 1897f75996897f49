"""What changed of a workflow since one of its runs was opened."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pflow.app.drift import difference
from pflow.model.workflow import Edge, Node, Workflow

IDS = st.lists(st.sampled_from("abcdef"), unique=True, min_size=1)
TEXTS = st.sampled_from(["x", "y"])


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    ids = sorted(draw(IDS))
    nodes = tuple(Node(name, "echo", {"text": draw(TEXTS)}) for name in ids)
    edges = tuple(Edge(a, b) for a in ids for b in ids if a < b and draw(st.booleans()))
    return Workflow(draw(TEXTS), "flowspec", nodes, edges)


def leaving(flow: Workflow, name: str) -> list[Edge]:
    return [edge for edge in flow.edges if edge.source == name]


@given(workflows(), workflows())
def test_every_node_that_differs_is_named_and_no_other(before: Workflow, after: Workflow) -> None:
    made = difference("w.yaml", before, after)
    if before == after:
        assert made is None
        return
    assert made is not None
    old, new = {node.id: node for node in before.nodes}, {node.id: node for node in after.nodes}
    assert set(made.added) == set(new) - set(old) and set(made.removed) == set(old) - set(new)
    both = set(old) & set(new)
    assert set(made.changed) == {
        name for name in both if old[name] != new[name] or leaving(before, name) != leaving(after, name)
    }
    assert ("name" in made.parts) == (before.name != after.name)


@given(workflows(), st.text(max_size=5))
def test_cosmetic_changes_are_none(flow: Workflow, words: str) -> None:
    assert difference("w.yaml", flow, msgspec.structs.replace(flow, description=words, version=words)) is None

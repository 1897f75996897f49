"""What a workflow means, and what makes no difference to it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pflow.errors import Place, Problem
from pflow.model.value import digest, portable
from pflow.model.workflow import Batch, Edge, Input, Node, Output, Policy, Retry, Workflow, meaning

WHOLE = Workflow(
    "w", "test",
    (Node("a", "t", {"x": 1}), Node("b", "t", guard=["same", ["path", "a"], ["value", 1]], batch=Batch("{{a.x}}"))),
    (Edge("a", "b"),), (Input("i"),), outputs=(Output("o", "{{b}}"),),
)  # fmt: skip


def changed(workflow: Workflow, **fields: Any) -> Workflow:
    return msgspec.structs.replace(workflow, **fields)


def with_first(**fields: Any) -> Workflow:
    first, *rest = WHOLE.nodes
    return changed(WHOLE, nodes=(msgspec.structs.replace(first, **fields), *rest))


@pytest.mark.parametrize(
    "same",
    [
        changed(WHOLE, file="/elsewhere/w.json", text="{}", notes={"x": 1}, description="d", version="2"),
        changed(WHOLE, warnings=(Problem("careful"),)),
        with_first(place=Place("w", 3, 4), places={"params.x": Place("w", 5, 6)}, notes={"position": [1, 2]}),
        with_first(policy=Policy(Retry(1, 0.0))),
        with_first(params={"x": 1}, guard=None, outputs=()),
        changed(WHOLE, edges=(Edge("a", "b", "*", place=Place("w", 9, 1), notes={"colour": "red"}),)),
        changed(WHOLE, inputs=(Input("i", "any", description="what it is", place=Place("w", 1, 1)),)),
        changed(WHOLE, outputs=(Output("o", "{{b}}", description="what it is"),)),
    ],
)
def test_what_is_cosmetic_or_said_by_default_makes_no_difference(same: Workflow) -> None:
    assert meaning(same) == meaning(WHOLE) and digest(meaning(same)) == digest(meaning(WHOLE))


@pytest.mark.parametrize(
    "other",
    [
        changed(WHOLE, name="v"),
        changed(WHOLE, dialect="other"),
        changed(WHOLE, nodes=WHOLE.nodes[::-1]),
        changed(WHOLE, nodes=WHOLE.nodes[:1], edges=()),
        with_first(id="c"),
        with_first(type="u"),
        with_first(params={"x": True}),
        with_first(params={"x": "1"}),
        with_first(params={"x": 1, "y": None}),
        with_first(guard=["value", True]),
        with_first(policy=Policy(Retry(2))),
        with_first(policy=Policy(timeout=1.0)),
        with_first(policy=Policy(tolerate=True)),
        with_first(policy=Policy(critical=True)),
        with_first(policy=Policy(cache=False)),
        with_first(policy=Policy(by_kind={"node": Retry(2)})),
        with_first(batch=Batch([1])),
        with_first(outputs=("x",)),
        with_first(max_visits=7),
        changed(WHOLE, edges=()),
        changed(WHOLE, edges=(Edge("a", "b", "left"),)),
        changed(WHOLE, edges=(Edge("a", "b", guard=["value", True]),)),
        changed(WHOLE, edges=(Edge("a", "b", port="data"),)),
        changed(WHOLE, inputs=(Input("i", required=True),)),
        changed(WHOLE, inputs=(Input("i", default=0),)),
        changed(WHOLE, inputs=(Input("i", secret=True),)),
        changed(WHOLE, outputs=()),
        changed(WHOLE, outputs=(Output("o", "{{a}}"),)),
        changed(WHOLE, open_inputs=False),
        changed(WHOLE, input_path=("inputs",)),
        changed(WHOLE, syntax="dollar"),
        changed(WHOLE, missing="keep"),
        changed(WHOLE, scheduler="routed"),
        changed(WHOLE, flat=True),
        changed(WHOLE, width=2),
        changed(WHOLE, fail_fast=False),
        changed(WHOLE, safe_retries=True),
        changed(WHOLE, packs=("p",)),
    ],
)
def test_everything_else_does(other: Workflow) -> None:
    assert digest(meaning(other)) != digest(meaning(WHOLE))


def test_the_meaning_is_plain_data_and_says_only_what_differs_from_the_defaults() -> None:
    assert portable(meaning(WHOLE)) == {
        "name": "w", "dialect": "test",
        "nodes": [
            {"id": "a", "type": "t", "params": {"x": 1}},
            {"id": "b", "type": "t", "guard": ["same", ["path", "a"], ["value", 1]], "batch": {"items": "{{a.x}}"}},
        ],
        "edges": [{"source": "a", "target": "b"}],
        "inputs": [{"name": "i"}],
        "outputs": [{"name": "o", "source": "{{b}}"}],
    }  # fmt: skip


def test_a_node_is_found_by_its_id() -> None:
    assert WHOLE.node("b") is WHOLE.nodes[1]

"""Every refusal of a workflow that was read but cannot be run: what, where, what to do, and all of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pflow.errors import Place, Problem, WorkflowError
from pflow.model.workflow import Batch, Edge, Node, Output, Policy, Retry, Workflow
from pflow.nodes import StepContext, flow_safe, node
from pflow.nodes.registry import Registry
from pflow.nodes.type import describe_type
from pflow.planning.build import build
from pflow.planning.plan import Plan

FORMS = "known forms: value, path, same, not, and, or, list, len, !=, <, <=, ==, >, >=, in, not in"


@node("t/two", outputs=("left", "right"), aliases={"words": "text"})
async def two(step: StepContext, text: str, more: int = 0) -> dict[str, Any]:
    return {"left": text, "right": more}


@node("t/any")
async def anything(**given: Any) -> dict[str, Any]:
    return given


@flow_safe
@node("t/safe", effect="pure", version="1")
async def safe(text: str = "") -> dict[str, Any]:
    return {"text": text}


REGISTRY = Registry([two, anything, describe_type(safe, trusted=True)])


def at(line: int) -> Place:
    return Place("w", line, 1)


def any_node(node_id: str, line: int = 1, kind: str = "t/any", /, **params: Any) -> Node:
    return Node(node_id, kind, params, place=at(line))


def loop(node_id: str, body: Any, line: int = 1, item: str = "item") -> Node:
    """A loop, whose body stands one line below it."""
    params = {"items": [1], "body": body, "as": item}
    return Node(node_id, "control.foreach", params, place=at(line), places={"params.body": at(line + 1)})


def edge(ends: str, line: int = 50, **rest: Any) -> Edge:
    source, _, target = ends.partition(">")
    return Edge(source, target, place=at(line), **rest)


def flow(*parts: Node | Edge, **rest: Any) -> Workflow:
    nodes = tuple(part for part in parts if isinstance(part, Node))
    return Workflow("w", "test", nodes, tuple(part for part in parts if isinstance(part, Edge)), **rest)


def planned(workflow: Workflow, inputs: Iterable[str] | None = None) -> Plan:
    return build(workflow, REGISTRY, inputs)


def refused(workflow: Workflow, inputs: Iterable[str] | None = None) -> list[Problem]:
    with pytest.raises(WorkflowError) as raised:
        planned(workflow, inputs)
    return list(raised.value.problems)


def told(workflow: Workflow, inputs: Iterable[str] | None = None) -> list[tuple[str, int, str, str]]:
    """Message, line, hint and node of every problem."""
    return [(one.message, one.place.line, one.hint, one.node_id) for one in refused(workflow, inputs)]


# Ids.


@pytest.mark.parametrize("node_id", ["", "a/b", "/", "a#1", "#"])
def test_an_id_that_visits_could_not_be_named_by(node_id: str) -> None:
    text = f'"{node_id}" cannot be the id of a node'
    assert told(flow(any_node(node_id, 4))) == [(text, 4, "an id is not empty and contains no / and no #", node_id)]


def test_an_id_that_two_nodes_have() -> None:
    several = flow(any_node("a", 1), any_node("b", 2), any_node("a", 3), any_node("a", 4))
    text = 'two nodes have the id "a"'
    assert told(several) == [(text, 3, "ids are unique", "a"), (text, 4, "ids are unique", "a")]


def test_a_workflow_without_nodes() -> None:
    assert told(flow(file="empty.json")) == [("the workflow has no nodes", 0, "add at least one", "")]
    assert refused(flow(file="empty.json"))[0].place == Place("empty.json")


# Edges.


def test_an_edge_that_ends_nowhere() -> None:
    found = told(flow(any_node("load"), any_node("save"), edge("load>sav", 7), edge("laod>nowhere", 8)))
    assert found == [
        ('edge load → sav: there is no node "sav"', 7, 'did you mean "save"? nodes: load, save', ""),
        ('edge laod → nowhere: there is no node "laod"', 8, 'did you mean "load"? nodes: load, save', ""),
        ('edge laod → nowhere: there is no node "nowhere"', 8, "nodes: load, save", ""),
    ]


def test_edges_in_a_cycle_are_told_along_it() -> None:
    nodes = [any_node(letter) for letter in "abcd"]
    ring = flow(*nodes, edge("a>b", 5), edge("b>c", 6), edge("c>d", 7), edge("d>b", 8))
    assert told(ring) == [("the edges form a cycle: b → c → d → b", 6, "remove one of these edges", "")]
    assert told(flow(any_node("a"), edge("a>a", 5)))[0][0] == "the edges form a cycle: a → a"


def test_a_cycle_inside_a_loop_is_one_too() -> None:
    inside = flow(loop("f", ["a", "b"]), any_node("a"), any_node("b"), edge("a>b"), edge("b>a"))
    assert [one[0] for one in told(inside)] == ["the edges form a cycle: a → b → a"]


def test_where_outcomes_choose_the_way_only_edges_without_a_choice_are_a_cycle() -> None:
    ring = flow(any_node("a"), any_node("b"), edge("a>b", 5), edge("b>a", 6), scheduler="routed")
    assert told(ring) == [("the edges form a cycle: a → b → a", 5, "remove one of these edges", "")]
    planned(flow(any_node("a"), any_node("b"), edge("a>b"), edge("b>a", on="again"), scheduler="routed"))
    guarded = edge("b>a", guard=["same", ["path", "n"], ["value", 1]])
    planned(flow(any_node("a"), any_node("b"), edge("a>b"), guarded, scheduler="routed"))


# Loops and their bodies.


@pytest.mark.parametrize("body", ["a", [], [1], ["a", None], None, {"a": 1}])
def test_a_body_is_a_list_of_ids(body: Any) -> None:
    found = told(flow(loop("f", body, 3), any_node("a")))
    assert found == [('"body" must list the ids of the nodes to repeat', 4, "", "f")]


def test_a_body_that_names_no_node() -> None:
    found = told(flow(loop("f", ["a", "stpe"], 3), any_node("a"), any_node("step")))
    assert found == [('"body" names no node: "stpe"', 4, 'did you mean "step"? nodes: f, a, step', "f")]


def test_a_body_that_names_a_node_twice_would_visit_it_twice() -> None:
    found = told(flow(loop("f", ["a", "b", "a"], 3), any_node("a"), any_node("b")))
    assert found == [('"body" names "a" twice', 4, "a node is visited once for each item", "f")]


def test_a_node_in_two_bodies() -> None:
    found = told(flow(loop("f", ["a"], 1), loop("g", ["a"], 3), any_node("a")))
    assert found == [('"a" is in the body of "g" and of "f"', 4, "a node belongs to one loop", "g")]


@pytest.mark.parametrize(
    ("bodies", "ring"),
    [
        ({"f": ["f"]}, "f → f"),
        ({"f": ["g"], "g": ["f"]}, "f → g → f"),
        ({"f": ["g", "a"], "g": ["f"]}, "f → g → f"),
    ],
)
def test_loops_that_contain_each_other(bodies: dict[str, list[str]], ring: str) -> None:
    loops = [loop(name, body, 3) for name, body in bodies.items()]
    found = told(flow(*loops, any_node("a", x="{{item}}")))
    assert found == [(f"loops contain each other: {ring}", 4, "a body lists what is inside", "")]


def test_an_edge_into_a_body_or_out_of_it() -> None:
    nodes = [loop("f", ["a"]), loop("g", ["b"]), any_node("a"), any_node("b"), any_node("c")]
    found = told(flow(*nodes, edge("a>b", 5), edge("a>c", 6), edge("f>a", 7), edge("f>g", 8)))
    hint = "connect the loop's own node instead"
    assert found == [
        ("edge a → b crosses the border of a loop body", 5, hint, ""),
        ("edge a → c crosses the border of a loop body", 6, hint, ""),
        ("edge f → a crosses the border of a loop body", 7, hint, ""),
    ]


# Types and params.


def test_an_unknown_type_and_an_unknown_version() -> None:
    typo = Node("a", "t/tow", place=at(1), places={"type": at(2)})
    first, second = told(flow(typo, any_node("b", 3, "t/two@9")))
    assert (first[0], first[1], first[3]) == ('unknown node type "t/tow"', 2, "a")
    assert first[2].startswith('did you mean "t/two"? known types: ')
    assert second == ('unknown node type "t/two@9"', 3, "versions of t/two: unversioned", "b")


def test_a_param_that_the_type_does_not_have_and_one_that_it_needs() -> None:
    wrong = Node("a", "t/two", {"txet": 1}, place=at(1), places={"params.txet": at(2)})
    assert told(flow(wrong)) == [
        ('node "a": t/two needs the param "text"', 1, "params of t/two: text, more", "a"),
        ('node "a": t/two has no param "txet"', 2, 'did you mean "text"? params of t/two: text, more', "a"),
    ]
    planned(flow(any_node("a", 1, "t/two", words="an alias is as good"), any_node("b", x=1, y=2)))


def test_a_retry_of_what_may_not_run_twice_where_a_document_is_believed_only_so_far() -> None:
    again = Policy(Retry(3))
    by_policy = Node("a", "t/any", policy=again, place=at(1), places={"exec": at(2)})
    by_batch = Node("b", "t/any", batch=Batch([1], retry=Retry(2)), place=at(3))
    hint = "if it may run twice, say so after inspecting it: pflow registry accept t/any"
    assert told(flow(by_policy, by_batch, safe_retries=True)) == [
        ('node "a": t/any is impure, so it cannot be retried', 2, hint, "a"),
        ('node "b": t/any is impure, so it cannot be retried', 3, hint, "b"),
    ]
    planned(flow(by_policy, by_batch))
    planned(flow(Node("a", "t/safe", policy=again), any_node("b"), safe_retries=True))


# Templates, expressions, outputs.


def test_malformed_templates_each_at_its_own_place() -> None:
    places = {"params.x": at(2), "params.y": at(3)}
    params = {"x": "{{a b", "y": ["{{}}"], "z": {"deep": "{{b..c}}"}}
    assert told(flow(Node("a", "t/any", params, place=at(1), places=places))) == [
        ('node "a", z: a name is missing at offset 4', 1, "", "a"),
        ('node "a", x: "{{" is not closed at offset 0', 2, "", "a"),
        ('node "a", y: a name is missing at offset 2', 3, "", "a"),
    ]


def test_a_template_is_read_even_where_the_type_is_unknown() -> None:
    messages = [one[0] for one in told(flow(any_node("a", 1, "t/nothing", x="{{")))]
    assert messages == ['node "a", x: "{{" is not closed at offset 0', 'unknown node type "t/nothing"']


def test_a_malformed_template_of_a_batch() -> None:
    bad = Node("a", "t/any", batch=Batch("{{oh"), place=at(1), places={"batch": at(2)})
    assert told(flow(bad)) == [('node "a", batch: "{{" is not closed at offset 0', 2, "", "a")]


@pytest.mark.parametrize(
    ("guard", "message", "hint"),
    [
        (["nope"], 'there is no form "nope" in expressions', FORMS),
        ([1], "an expression is a list that starts with its form's name", FORMS),
        (["same", ["value", 1]], 'the form "same" does not take these arguments (1)', ""),
    ],
)
@pytest.mark.parametrize("scheduler", ["topological", "routed"])
def test_a_malformed_expression_is_told_once(guard: Any, message: str, hint: str, scheduler: Any) -> None:
    guarded = Node("a", "t/any", guard=guard, place=at(1), places={"guard": at(2)})
    assert told(flow(guarded, scheduler=scheduler)) == [(message, 2, hint, "a")]
    on_an_edge = flow(any_node("a"), any_node("b"), edge("a>b", 5, guard=guard), scheduler=scheduler)
    assert told(on_an_edge) == [(message, 5, hint, "a")]


def test_malformed_outputs_and_outputs_of_what_is_not_there() -> None:
    sources = {"a": "{{t", "b": "{{tow.left}}", "c": "{{two.middle}}", "d": "{{two.left}} {{two.failed}}"}
    outputs = tuple(Output(name, source, place=at(n)) for n, (name, source) in enumerate(sources.items(), 5))
    assert told(flow(any_node("two", 1, "t/two", text="x"), outputs=outputs), ["some"]) == [
        ('output "a": "{{" is not closed at offset 0', 5, "", ""),
        ('{{tow.left}}: there is no "tow"', 6, 'did you mean "two"? available: two, some', ""),
        ('{{two.middle}}: "two" has no output "middle"', 7, "outputs of two: left, right", ""),
    ]


# References.


def test_a_reference_to_what_runs_beside_or_after_would_be_a_race() -> None:
    late = Node("a", "t/any", {"x": "{{c.y}}"}, place=at(1), places={"params.x": at(2)})
    found = told(flow(late, any_node("b"), any_node("c"), edge("a>b"), edge("b>c")))
    hint = 'add an edge from "c" to "a", or to something before it'
    assert found == [('{{c.y}}: "c" does not run before "a", so its value would be a race', 2, hint, "a")]


def test_guards_may_read_only_what_came_before_too() -> None:
    reads = ["same", ["path", "c", "y"], ["value", 1]]
    guarded = Node("a", "t/any", guard=reads, place=at(1), places={"guard": at(2)})
    found = told(flow(guarded, any_node("b"), any_node("c"), edge("a>b", 5, guard=reads)))
    hint = 'add an edge from "c" to "a", or to something before it'
    text = 'c.y: "c" does not run before "a", so its value would be a race'
    assert found == [(text, 2, hint, "a"), (text, 5, hint, "a")]
    itself = ["same", ["path", "a", "y"], ["value", 1]]
    planned(flow(any_node("a"), any_node("b"), edge("a>b", guard=itself)))


def test_the_items_of_a_batch_and_its_params_are_read_before_it() -> None:
    batch = Node("a", "t/any", {"x": "{{item}} {{q.x}}"}, batch=Batch("{{q.y}}"), place=at(1), places={"batch": at(2)})
    messages = [(one[0].partition(":")[0], one[1]) for one in told(flow(batch, any_node("q")))]
    assert messages == [("{{q.x}}", 1), ("{{q.y}}", 2)]
    planned(flow(batch, any_node("q"), edge("q>a")))


def test_what_is_inside_of_a_loop_sees_its_item_and_what_is_before_the_loop() -> None:
    body = any_node("a", 3, x="{{one}} {{__index__}} {{before.x}}")
    planned(flow(any_node("before"), loop("f", ["a"], item="one"), body, edge("before>f")), [])
    elsewhere = flow(loop("f", ["a"], item="one"), any_node("a"), any_node("b", 4, x="{{one}} {{a.x}}"), edge("f>b"))
    assert told(elsewhere, []) == [
        ("{{one}}: there is no \"one\"", 4, "available: f, a, b", "b"),
        (
            '{{a.x}}: "a" does not run before "b", so its value would be a race', 4,
            'add an edge from "a" to "b", or to something before it', "b",
        ),
    ]  # fmt: skip


def test_a_name_that_nothing_has_may_be_given_later_unless_all_that_is_given_is_known() -> None:
    reads = flow(any_node("a", 2, x="{{nmae}}"))
    planned(reads)
    planned(reads, ["nmae"])
    assert told(reads, ["name"]) == [
        ('{{nmae}}: there is no "nmae"', 2, 'did you mean "name"? available: name, a', "a")
    ]


def test_an_output_that_its_type_never_gives() -> None:
    reads = any_node("b", 2, x="{{a.lfet}}", y="{{a.left}} {{a.skipped}} {{a.error}} {{?a.whatever}}")
    assert told(flow(any_node("a", 1, "t/two", text=""), reads, edge("a>b"))) == [
        ('{{a.lfet}}: "a" has no output "lfet"', 2, 'did you mean "left"? outputs of a: left, right', "b")
    ]


@pytest.mark.parametrize("length", [1, 70, 200])
def test_a_reference_reaches_as_far_back_as_there_are_nodes(length: int) -> None:
    chain = [edge(f"n{i}>n{i + 1}") for i in range(length)]
    middle = [any_node(f"n{i}") for i in range(length)]
    planned(flow(*middle, any_node(f"n{length}", x="{{n0.x}}"), *chain))


# All at once.


def test_every_problem_at_once_in_the_order_of_the_document() -> None:
    broken = flow(
        any_node("a/b", 1),
        any_node("twice", 2),
        any_node("twice", 3),
        any_node("typo", 4, "t/tow"),
        any_node("needs", 5, "t/two"),
        any_node("text", 6, x="{{"),
        Node("guard", "t/any", guard=["nope"], place=at(7)),
        loop("body", ["gone"], 8),
        any_node("reads", 10, x="{{late.x}}"),
        any_node("late", 11),
        edge("reads>late", 12),
        edge("late>gone", 13),
        edge("x1>x2", 14),
        any_node("x1", 15),
        any_node("x2", 16),
        edge("x2>x1", 17),
        outputs=(Output("o", "{{", place=at(18)),),
    )
    found = refused(broken)
    assert [one.place.line for one in found] == [1, 3, 4, 5, 6, 7, 9, 10, 13, 14, 18]
    assert [one.code for one in found] == [
        "id", "duplicate", "unknown-type", "param", "template", "expression", "edge", "reference", "edge", "cycle",
        "template",
    ]  # fmt: skip
    with pytest.raises(WorkflowError) as raised:
        planned(broken)
    assert str(raised.value).count("\n  hint: ") == len([one for one in found if one.hint])

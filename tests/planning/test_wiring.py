"""Refusals of graphs of ports, and portals that are gone once a graph is planned."""

from __future__ import annotations

from typing import Any

import pytest

from pflow.errors import Place, Problem, WorkflowError
from pflow.model.workflow import Edge, Node, Workflow
from pflow.nodes import StepContext, node
from pflow.nodes.registry import Registry
from pflow.planning.build import build
from pflow.planning.plan import Plan


@node("t/takes", main_in="text")
async def takes(step: StepContext, text: str, more: str = "") -> dict[str, Any]:
    return {"text": text}


REGISTRY = Registry([takes])


def at(line: int) -> Place:
    return Place("w", line, 1)


def node_of(node_id: str, kind: str, line: int = 1, **params: Any) -> Node:
    return Node(node_id, kind, params, place=at(line))


def wire(ends: str, line: int = 50) -> Edge:
    """``"a.data > b.context"``."""
    (source, out), (target, port) = (end.strip().split(".") for end in ends.split(">"))
    return Edge(source, target, out, port=port, place=at(line))


def graph(*parts: Node | Edge) -> Workflow:
    nodes = tuple(part for part in parts if isinstance(part, Node))
    edges = tuple(part for part in parts if isinstance(part, Edge))
    return Workflow("w", "test", nodes, edges, scheduler="reactive")


def planned(*parts: Node | Edge) -> Plan:
    return build(graph(*parts), REGISTRY)


def refused(*parts: Node | Edge) -> list[Problem]:
    with pytest.raises(WorkflowError) as raised:
        planned(*parts)
    return list(raised.value.problems)


def wires(plan: Plan) -> set[str]:
    ids = plan.graph.ids
    return {f"{ids[one.source]}.{one.out} > {ids[one.target]}.{one.port}" for one in plan.graph.wires}


START = node_of("start", "defaultContextStart")
ASK = node_of("ask", "userInput", 2)


def test_a_graph_without_an_entry() -> None:
    (problem,) = refused(ASK)
    assert problem.message == "the graph has no entry: no node is a defaultContextStart"
    assert problem.hint == 'add {"id": "start", "nodeType": "defaultContextStart", "config": {}}'
    assert (problem.place, problem.code) == (at(2), "entry")


def test_a_graph_without_nodes_has_no_entry_either() -> None:
    assert {one.message.partition(":")[0] for one in refused()} == {
        "the workflow has no nodes",
        "the graph has no entry",
    }


def test_a_graph_with_several_entries() -> None:
    more = [node_of("other", "defaultContextStart", 3), node_of("third", "defaultContextStart", 4)]
    found = refused(START, *more)
    assert [(one.message, one.place.line, one.hint, one.node_id) for one in found] == [
        ('the graph has 3 entries: "start" and "other" are both defaultContextStart', 3, "keep one of them", "other"),
        ('the graph has 3 entries: "start" and "third" are both defaultContextStart', 4, "keep one of them", "third"),
    ]


def test_the_entry_is_where_the_graph_starts_wherever_it_stands() -> None:
    plan = planned(ASK, START, wire("start.context > ask.context"))
    assert plan.graph.ids[plan.graph.entry] == "start"


def test_a_port_that_a_built_in_type_does_not_have() -> None:
    found = refused(START, ASK, wire("start.contxt > ask.context", 5), wire("start.context > ask.question", 6))
    assert [(one.message, one.place.line, one.hint, one.node_id) for one in found] == [
        (
            'edge start → ask: defaultContextStart "start" has no output "contxt"', 5,
            'did you mean "context"? outputs of start: context', "start",
        ),
        ('edge start → ask: userInput "ask" has no input "question"', 6, "inputs of ask: context, data", "ask"),
    ]  # fmt: skip
    assert {one.code for one in found} == {"handle"}


def test_a_param_that_is_needed_may_be_wired() -> None:
    bare = node_of("t", "t/takes", 3)
    (problem,) = refused(START, bare)
    assert (problem.message, problem.place.line) == ('node "t": t/takes needs the param "text"', 3)
    assert problem.hint == "params of t/takes: text, more"
    planned(START, bare, wire("start.context > t.text"))
    planned(START, bare, wire("start.context > t.data"))  # the main one of its inputs
    planned(START, node_of("t", "t/takes", 3, text="given"))


def test_portals_are_stepped_through_and_each_wire_is_there_once() -> None:
    into, out = node_of("in", "portalInput", id="p"), node_of("out", "portalOutput", portalId="p")
    more = node_of("more", "userInput")
    plan = planned(
        START, ASK, more, into, out, wire("start.context > in.context"), wire("ask.context > in.context"),
        wire("out.context > ask.context"), wire("out.context > more.context"), wire("start.context > more.context"),
    )  # fmt: skip
    assert wires(plan) == {
        "start.context > ask.context", "start.context > more.context",
        "ask.context > ask.context", "ask.context > more.context",
    }  # fmt: skip
    assert len(plan.graph.wires) == 4


def test_a_portal_that_nobody_opened_leads_nowhere_and_one_that_leads_into_itself_ends() -> None:
    into, out = node_of("in", "portalInput", id="p"), node_of("out", "portalOutput", id="q")
    assert (
        wires(planned(START, ASK, into, out, wire("start.context > in.context"), wire("out.context > ask.context")))
        == set()
    )
    back = node_of("out", "portalOutput", id="p")
    assert (
        wires(planned(START, into, back, wire("start.context > in.context"), wire("out.context > in.context"))) == set()
    )


def test_a_chain_of_portals_is_one_wire() -> None:
    doors = [node_of("i1", "portalInput", id="p"), node_of("o1", "portalOutput", id="p"),
             node_of("i2", "portalInput", id="q"), node_of("o2", "portalOutput", id="q")]  # fmt: skip
    ways = [wire("start.context > i1.context"), wire("o1.context > i2.context"), wire("o2.context > ask.context")]
    assert wires(planned(START, ASK, *doors, *ways)) == {"start.context > ask.context"}

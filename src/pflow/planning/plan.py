"""A plan: a workflow made ready to run, with everything compiled and nothing left to look up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pflow.lang.expression import Compiled
from pflow.lang.path import Reference
from pflow.lang.template import Bound
from pflow.model.graph import Graph
from pflow.model.workflow import Effect, Node, Workflow
from pflow.nodes.type import NodeType
from pflow.schedulers.router import Router


class Planned(msgspec.Struct, frozen=True):
    """A node of a plan."""

    node: Node
    type: NodeType
    effect: Effect
    parts: dict[str, Bound]  # the params, each compiled
    params: Bound  # all of them at once
    guard: Compiled | None
    converts: bool  # False when no param needs a look at its type
    intent: bool  # whether an attempt is announced in the journal before it begins
    upstream: tuple[str, ...] = ()  # the nodes that it comes after or reads
    ports: dict[str, int] = {}  # inputs that edges lead to, with how many, where values flow from port to port
    router: Router | None = None  # where its outcome leads to, under a scheduler that goes by routes

    @property
    def guard_references(self) -> tuple[Reference, ...]:
        """What its guard reads."""
        return self.guard.references if self.guard is not None else ()

    @property
    def id(self) -> str:
        """The node's id."""
        return self.node.id


class Plan(msgspec.Struct, frozen=True):
    """A workflow, ready to run."""

    workflow: Workflow
    nodes: dict[str, Planned]
    graph: Graph
    order: tuple[str, ...]  # as a single worker would run them
    bodies: dict[str, Plan]  # of nodes that repeat other nodes: node id → the plan of its body
    digest: str
    outputs: dict[str, Bound]  # the declared outputs by name


def literally(value: Any) -> Bound:
    """A value whose texts are no templates."""
    return Bound(value, (), lambda values: value)


def joined(parts: Mapping[str, Bound]) -> Bound:
    """Params that are bound together."""
    constants = {name: bound.bind({}) for name, bound in parts.items() if bound.constant}
    moving = [(name, bound.bind) for name, bound in parts.items() if not bound.constant]
    references = tuple(reference for bound in parts.values() for reference in bound.references)

    def bind(values: Mapping[str, Any]) -> dict[str, Any]:
        made = dict(constants)
        for name, one in moving:
            made[name] = one(values)
        return made

    return Bound({name: bound.value for name, bound in parts.items()}, references, bind)


class Values(dict[str, Any]):
    """Outputs so far by node id, over what an enclosing scope offers."""

    __slots__ = ("parent",)

    def __init__(self, own: Mapping[str, Any], parent: Values | None = None) -> None:
        super().__init__(own)
        self.parent = parent

    def __missing__(self, key: str) -> Any:
        if self.parent is None:
            raise KeyError(key)
        return self.parent[key]

    def available(self) -> list[str]:
        """Every name that can be looked up."""
        above = self.parent.available() if self.parent is not None else []
        return list(dict.fromkeys([*self, *above]))

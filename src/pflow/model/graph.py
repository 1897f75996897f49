"""What a scheduler sees of a plan: nodes are numbers, edges lead from one to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

CONTEXT, DATA, TOOLS = "context", "data", "tools"  # ports that every node of a graph may have


class Test(Protocol):
    """A compiled condition."""

    def test(self, values: Mapping[str, Any]) -> bool:
        """Whether it holds for these values."""


class PlannedEdge(msgspec.Struct, frozen=True):
    """An edge, by the index of its target."""

    target: int
    on: str
    guard: Test | None = None


class Wire(msgspec.Struct, frozen=True):
    """An edge between two ports, by the indexes of its nodes."""

    source: int
    out: str
    target: int
    port: str


class Graph(msgspec.Struct, frozen=True):
    """The nodes of a plan and the edges between them."""

    ids: tuple[str, ...]
    incoming: tuple[int, ...]  # how many edges lead to each node
    outgoing: tuple[tuple[PlannedEdge, ...], ...]
    tolerate: tuple[bool, ...]
    fail_fast: bool = True
    limits: tuple[int, ...] = ()  # how often each node may be visited
    wires: tuple[Wire, ...] = ()  # where values flow from port to port
    entry: int = 0  # the node that such a graph starts with

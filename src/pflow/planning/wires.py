"""Wires: where values flow from port to port. Portals are bridged here, and are no more when the graph runs."""

from __future__ import annotations

from collections.abc import Mapping

from pflow.errors import Problem, suggest
from pflow.model.graph import Wire
from pflow.model.workflow import Edge, Node, Workflow
from pflow.nodes.type import NodeType

ENTRY = "defaultContextStart"
PORTAL_IN, PORTAL_OUT = "portalInput", "portalOutput"


class Wiring:
    """The wires of a workflow, and what is wrong with them."""

    def __init__(self, workflow: Workflow, edges: list[Edge], kinds: Mapping[str, NodeType]) -> None:
        self.problems: list[Problem] = []
        self._nodes = {node.id: node for node in workflow.nodes}
        self._kinds = kinds
        self._index = {node.id: i for i, node in enumerate(workflow.nodes)}
        self._edges = edges
        for edge in edges:
            self._check(edge)
        self.entry = self._entry(workflow)
        self.wires = tuple(self._bridged())

    def ports(self, node_id: str) -> dict[str, int]:
        """The inputs of a node that wires lead to, with how many."""
        found: dict[str, int] = {}
        for wire in self.wires:
            if wire.target == self._index[node_id]:
                found[wire.port] = found.get(wire.port, 0) + 1
        return found

    def _entry(self, workflow: Workflow) -> int:
        entries = [node for node in workflow.nodes if self._is(node.id, ENTRY)]
        if not entries:
            text = f"the graph has no entry: no node is a {ENTRY}"
            hint = f'add {{"id": "start", "nodeType": "{ENTRY}", "config": {{}}}}'
            place = workflow.nodes[0].place if workflow.nodes else Edge("", "").place
            self.problems.append(Problem(text, place, hint, "entry"))
            return 0
        for node in entries[1:]:
            text = f'the graph has {len(entries)} entries: "{entries[0].id}" and "{node.id}" are both {ENTRY}'
            self.problems.append(Problem(text, node.place, "keep one of them", "entry", node.id))
        return self._index[entries[0].id]

    def _is(self, node_id: str, name: str) -> bool:
        kind = self._kinds.get(node_id)
        return kind is not None and kind.trusted and kind.name == name

    def _check(self, edge: Edge) -> None:
        """A built-in type has the ports it has."""
        for node_id, name, side in ((edge.source, edge.on, 1), (edge.target, edge.port, 0)):
            kind = self._kinds.get(node_id)
            if kind is None or kind.declared.ports is None:
                continue
            known = kind.declared.ports(self._nodes[node_id].params)[side]
            if name not in known:
                what = "output" if side else "input"
                text = f'edge {edge.source} → {edge.target}: {kind.name} "{node_id}" has no {what} "{name}"'
                hint = suggest(name, known, f"{what}s of {node_id}")
                self.problems.append(Problem(text, edge.place, hint, "handle", node_id))

    def _bridged(self) -> list[Wire]:
        """Every way from a node to a node, with portals stepped through."""
        exits: dict[tuple[str, str], list[Edge]] = {}  # (portal, port) → the edges that leave its outputs
        for edge in self._edges:
            if self._is(edge.source, PORTAL_OUT):
                exits.setdefault((self._portal(edge.source), edge.on), []).append(edge)
        made: dict[Wire, None] = {}
        for edge in self._edges:
            if not self._is(edge.source, PORTAL_OUT):
                for end in self._ends(edge, exits, frozenset()):
                    wire = Wire(self._index[edge.source], edge.on, self._index[end.target], end.port)
                    made[wire] = None
        return list(made)

    def _ends(
        self, edge: Edge, exits: Mapping[tuple[str, str], list[Edge]], through: frozenset[tuple[str, str]]
    ) -> list[Edge]:
        if not self._is(edge.target, PORTAL_IN):
            return [edge]
        portal = (self._portal(edge.target), edge.port)
        if portal in through:
            return []
        return [end for exit_ in exits.get(portal, ()) for end in self._ends(exit_, exits, through | {portal})]

    def _portal(self, node_id: str) -> str:
        node: Node = self._nodes[node_id]
        return str(node.params.get("id") or node.params.get("portalId") or "")

"""Build a plan from a workflow, or say everything that stands in its way."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator

import msgspec

from pflow.errors import BindingError, ExpressionError, Place, Problem, WorkflowError, suggest
from pflow.lang.expression import Compiled, compile_expr
from pflow.lang.path import Reference
from pflow.lang.template import Bound, compile_value
from pflow.model.graph import DATA, Graph, PlannedEdge
from pflow.model.value import digest
from pflow.model.visit import names_node
from pflow.model.workflow import ANY, Batch, Edge, Node, Workflow, meaning
from pflow.nodes.graph_api.autonomous import adapted
from pflow.nodes.registry import Registry
from pflow.nodes.type import UNKNOWN, Declared, NodeType
from pflow.planning.ancestry import Ancestry, cycle
from pflow.planning.plan import Plan, Planned, joined, literally
from pflow.planning.wires import Wiring
from pflow.schedulers.router import Router

FOREACH = "control.foreach"
BATCH = "control.batch"
MARKERS = ("skipped", "failed", "error", "attempts")  # what a node leaves behind that did not complete


def build(workflow: Workflow, registry: Registry, given: Iterable[str] | None = None) -> Plan:
    """The plan of a workflow; raises ``WorkflowError`` with every problem.

    ``given`` are the names of all inputs; without it, a name that no node has may be one.
    """
    builder = _Builder(workflow, registry, None if given is None else frozenset(given))
    plan = builder.plan()
    if builder.problems:
        found = dict.fromkeys(builder.problems)  # the guard of an edge is read where it is checked and where it is kept
        raise WorkflowError(sorted(found, key=lambda p: (p.place.line, p.place.column)))
    return plan


class _Builder:
    """Collects problems while it builds."""

    def __init__(self, workflow: Workflow, registry: Registry, given: frozenset[str] | None) -> None:
        self.workflow = workflow
        self.registry = registry
        self.problems: list[Problem] = []
        self.ids = {node.id: node for node in workflow.nodes}
        top = workflow.input_path[:1] or tuple(item.name for item in workflow.inputs)
        self.roots = set(top) | ((given or set()) if not workflow.input_path else set())
        self.open = workflow.open_inputs and not workflow.input_path and given is None
        self.bodies: dict[str, list[str]] = {}
        self.planned: dict[str, Planned] = {}
        self.batches: dict[str, Planned] = {}  # the nodes inside of batches
        self.digest = ""
        self.reactive = workflow.scheduler == "reactive"
        self.wiring: Wiring | None = None

    def problem(self, message: str, place: Place, hint: str = "", code: str = "invalid", node_id: str = "") -> None:
        self.problems.append(Problem(message, place, hint, code, node_id))

    def plan(self) -> Plan:
        self._check_ids()
        edges = [edge for edge in self.workflow.edges if self._check_edge(edge)]
        self._find_bodies()
        inner = {child: parent for parent, body in self.bodies.items() for child in body}
        self._check_bodies(edges, inner)
        self.planned = {node.id: made for node in self.workflow.nodes if (made := self._planned(node)) is not None}
        self._check_references(edges, inner)
        self._find_upstreams(edges)
        if self.workflow.scheduler == "routed":
            self._find_routes(edges)
        if self.reactive:
            self._wire(edges)
        self.digest = digest(meaning(self.workflow))
        main = [node for node in self.workflow.nodes if node.id not in inner]
        return self._assemble(main, edges, self.workflow.fail_fast, self._outputs())

    def _assemble(self, nodes: list[Node], edges: list[Edge], fail_fast: bool, outputs: dict[str, Bound]) -> Plan:
        """The plan of these nodes and of the edges between them; loop bodies among them get plans of their own."""
        here = {node.id for node in nodes}
        own = [edge for edge in edges if edge.source in here and edge.target in here]
        binding = own if self.workflow.scheduler == "topological" else [] if self.reactive else _unconditional(own)
        ring = cycle([node.id for node in nodes], [(edge.source, edge.target) for edge in binding])
        if ring:
            place = next(edge.place for edge in own if (edge.source, edge.target) == (ring[0], ring[1]))
            self.problem(f"the edges form a cycle: {' → '.join(ring)}", place, "remove one of these edges", "cycle")
        bodies = {
            parent: self._assemble([self.ids[child] for child in body if child in self.ids], edges, True, {})
            for parent, body in self.bodies.items()
            if parent in here
        }
        bodies |= {node.id: self._alone(self.batches[node.id]) for node in nodes if node.id in self.batches}
        graph = self._graph(nodes, own, fail_fast)
        order = tuple(_order(graph)) if self.workflow.scheduler == "topological" and not ring else graph.ids
        return Plan(self.workflow, self.planned, graph, order, bodies, self.digest, outputs)

    def _find_upstreams(self, edges: list[Edge]) -> None:
        before: dict[str, set[str]] = {}
        for edge in edges:
            before.setdefault(edge.target, set()).add(edge.source)
        for table in (self.planned, self.batches):
            for node_id, made in table.items():
                read = {ref.root for ref in made.params.references} | {ref.root for ref in made.guard_references}
                found = sorted(before.get(node_id, set()) | (read & self.ids.keys()))
                table[node_id] = msgspec.structs.replace(made, upstream=tuple(found))

    def _find_routes(self, edges: list[Edge]) -> None:
        for node_id, made in self.planned.items():
            own = [edge for edge in edges if edge.source == node_id]
            ways = [(edge, self._expression(edge.guard, edge.place, node_id) if edge.guard else None) for edge in own]
            self.planned[node_id] = msgspec.structs.replace(made, router=Router(made.node, ways))

    def _wire(self, edges: list[Edge]) -> None:
        self.wiring = Wiring(self.workflow, edges, {node_id: made.type for node_id, made in self.planned.items()})
        self.problems += self.wiring.problems
        for node_id, made in self.planned.items():
            kind, ports = made.type, self.wiring.ports(node_id)
            fed = {kind.main_in if port == DATA else kind.canonical(port) for port in ports}
            self._check_needs(made.node, kind, {kind.canonical(key) for key in made.node.params} | fed)
            if not kind.autonomous:
                kind = NodeType(adapted(kind), Declared(kind.name, kind.version), True, kind.origin)
            self.planned[node_id] = msgspec.structs.replace(made, type=kind, ports=ports, converts=False)

    def _alone(self, planned: Planned) -> Plan:
        graph = Graph((planned.id,), (0,), ((),), (False,))
        return Plan(self.workflow, {planned.id: planned}, graph, (planned.id,), {}, self.digest, {})

    def _outputs(self) -> dict[str, Bound]:
        made = {}
        for output in self.workflow.outputs:
            try:
                made[output.name] = compile_value(output.source, self.workflow.syntax, self.workflow.missing)
            except BindingError as error:
                self.problem(f'output "{output.name}": {error.message}', output.place, error.hint, "template")
                continue
            for ref in made[output.name].references if self.workflow.scheduler == "topological" else ():
                if ref.root in self.ids:
                    self._check_output(ref, output.place, "")
                elif ref.root not in self.roots and not self.open:
                    hint = suggest(ref.root, [*self.ids, *self.roots], "available")
                    self.problem(f'{ref.text}: there is no "{ref.root}"', output.place, hint, "reference")
        return made

    def _graph(self, nodes: list[Node], edges: list[Edge], fail_fast: bool) -> Graph:
        index = {node.id: i for i, node in enumerate(nodes)}
        incoming = [0] * len(nodes)
        outgoing: list[list[PlannedEdge]] = [[] for _ in nodes]
        for edge in edges:
            incoming[index[edge.target]] += 1
            guard = self._expression(edge.guard, edge.place, edge.source) if edge.guard is not None else None
            outgoing[index[edge.source]].append(PlannedEdge(index[edge.target], edge.on, guard))
        return Graph(
            tuple(node.id for node in nodes),
            tuple(incoming),
            tuple(map(tuple, outgoing)),
            tuple(node.policy.tolerate for node in nodes),
            fail_fast,
            tuple(node.max_visits for node in nodes),
            self.wiring.wires if self.wiring else (),
            self.wiring.entry if self.wiring else 0,
        )

    def _check_ids(self) -> None:
        seen: set[str] = set()
        for node in self.workflow.nodes:
            if not names_node(node.id):
                text = f'"{node.id}" cannot be the id of a node'
                self.problem(text, node.place, "an id is not empty and contains no / and no #", "id", node.id)
            if node.id in seen:
                self.problem(f'two nodes have the id "{node.id}"', node.place, "ids are unique", "duplicate", node.id)
            seen.add(node.id)
        if not self.workflow.nodes:
            self.problem("the workflow has no nodes", Place(self.workflow.file), "add at least one")

    def _check_edge(self, edge: Edge) -> bool:
        good = True
        for end in (edge.source, edge.target):
            if end not in self.ids:
                hint = suggest(end, self.ids, "nodes")
                self.problem(f'edge {edge.source} → {edge.target}: there is no node "{end}"', edge.place, hint, "edge")
                good = False
        return good

    def _find_bodies(self) -> None:
        for node in self.workflow.nodes:
            kind = self.registry.find(node.type)
            if kind is None or kind.name != FOREACH:
                continue
            body = node.params.get("body")
            if not isinstance(body, list) or not body or not all(isinstance(item, str) for item in body):
                self.problem(
                    '"body" must list the ids of the nodes to repeat', _at(node, "params.body"), node_id=node.id
                )
                continue
            self.bodies[node.id] = body

    def _check_bodies(self, edges: list[Edge], inner: dict[str, str]) -> None:
        owners: dict[str, str] = {}
        for parent, body in self.bodies.items():
            node = self.ids[parent]
            for n, child in enumerate(body):
                place = _at(node, "params.body")
                if child not in self.ids:
                    hint = suggest(child, self.ids, "nodes")
                    self.problem(f'"body" names no node: "{child}"', place, hint, "edge", parent)
                elif child in body[:n]:
                    text = f'"body" names "{child}" twice'
                    self.problem(text, place, "a node is visited once for each item", "duplicate", parent)
                elif owners.setdefault(child, parent) != parent:
                    text = f'"{child}" is in the body of "{parent}" and of "{owners[child]}"'
                    self.problem(text, place, "a node belongs to one loop", "edge", parent)
        ring = cycle(list(self.ids), [(parent, child) for child, parent in inner.items() if child in self.ids])
        if ring:
            place = _at(self.ids[ring[0]], "params.body")
            self.problem(f"loops contain each other: {' → '.join(ring)}", place, "a body lists what is inside", "cycle")
            self.bodies = {}
        for edge in edges:
            if inner.get(edge.source) != inner.get(edge.target):
                text = f"edge {edge.source} → {edge.target} crosses the border of a loop body"
                self.problem(text, edge.place, "connect the loop's own node instead", "edge")

    def _planned(self, node: Node) -> Planned | None:
        kind = self.registry.find(node.type)
        guard = self._expression(node.guard, _at(node, "guard"), node.id) if node.guard is not None else None
        parts = self._params(node, kind)
        if kind is None:
            hint = self.registry.hint(node.type)
            self.problem(f'unknown node type "{node.type}"', _at(node, "type"), hint, "unknown-type", node.id)
            return None
        self._check_params(node, kind)
        converts = any(kind.converters.get(key) is not None for key in parts)
        effect = kind.effect_for({key: bound.value if bound.constant else UNKNOWN for key, bound in parts.items()})
        intent = effect == "impure" and not kind.composite
        planned = Planned(node, kind, effect, parts, joined(parts), guard, converts, intent)
        self._check_retries(planned)
        return planned if node.batch is None else self._batched(planned, node.batch)

    def _check_retries(self, planned: Planned) -> None:
        node, kind = planned.node, planned.type
        tries = max(node.policy.retry.attempts, node.batch.retry.attempts if node.batch else 1)
        if not self.workflow.safe_retries or tries == 1 or planned.effect != "impure" or kind.safe or kind.composite:
            return
        hint = f"if it may run twice, say so after inspecting it: pflow registry accept {kind.name}"
        text = f'node "{node.id}": {kind.name} is impure, so it cannot be retried'
        self.problem(text, _at(node, "exec"), hint, "retry", node.id)

    def _batched(self, planned: Planned, batch: Batch) -> Planned | None:
        """A node that runs once for each item: a loop around the node, which is alone in its body."""
        node = planned.node
        policy = msgspec.structs.replace(node.policy, retry=batch.retry, tolerate=False)
        self.batches[node.id] = msgspec.structs.replace(
            planned, node=msgspec.structs.replace(node, batch=None, guard=None, policy=policy), guard=None
        )
        loop = self.registry.get(BATCH)
        try:
            items = compile_value(batch.items, self.workflow.syntax, self.workflow.missing)
        except BindingError as error:
            self.problem(
                f'node "{node.id}", batch: {error.message}', _at(node, "batch"), error.hint, "template", node.id
            )
            return None
        fixed = {"node": node.id, "as_": batch.name, "width": batch.width, "fail_fast": batch.fail_fast}
        parts = {"items": items, **{key: literally(value) for key, value in fixed.items()}}
        outer = msgspec.structs.replace(node, policy=msgspec.structs.replace(node.policy, timeout=None))
        return Planned(outer, loop, "quiet", parts, joined(parts), planned.guard, True, False)

    def _params(self, node: Node, kind: NodeType | None) -> dict[str, Bound]:
        """Compiled one by one, so that each bad text is reported at its place."""
        parts: dict[str, Bound] = {}
        for key, value in node.params.items():
            name = kind.canonical(key) if kind else key
            if self.reactive or (kind and name in kind.declared.literal):
                parts[name] = literally(value)
                continue
            try:
                parts[name] = compile_value(value, self.workflow.syntax, self.workflow.missing)
            except BindingError as error:
                place = _at(node, f"params.{key}")
                self.problem(f'node "{node.id}", {key}: {error.message}', place, error.hint, "template", node.id)
        return parts

    def _expression(self, expr: list[object], place: Place, node_id: str) -> Compiled | None:
        try:
            return compile_expr(expr)
        except ExpressionError as error:
            self.problem(error.message, place, error.hint, "expression", node_id)
            return None

    def _check_params(self, node: Node, kind: NodeType) -> None:
        given = {kind.canonical(key): key for key in node.params}
        for name, key in given.items():
            if name not in kind.params and not kind.open:
                hint = suggest(key, kind.params, f"params of {kind.name}")
                place = _at(node, f"params.{key}")
                self.problem(f'node "{node.id}": {kind.name} has no param "{key}"', place, hint, "param", node.id)
        if not self.reactive:
            self._check_needs(node, kind, given)

    def _check_needs(self, node: Node, kind: NodeType, given: Container[str]) -> None:
        for name, param in kind.params.items():
            if param.required and name not in given:
                text = f'node "{node.id}": {kind.name} needs the param "{name}"'
                self.problem(text, node.place, f"params of {kind.name}: {', '.join(kind.params)}", "param", node.id)

    def _check_references(self, edges: list[Edge], inner: dict[str, str]) -> None:
        """Guards and bindings may read only ancestors: anything else is a race, where nodes run side by side."""
        if self.workflow.scheduler != "topological":
            return
        links = [(edge.source, edge.target) for edge in edges]
        links += [(parent, child) for child, parent in inner.items()]
        ancestry = Ancestry(links)
        names = {parent: str(self.ids[parent].params.get("as", "item")) for parent in inner.values()}
        for node_id, made in self.planned.items():
            node = made.node
            local = {names[inner[node_id]], "__index__"} if node_id in inner else set()
            if node.batch is not None:
                self._check_refs(made.parts["items"].references, node_id, ancestry, local, _at(node, "batch"), False)
                made, local = self.batches[node_id], {*local, node.batch.name, "__index__"}
            for key in node.params:
                bound = made.parts.get(made.type.canonical(key))
                if bound is not None:
                    self._check_refs(bound.references, node_id, ancestry, local, _at(node, f"params.{key}"), False)
            if made.guard is not None:
                self._check_refs(made.guard.references, node_id, ancestry, local, _at(node, "guard"), False)
        for edge in edges:
            if edge.guard is None:
                continue
            guard = self._expression(edge.guard, edge.place, edge.source)
            if guard is not None:
                self._check_refs(guard.references, edge.source, ancestry, set(), edge.place, True)

    def _check_refs(
        self, refs: Iterable[Reference], node_id: str, ancestry: Ancestry, local: set[str], place: Place, itself: bool
    ) -> None:
        for ref in refs:
            root = ref.root
            if root in local or root in self.roots or (itself and root == node_id):
                continue
            if root not in self.ids:
                if self.open:
                    continue  # may be given when it is run
                hint = suggest(root, [*self.roots, *local, *self.ids], "available")
                self.problem(f'{ref.text}: there is no "{root}"', place, hint, "reference", node_id)
            elif not ancestry.leads(root, node_id):
                hint = f'add an edge from "{root}" to "{node_id}", or to something before it'
                text = f'{ref.text}: "{root}" does not run before "{node_id}", so its value would be a race'
                self.problem(text, place, hint, "reference", node_id)
            else:
                self._check_output(ref, place, node_id)

    def _check_output(self, ref: Reference, place: Place, node_id: str) -> None:
        """A field that the type of its node never gives."""
        source = self.planned.get(ref.root)
        known = source.type.declared.outputs if source is not None else None
        if known is None or len(ref.path) < 2 or not ref.strict or ref.path[1] in (*known, *MARKERS):
            return
        hint = suggest(str(ref.path[1]), known, f"outputs of {ref.root}")
        self.problem(f'{ref.text}: "{ref.root}" has no output "{ref.path[1]}"', place, hint, "reference", node_id)


def _unconditional(edges: list[Edge]) -> list[Edge]:
    """The edges of nodes that have no other way out."""
    ways: dict[str, set[str]] = {}
    for edge in edges:
        ways.setdefault(edge.source, set()).add(edge.target if edge.on == ANY and edge.guard is None else "?")
    return [edge for edge in edges if edge.on == ANY and edge.guard is None and len(ways[edge.source]) == 1]


def _at(node: Node, part: str) -> Place:
    return node.places.get(part, node.place)


def _order(graph: Graph) -> Iterator[str]:
    """Kahn, first in, first out."""
    counts = list(graph.incoming)
    queue = deque(i for i, count in enumerate(counts) if not count)
    while queue:
        i = queue.popleft()
        yield graph.ids[i]
        for edge in graph.outgoing[i]:
            counts[edge.target] -= 1
            if not counts[edge.target]:
                queue.append(edge.target)

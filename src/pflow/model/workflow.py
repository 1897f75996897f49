"""A workflow: what a document means, in one form for every dialect.

Edges, defaults and positions are explicit. Conditions are s-expressions in plain data
(``["same", ["path", "a", "value"], ["value", true]]``; see ``lang.expression``), texts in ``params`` are templates
in the workflow's ``syntax`` (see ``lang.template``). No name in here belongs to one dialect.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import msgspec

from pflow.errors import Place, Problem
from pflow.model.value import plain

Syntax = Literal["mustache", "dollar", "brace"]
Backoff = Literal["constant", "exponential"]
Effect = Literal["pure", "quiet", "impure"]
Expr = list[Any]

ANY = "*"  # an edge that fires on every route
DEFAULT = "default"  # an edge that fires when no label of the node's route matches
OPTIONAL = "optional-failure"  # an edge that fires when its source, which may fail, does
ERROR = "error"  # an edge that fires when its source fails, and makes the failure a handled one


class Retry(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often to try again, and how long to wait in between."""

    attempts: int = 1  # in total, the first included
    delay: float = 0.0  # seconds
    backoff: Backoff = "constant"
    cap: float = 300.0  # the longest delay, for exponential backoff


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the engine does around a node's execution."""

    retry: Retry = Retry()
    by_kind: dict[str, Retry] = {}  # a failure's kind → its own rule, before ``retry``
    timeout: float | None = None  # seconds, per attempt
    tolerate: bool = False  # a failure is recorded and the flow goes on
    critical: bool = False  # a failure ends the run, whatever routes there are
    cache: bool | None = None  # None: as the reuse policy sees fit


class Batch(msgspec.Struct, frozen=True, omit_defaults=True):
    """One node, once for each item of a list."""

    items: Any
    name: str = "item"
    width: int = 1
    fail_fast: bool = True
    retry: Retry = Retry()


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """A declared node."""

    id: str
    type: str
    params: dict[str, Any] = {}
    guard: Expr | None = None
    policy: Policy = Policy()
    batch: Batch | None = None
    outputs: tuple[str, ...] = ()  # the outputs it promises; routes go by the first
    max_visits: int = 100  # under a scheduler that may come back to it
    place: Place = Place()
    places: dict[str, Place] = {}  # of the parts that errors point at: "params.text", "guard", …
    notes: dict[str, Any] = {}  # cosmetic: kept for printing, in no digest


class Edge(msgspec.Struct, frozen=True, omit_defaults=True):
    """A dependency from one node to another."""

    source: str
    target: str
    on: str = ANY  # a route's label; where values flow, the port that they come from
    guard: Expr | None = None
    port: str = ""  # of the target, where values flow from port to port
    place: Place = Place()
    notes: dict[str, Any] = {}


class Input(msgspec.Struct, frozen=True, omit_defaults=True):
    """A declared input of a workflow."""

    name: str
    type: str = "any"
    required: bool = False
    default: Any = None
    description: str = ""
    stdin: bool = False
    secret: bool = False
    env: bool = False  # its default names variables of the environment: "${NAME}"
    place: Place = Place()


class Output(msgspec.Struct, frozen=True, omit_defaults=True):
    """A declared output: where its value comes from."""

    name: str
    source: str
    type: str = "any"
    description: str = ""
    place: Place = Place()


class Workflow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A document's meaning."""

    name: str
    dialect: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...] = ()
    inputs: tuple[Input, ...] = ()
    open_inputs: bool = True  # names that are not declared may be given
    input_path: tuple[str, ...] = ()  # where templates find inputs: () at the top, ("flow", "input") below it
    outputs: tuple[Output, ...] = ()
    syntax: Syntax = "mustache"
    missing: Literal["fail", "keep"] = "fail"  # what an unresolved reference does
    scheduler: Literal["topological", "routed", "reactive"] = "topological"
    flat: bool = False  # outputs are seen by their own names as well as below their node's
    width: int = 1
    fail_fast: bool = True
    safe_retries: bool = False  # only types that may run twice are tried again
    packs: tuple[str, ...] = ()
    description: str = ""
    version: str = ""
    file: str = ""  # the document's own path; relative references start from its folder
    text: str = ""  # the document itself, to be kept with its runs
    warnings: tuple[Problem, ...] = ()
    notes: dict[str, Any] = {}

    def node(self, node_id: str) -> Node:
        """The node of this id."""
        return next(node for node in self.nodes if node.id == node_id)


COSMETIC = frozenset({"file", "text", "notes", "description", "warnings", "version", "place", "places"})


def meaning(workflow: Workflow) -> dict[str, Any]:
    """What a workflow means, without what is cosmetic: the part that digests are made of."""
    made: dict[str, Any] = plain(_spelled(workflow))
    return made


def _spelled(value: Any) -> Any:
    """A struct's fields as they differ from their defaults, however they were spelled."""
    if isinstance(value, tuple):
        return [_spelled(item) for item in value]
    if not isinstance(value, msgspec.Struct):
        return value
    made = {}
    for name, default in _defaults(type(value)):
        mine = getattr(value, name)
        if mine != default:
            made[name] = _spelled(mine)
    return made


@functools.cache
def _defaults(kind: type[msgspec.Struct]) -> list[tuple[str, Any]]:
    fields = [field for field in msgspec.structs.fields(kind) if field.name not in COSMETIC]
    return [
        (field.name, field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default)
        for field in fields
    ]

"""A workflow: what a document means, in one form for every dialect.

Edges, defaults and positions are explicit. Conditions are s-expressions in plain data
(``["same", ["path", "a", "value"], ["value", true]]``; see ``lang.expression``), texts in ``params`` are templates
in the workflow's ``syntax`` (see ``lang.template``). No name in here belongs to one dialect.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from pflow.errors import Place
from pflow.model.value import plain

Syntax = Literal["mustache", "dollar", "brace"]
Backoff = Literal["constant", "exponential"]
Effect = Literal["pure", "quiet", "impure"]
Expr = list[Any]

ANY = "*"  # an edge that fires on every route
DEFAULT = "default"  # an edge that fires when no label of the node's route matches
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
    place: Place = Place()
    places: dict[str, Place] = {}  # of the parts that errors point at: "params.text", "guard", …
    notes: dict[str, Any] = {}  # cosmetic: kept for printing, in no digest


class Edge(msgspec.Struct, frozen=True, omit_defaults=True):
    """A dependency from one node to another."""

    source: str
    target: str
    on: str = ANY
    guard: Expr | None = None
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
    scheduler: str = "topological"
    width: int = 1
    fail_fast: bool = True
    packs: tuple[str, ...] = ()
    description: str = ""
    version: str = ""
    file: str = ""  # the document's own path; relative references start from its folder
    text: str = ""  # the document itself, to be kept with its runs
    notes: dict[str, Any] = {}

    def node(self, node_id: str) -> Node:
        """The node of this id."""
        return next(node for node in self.nodes if node.id == node_id)


def meaning(workflow: Workflow) -> dict[str, Any]:
    """What a workflow means, without what is cosmetic: the part that digests are made of."""
    data: dict[str, Any] = msgspec.to_builtins(workflow)
    for key in ("file", "text", "notes", "description"):
        data.pop(key, None)
    for part in [*data["nodes"], *data.get("edges", ()), *data.get("inputs", ()), *data.get("outputs", ())]:
        for key in ("place", "places", "notes", "description"):
            part.pop(key, None)
        # A policy that is spelled out as the default one is the default one.
        part["policy"] = {key: value for key, value in part.get("policy", {}).items() if value != {}}
    made: dict[str, Any] = plain(data)
    return made

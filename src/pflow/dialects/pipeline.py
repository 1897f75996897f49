"""Pipelines on a command line: ``fetch_url --url X --retries 3 >> summarize``.

    flow ::= node (">>" node)*        node ::= [ns/]name[@version] (--key value | --key=value | --flag)*

``--retries`` is a directive to the engine, and so is ``--timeout`` unless the type has a param of that name; neither
enters the params. What a node mainly makes is what the next one is mainly given, unless that is said otherwise.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, get_args

from pflow.errors import Place, Problem, UsageError, WorkflowError, suggest
from pflow.model.typed import typed
from pflow.model.workflow import DEFAULT, Edge, Node, Policy, Retry, Workflow
from pflow.nodes.registry import Registry
from pflow.nodes.type import NodeType

ARROW = ">>"
DIRECTIVES = ("retries", "timeout", "cache")
_MOST_RETRIES = 100


def split(words: Sequence[str]) -> list[list[str]]:
    """The words of each node of a pipeline."""
    try:
        parts = shlex.split(words[0].replace(ARROW, f" {ARROW} ")) if len(words) == 1 else list(words)
    except ValueError as error:
        raise UsageError(f"the pipeline cannot be read: {error}", "close every quote") from None
    nodes: list[list[str]] = [[]]
    for part in parts:
        if part == ARROW:
            nodes.append([])
        else:
            nodes[-1].append(part)
    for number, node in enumerate(nodes):
        if not node:
            where = "begins with" if number == 0 else "ends with" if number == len(nodes) - 1 else "has nothing between"
            raise UsageError(f"the pipeline {where} {ARROW}", f"write a node on both sides: a {ARROW} b")
    return nodes


def parse(words: Sequence[str], registry: Registry) -> Workflow:
    """The workflow that a pipeline describes; raises ``WorkflowError`` with everything that is wrong with it."""
    reader = _Reader(registry)
    nodes = [reader.node(number, own) for number, own in enumerate(split(words))]
    if reader.problems:
        raise WorkflowError(reader.problems)
    edges = tuple(Edge(first.id, second.id, DEFAULT) for first, second in pairwise(nodes))
    name = "-".join(node.type.rpartition("/")[2] for node in nodes)[:40]
    return Workflow(name, "pflow", tuple(nodes), edges, open_inputs=True, syntax="dollar", safe_retries=True)


class _Reader:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.problems: list[Problem] = []
        self.before: Node | None = None
        self.kind_before: NodeType | None = None
        self.taken: set[str] = set()

    def problem(self, message: str, hint: str, node_id: str, code: str = "invalid") -> None:
        self.problems.append(Problem(message, Place("<pipeline>"), hint, code, node_id))

    def node(self, number: int, words: list[str]) -> Node:
        name, *rest = words
        kind = self.registry.find(name)
        node_id = self._id(name)
        if kind is None:
            self.problem(f'unknown node type "{name}"', self.registry.hint(name), node_id, "unknown-type")
        params, directives = self._options(rest, kind, node_id)
        if self.before is not None and kind is not None and self.kind_before is not None:
            self._connect(params, kind, node_id)
        node = Node(node_id, name, params, policy=self._policy(directives, node_id), notes={"number": number + 1})
        self.before, self.kind_before = node, kind
        return node

    def _id(self, name: str) -> str:
        base = name.partition("@")[0].replace("/", "-")
        node_id, n = base, 1
        while node_id in self.taken:
            n += 1
            node_id = f"{base}-{n}"
        self.taken.add(node_id)
        return node_id

    def _options(self, words: list[str], kind: NodeType | None, node_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
        params: dict[str, Any] = {}
        directives: dict[str, Any] = {}
        i = 0
        while i < len(words):
            word = words[i]
            i += 1
            if not word.startswith("--") or word == "--":
                self.problem(
                    f'"{word}" is not an option', f'write --{(kind and kind.main_in) or "key"} "{word}"', node_id
                )
                continue
            key, equals, text = word[2:].partition("=")
            value: Any = typed(text) if equals else True
            bare = not equals and (i == len(words) or words[i].startswith("--"))
            if not equals and not bare:
                value = typed(words[i])
                i += 1
            name = self._param(key, kind)
            if bare and kind is not None and not _may_be_true(kind, name):
                self.problem(f"--{key} needs a value", f"write --{key} VALUE", node_id, "param")
            if key in DIRECTIVES and (kind is None or name not in kind.params):
                directives[key] = value
            else:
                self._check(key, name, kind, node_id)
                params[name] = value
        return params, directives

    def _param(self, key: str, kind: NodeType | None) -> str:
        """A param's name, with ``-`` for ``_`` allowed."""
        if kind is None:
            return key
        name = kind.canonical(key)
        return name if name in kind.params else kind.canonical(key.replace("-", "_"))

    def _check(self, key: str, name: str, kind: NodeType | None, node_id: str) -> None:
        if kind is not None and name not in kind.params and not kind.open:
            known = [f"--{param.rstrip('_')}" for param in (*kind.params, *DIRECTIVES)]
            self.problem(f"{kind.name} has no option --{key}", suggest(f"--{key}", known, "options"), node_id, "param")

    def _connect(self, params: dict[str, Any], kind: NodeType, node_id: str) -> None:
        assert self.before is not None and self.kind_before is not None
        made, wanted = self.kind_before.main_out, kind.main_in
        if wanted in params:
            return
        if not made or not wanted:
            who = self.before.type if not made else kind.name
            text = f"{who} has no main {'output' if not made else 'param'}, so {ARROW} connects nothing"
            self.problem(text, f"give {kind.name} its params with --key value", node_id)
            return
        params[wanted] = f"${{{self.before.id}.{made}}}"

    def _policy(self, directives: dict[str, Any], node_id: str) -> Policy:
        retries, timeout, cache = (directives.get(name) for name in DIRECTIVES)
        if retries is not None and (type(retries) is not int or not 0 <= retries <= _MOST_RETRIES):
            self.problem(
                f"--retries must be a whole number from 0 to {_MOST_RETRIES}, not {retries}", "", node_id, "range"
            )
            retries = 0
        if timeout is not None and (type(timeout) not in (int, float) or timeout <= 0):
            self.problem(f"--timeout must be a number of seconds above 0, not {timeout}", "", node_id, "range")
            timeout = None
        return Policy(Retry((retries or 0) + 1), timeout=timeout, cache=cache if isinstance(cache, bool) else None)


def _may_be_true(kind: NodeType, name: str) -> bool:
    """Whether a param can be given by its name alone."""
    param = kind.params.get(name)
    if param is None or param.annotation is Any:
        return True
    allowed = (param.annotation, *get_args(param.annotation))
    return bool in allowed or not any(one in (str, int, float) for one in allowed)

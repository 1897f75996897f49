"""The node types that can be used here: found, told as data, tried, verified and accepted."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pflow.app.options import Options
from pflow.app.session import registry_for
from pflow.app.wording import one_line
from pflow.errors import UsageError, suggest
from pflow.model.typed import typed
from pflow.model.workflow import Effect, Node, Workflow
from pflow.nodes import purity
from pflow.nodes.purity import Standings, Verdict, examples_for
from pflow.nodes.registry import Registry
from pflow.nodes.type import UNKNOWN, NodeType, Param

_NOWHERE = Workflow("", "", ())
_INPUT = ("given",)
_BY_VISIT = "takes a step, so it is tried when it first runs"


def known() -> Registry:
    """The node types that can be used here."""
    return registry_for(_NOWHERE, Options())


def search(words: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The types in whose name, description or params every word occurs."""
    return [_view(kind) for kind in known().types() if all(word.lower() in _haystack(kind) for word in words)]


def _haystack(kind: NodeType) -> str:
    """What a search looks through."""
    return " ".join([kind.name, *kind.declared.names, kind.doc, *kind.params]).lower()


def summary(view: dict[str, Any]) -> str:
    """What a type is for, on one line."""
    return one_line(view["description"].partition("\n\n")[0], 120)


def describe(name: str) -> dict[str, Any]:
    """A node type as data."""
    return _view(known().get(name))


def _view(kind: NodeType) -> dict[str, Any]:
    return {
        "name": kind.name,
        "version": kind.version or None,
        "description": kind.doc,
        "effect": _effect(kind),
        "params": [_param_view(param) for param in kind.params.values()],
        "open": kind.open,
        "outputs": list(kind.declared.outputs) if kind.declared.outputs is not None else None,
        "routes": list(kind.declared.routes),
        "main_in": kind.main_in,
        "main_out": kind.declared.main_out,
        "aliases": kind.declared.aliases,
        "examples": list(kind.declared.examples),
        "origin": kind.origin,
        **({"schema": kind.schema} if kind.schema is not None else {}),
    }


def _effect(kind: NodeType) -> Effect:
    """What a type does to the world, as far as its defaults tell."""
    return kind.effect_for({name: UNKNOWN if one.required else one.default for name, one in kind.params.items()})


def _param_view(param: Param) -> dict[str, Any]:
    view: dict[str, Any] = {"name": param.name, "type": _type_text(param), "required": param.required}
    return view if param.required else view | {"default": param.default}


def _type_text(param: Param) -> str:
    if param.annotation is inspect.Parameter.empty:
        return "any"
    return inspect.formatannotation(param.annotation).replace("typing.", "").replace("Any", "any")


def alone(name: str, texts: Mapping[str, str]) -> tuple[Workflow, dict[str, Any]]:
    """A workflow of one node, and its inputs.

    Its params are bound from inputs, so that no text in them is taken for a template.
    """
    kind = known().get(name)
    given = {key: typed(text, _kind_of(kind, key)) for key, text in texts.items()}
    unknown = [key for key in given if kind.canonical(key) not in kind.params and not kind.open]
    if unknown:
        raise UsageError(f'{kind.name} has no param "{unknown[0]}"', suggest(unknown[0], kind.params, "params"))
    node = kind.name.rpartition("/")[2]
    params = {key: f"{{{{{'.'.join(_INPUT)}.{key}}}}}" if value is not None else None for key, value in given.items()}
    return Workflow(node, "ir", (Node(node, kind.name, params),), input_path=_INPUT), given


def _kind_of(kind: NodeType, key: str) -> str:
    param = kind.params.get(kind.canonical(key))
    return "string" if param is not None and param.annotation is str else "any"


class Verified(msgspec.Struct, frozen=True):
    """Whether a type is pure, and why not."""

    type: str
    pure: bool
    reason: str


async def verify(name: str) -> Verified:
    """Try whether a type keeps its promise; what comes of it is remembered."""
    kind = known().get(name)
    if kind.trusted:
        verdict = Verdict(kind.safe, "" if kind.safe else "it makes no such promise")
    elif not kind.safe:
        raise UsageError(f"{kind.name} makes no promise", "decorate it with @flow_safe, or inspect and accept it")
    elif kind.wants_step:
        verdict = Verdict(False, _BY_VISIT)
    else:
        verdict = await purity.verify(kind, examples_for(kind))
        Standings().set(kind, "pure" if verdict.pure else "impure", verdict.reason)
    return Verified(kind.name, verdict.pure, verdict.reason)


def accept(name: str) -> str:
    """Take a stranger's type as quiet until its source changes; tells its name."""
    kind = known().get(name)
    if kind.trusted:
        raise UsageError(f"{kind.name} is built in", "its effect is known, and cannot be changed")
    if kind.stays_impure:
        raise UsageError(f"{kind.name} stays impure: {kind.stays_impure}", "it is asked about before it runs twice")
    Standings().set(kind, "accepted")
    return kind.name

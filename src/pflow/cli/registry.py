"""``pflow registry``: the node types there are, and trying one by itself."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

from pflow import app
from pflow.cli.complaints import print_json
from pflow.cli.driving import Drive
from pflow.cli.inputs import pairs
from pflow.cli.screen import Screen, one_line, result
from pflow.cli.words import Line
from pflow.errors import UsageError, suggest
from pflow.model.typed import typed
from pflow.model.value import json_text
from pflow.model.workflow import Effect, Node, Workflow
from pflow.nodes import purity
from pflow.nodes.purity import Standings, Verdict, examples_for
from pflow.nodes.registry import Registry
from pflow.nodes.spec import UNKNOWN, NodeType, Param

_NOWHERE = Workflow("", "", ())
_INPUT = ("given",)
_BY_VISIT = "takes a step, so it is tried when it first runs"


def known() -> Registry:
    """The node types that can be used here."""
    return app.registry_for(_NOWHERE, app.Options())


def list_types(line: Line) -> int:
    """``pflow registry list``."""
    return _listed(line, known().types())


def search(line: Line) -> int:
    """``pflow registry search WORDS``: every word must occur in name, description or params."""
    words = [word.lower() for word in line.words]
    found = [kind for kind in known().types() if all(word in haystack(kind) for word in words)]
    if not found and not line.json:
        Screen().say(f"no node type mentions {' and '.join(line.words)}; `pflow registry list` shows all")
        return 0
    return _listed(line, found)


def haystack(kind: NodeType) -> str:
    """What a search looks through."""
    return " ".join([kind.name, *kind.declared.names, kind.doc, *kind.params]).lower()


def _listed(line: Line, kinds: list[NodeType]) -> int:
    if line.json:
        print_json([type_view(kind) for kind in kinds])
    else:
        wide = max(len(kind.name) for kind in kinds)
        result("\n".join(f"{kind.name:{wide}}  {type_effect(kind):6}  {summary(kind)}" for kind in kinds))
    return 0


def type_effect(kind: NodeType) -> Effect:
    """What a type does to the world, as far as its defaults tell."""
    return kind.effect_for({name: UNKNOWN if one.required else one.default for name, one in kind.params.items()})


def summary(kind: NodeType) -> str:
    """What a type is for, on one line."""
    return one_line(kind.doc.partition("\n\n")[0], 120)


def describe(line: Line) -> int:
    """``pflow registry describe TYPE``."""
    kind = known().get(line.words[0])
    if line.json:
        print_json(type_view(kind))
    else:
        result("\n".join(_page(kind)))
    return 0


def type_view(kind: NodeType) -> dict[str, Any]:
    """A node type as data."""
    return {
        "name": kind.name,
        "version": kind.version or None,
        "description": kind.doc,
        "effect": type_effect(kind),
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


def _param_view(param: Param) -> dict[str, Any]:
    view: dict[str, Any] = {"name": param.name, "type": _type_text(param), "required": param.required}
    return view if param.required else view | {"default": param.default}


def _type_text(param: Param) -> str:
    if param.annotation is inspect.Parameter.empty:
        return "any"
    return inspect.formatannotation(param.annotation).replace("typing.", "").replace("Any", "any")


def _page(kind: NodeType) -> list[str]:
    version = f"@{kind.version}" if kind.version else ""
    lines = [f"{kind.name}{version}  ({type_effect(kind)})", "", *kind.doc.splitlines(), "", "Params:"]
    lines += [f"  {_param_text(kind, param)}" for param in kind.params.values()] or ["  none"]
    if kind.open:
        lines.append("  … and any others")
    outputs = kind.declared.outputs
    lines += ["", f"Outputs: {'known when it has run' if outputs is None else ', '.join(outputs) or 'none'}"]
    if kind.declared.main_out:
        lines.append(f"Main output: {kind.declared.main_out}")
    if kind.declared.routes:
        lines.append(f"Routes: {', '.join(kind.declared.routes)}")
    if kind.declared.examples:
        lines += ["", "Try:", *(f"  {_example(kind, example)}" for example in kind.declared.examples)]
    return [*lines, "", f"From: {kind.origin or 'this program'}"]


def _param_text(kind: NodeType, param: Param) -> str:
    name = param.name.rstrip("_")
    others = [alias for alias, canonical in kind.declared.aliases.items() if canonical == param.name]
    also = f" (also: {', '.join(others)})" if others else ""
    rest = "required" if param.required else f"= {json_text(param.default)}"
    field = (kind.schema or {}).get("properties", {}).get(param.name)
    said = one_line(str(field["description"]), 100) if isinstance(field, dict) and "description" in field else ""
    return f"{name}{also}: {_type_text(param)}  {rest}" + (f"  {said}" if said else "")


def _example(kind: NodeType, example: dict[str, Any]) -> str:
    words = [f"{key}={value if isinstance(value, str) else json_text(value)}" for key, value in example.items()]
    return " ".join(["pflow registry run", kind.name, *(_quoted(word) for word in words)])


def _quoted(word: str) -> str:
    from shlex import quote

    return quote(word)


def run(line: Line) -> int:
    """``pflow registry run TYPE key=value …``."""
    kind = known().get(line.words[0])
    given = {key: typed(text, _kind_of(kind, key)) for key, text in pairs(line).items()}
    unknown = [key for key in given if kind.canonical(key) not in kind.params and not kind.open]
    if unknown:
        raise UsageError(f'{kind.name} has no param "{unknown[0]}"', suggest(unknown[0], kind.params, "params"))
    workflow = alone(kind, given)
    return Drive(line).complete(lambda options: app.run(workflow, given, **options))


def verify(line: Line) -> int:
    """``pflow registry verify TYPE``: exit code 1 for a promise that is not kept."""
    kind, standings = known().get(line.words[0]), Standings()
    if kind.trusted:
        verdict = Verdict(kind.safe, "" if kind.safe else "it makes no such promise")
    elif not kind.safe:
        raise UsageError(f"{kind.name} makes no promise", "decorate it with @flow_safe, or inspect and accept it")
    else:
        examples = examples_for(kind)
        verdict = asyncio.run(purity.verify(kind, examples)) if not kind.wants_step else Verdict(False, _BY_VISIT)
        if not kind.wants_step:
            standings.set(kind, "pure" if verdict.pure else "impure", verdict.reason)
    if line.json:
        print_json({"type": kind.name, "pure": verdict.pure, "reason": verdict.reason})
    else:
        good = f"✓ {kind.name} is pure: it answered the same twice, and touched nothing"
        result(good if verdict.pure else f"✗ {kind.name} is not pure: it {verdict.reason}")
    return 0 if verdict.pure else 1


def accept(line: Line) -> int:
    """``pflow registry accept TYPE``."""
    kind = known().get(line.words[0])
    if kind.trusted:
        raise UsageError(f"{kind.name} is built in", "its effect is known, and cannot be changed")
    if kind.stays_impure:
        raise UsageError(f"{kind.name} stays impure: {kind.stays_impure}", "it is asked about before it runs twice")
    Standings().set(kind, "accepted")
    Screen().say(f"✓ {kind.name} is taken as quiet: it may be retried and restarted, until its source changes")
    return 0


def _kind_of(kind: NodeType, key: str) -> str:
    param = kind.params.get(kind.canonical(key))
    return "string" if param is not None and param.annotation is str else "any"


def alone(kind: NodeType, given: dict[str, Any]) -> Workflow:
    """A workflow of one node; its params are bound from inputs, so that no text in them is taken for a template."""
    name = kind.name.rpartition("/")[2]
    params = {key: f"{{{{{'.'.join(_INPUT)}.{key}}}}}" if value is not None else None for key, value in given.items()}
    return Workflow(name, "ir", (Node(name, kind.name, params),), input_path=_INPUT)

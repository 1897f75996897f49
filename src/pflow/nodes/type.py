"""What a node type is: a function with a name, typed params, outputs and an effect.

``@node("ns/name")`` turns a plain function (or a ``Node`` class) into a type without changing it; the
description is derived from its signature, once, when it is registered.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pflow.errors import UsageError
from pflow.lang.template import to_text
from pflow.model.value import type_name
from pflow.model.workflow import Effect
from pflow.nodes.graph_api.autonomous import autonomous, is_autonomous
from pflow.nodes.purity import source_digest
from pflow.nodes.step import StepContext

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__pflow_node__"
SAFE = "__pflow_flow_safe__"
REQUIRED: Any = inspect.Parameter.empty
_BY_STANDING: dict[str, Effect] = {"pure": "pure", "accepted": "quiet"}
UNKNOWN: Any = object()  # stands for the value of a param that only a run will tell


class Routed(msgspec.Struct, frozen=True):
    """Returned by a node that chooses where the flow goes on: its outputs, and the label of its route."""

    outputs: dict[str, Any]
    route: str


class NodeBase:
    """Base of class-style node types: ``exec`` does the work, its annotated parameters are the params."""

    def exec(self, *args: Any, **params: Any) -> Any:
        """Do the work; subclasses say how."""
        raise NotImplementedError(f"{type(self).__name__} defines no exec()")


class Declared(msgspec.Struct, frozen=True):
    """What ``@node(...)`` was told."""

    name: str
    version: str = ""
    inline: bool = False
    effect: Effect = "impure"  # believed of built-in types only
    effect_of: Callable[[Mapping[str, Any]], Effect] | None = None  # where it depends on params; UNKNOWN until bound
    composite: bool = False
    interactive: bool = False
    main_in: str = ""
    main_out: str = ""
    aliases: dict[str, str] = {}  # another name of a param → its name
    literal: tuple[str, ...] = ()  # params whose texts are no templates of the workflow around the node
    names: tuple[str, ...] = ()  # other names of the type
    outputs: tuple[str, ...] | None = None  # None: not known before it ran
    ports: Callable[[Mapping[str, Any]], tuple[tuple[str, ...], tuple[str, ...]]] | None = None  # inputs and outputs
    routes: tuple[str, ...] = ()  # labels it may choose, where they are known
    shared: tuple[str, ...] = ()  # keys of the run's store that it reads and writes
    reads: tuple[str, ...] = ()  # params that name files it reads
    writes: tuple[str, ...] = ()  # params that name files it makes or changes
    command: str = ""  # the param that is a command line, whose words may name files
    depends: Callable[[Mapping[str, Any], Path, Path | None], dict[str, str]] | None = None  # more that it goes by
    volatile: bool = False  # judges a world that no param names: an earlier answer serves only until a run completes
    examples: tuple[dict[str, Any], ...] = ()


def node(
    name: str,
    *,
    version: str = "",
    inline: bool = False,
    effect: Effect = "impure",
    effect_of: Callable[[Mapping[str, Any]], Effect] | None = None,
    composite: bool = False,
    interactive: bool = False,
    main_in: str = "",
    main_out: str = "",
    aliases: Mapping[str, str] | None = None,
    literal: tuple[str, ...] = (),
    names: tuple[str, ...] = (),
    outputs: tuple[str, ...] | None = None,
    ports: Callable[[Mapping[str, Any]], tuple[tuple[str, ...], tuple[str, ...]]] | None = None,
    routes: tuple[str, ...] = (),
    shared: tuple[str, ...] = (),
    reads: tuple[str, ...] = (),
    writes: tuple[str, ...] = (),
    command: str = "",
    depends: Callable[[Mapping[str, Any], Path, Path | None], dict[str, str]] | None = None,
    volatile: bool = False,
    examples: list[dict[str, Any]] | tuple[dict[str, Any], ...] = (),
) -> Callable[[F], F]:
    """Make a function or a ``Node`` class a node type; it stays callable as it was."""
    declared = Declared(
        name, version, inline, effect, effect_of, composite, interactive, main_in, main_out, dict(aliases or {}),
        literal, names, outputs, ports, routes, shared, reads, writes, command, depends, volatile, tuple(examples),
    )  # fmt: skip

    def mark(target: F) -> F:
        setattr(target, MARK, declared)
        return target

    return mark


def flow_safe(target: F) -> F:
    """Promise that a node is deterministic and touches nothing outside; it is checked before it is believed."""
    setattr(target, SAFE, True)
    return target


class Param(msgspec.Struct, frozen=True):
    """One parameter of a node type."""

    name: str
    annotation: Any
    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is REQUIRED


class NodeType:
    """A node type, ready to be planned and called."""

    def __init__(self, target: Callable[..., Any], declared: Declared, trusted: bool, origin: str) -> None:
        self.declared = declared
        self.name = declared.name
        self.version = declared.version
        self.origin = origin
        self.trusted = trusted
        self.safe = bool(getattr(target, SAFE, False))
        self.doc = inspect.getdoc(target) or ""
        self.target = target
        self.autonomous = is_autonomous(target)
        self.call: Callable[..., Any] = _callable(target)
        self.is_async = inspect.iscoroutinefunction(self.call)
        self.composite = declared.composite and trusted
        self.standing = ""  # what is known of a stranger's type: "pure", "impure" or "accepted"
        self.watched = self.safe and not trusted  # runs under the guard of its promise
        self.stays_impure = ""  # why its user cannot accept it
        self.schema: dict[str, Any] | None = None  # of its params, where more is known than the annotations tell
        parameters = list(inspect.signature(self.call, eval_str=True).parameters.values())
        self.wants_step = bool(parameters) and _is_step(parameters[0])
        own = parameters[1:] if self.wants_step else parameters
        self.open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in own)
        self.params = {p.name: Param(p.name, p.annotation, p.default) for p in own if p.kind is not p.VAR_KEYWORD}
        self.converters = {name: converter(param) for name, param in self.params.items()}

    def effect_for(self, params: Mapping[str, Any]) -> Effect:
        """What running it with these params does to the world; a stranger's own word is not enough to be believed."""
        if not self.trusted:
            return _BY_STANDING.get(self.standing, "impure")
        return self.declared.effect_of(params) if self.declared.effect_of else self.declared.effect

    @property
    def main_in(self) -> str:
        """The param that a pipeline fills."""
        return self.declared.main_in or ("data" if self.autonomous else next(iter(self.params), ""))

    @functools.cached_property
    def source(self) -> str:
        """The digest of its source."""
        return source_digest(self.target)

    @property
    def on_trial(self) -> bool:
        """Whether its promise has yet to be checked."""
        return self.watched and not self.standing

    @property
    def main_out(self) -> str:
        """The output that a pipeline takes; the only one where there is one."""
        known = self.declared.outputs or ()
        if self.autonomous:
            return self.declared.main_out or "data"
        return self.declared.main_out or (known[0] if len(known) == 1 else "" if known else "result")

    def canonical(self, key: str) -> str:
        """A param's name, for any of its aliases; ``as`` stands for ``as_``, since Python reserves some words."""
        if key in self.params:
            return key
        return f"{key}_" if f"{key}_" in self.params else self.declared.aliases.get(key, key)

    def convert(self, params: dict[str, Any]) -> dict[str, Any]:
        """Params with values of the annotated types; raises ``UsageError`` naming the one that does not fit."""
        changed: dict[str, Any] = {}
        for key, value in params.items():
            converter = self.converters.get(key)
            if converter is not None and (made := converter(value)) is not value:
                changed[key] = made
        return {**params, **changed} if changed else params


def describe_type(target: Callable[..., Any], trusted: bool = False, origin: str = "") -> NodeType:
    """The node type that a decorated function or class stands for."""
    declared = getattr(target, MARK, None)
    if declared is None:
        raise UsageError(f"{target!r} is not a node type", 'decorate it: @node("namespace/name")')
    return NodeType(target, declared, trusted, origin)


def _callable(target: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isclass(target):
        return _bound_exec(target)
    if is_autonomous(target):
        return autonomous(target)
    return target


def _bound_exec(target: type) -> Callable[..., Any]:
    """``exec`` of a fresh instance each time, so that no state survives between visits."""
    method = target.exec  # type: ignore[attr-defined]

    async def call_async(*args: Any, **params: Any) -> Any:
        return await method(target(), *args, **params)

    def call_sync(*args: Any, **params: Any) -> Any:
        return method(target(), *args, **params)

    call: Callable[..., Any] = call_async if inspect.iscoroutinefunction(method) else call_sync

    signature = inspect.signature(method, eval_str=True)
    without_self = list(signature.parameters.values())[1:]
    call.__signature__ = signature.replace(parameters=without_self)  # type: ignore[attr-defined]
    return call


def _is_step(parameter: inspect.Parameter) -> bool:
    return parameter.annotation is StepContext or (parameter.name == "step" and parameter.annotation is REQUIRED)


def converter(param: Param) -> Callable[[Any], Any] | None:
    """A function that checks and converts a value, or None where anything goes."""
    annotation = param.annotation
    if annotation is Any or annotation is REQUIRED or annotation is object:
        return None
    if annotation is str:
        return _as_text
    exact = annotation if isinstance(annotation, type) and typing.get_origin(annotation) is None else None
    textual = str in _choices(annotation)

    def convert(value: Any) -> Any:
        if type(value) is exact:
            return value
        if textual and type(value) is str:
            return value
        try:
            return msgspec.convert(value, annotation, strict=False)
        except msgspec.ValidationError:
            if textual:
                return to_text(value)
            raise UsageError(
                f'param "{param.name}" must be {_spelled(annotation)}, not {type_name(value)} {to_text(value)[:80]!r}'
            ) from None

    return convert


def _as_text(value: Any) -> str:
    """A text param takes any value, spelled as it would be inside a text."""
    return value if type(value) is str else to_text(value)


def _choices(annotation: Any) -> tuple[Any, ...]:
    return typing.get_args(annotation) if isinstance(annotation, types.UnionType) else ()


def _spelled(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)

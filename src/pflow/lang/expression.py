"""Expressions: one evaluator over s-expressions in plain data, whatever syntax they were written in.

    ["value", v]   ["path", part, …]   ["list", A, …]   ["len", A]   ["not", A]   ["and", A, …]   ["or", A, …]
    ["same", A, B]                          JSON equality; false when a path in it is unresolved
    ["==", A, B]   != < <= > >= in, not in  forgiving comparison, see ``comparison``

An unresolved path is null, but inside ``same``. A comparison with null or empty is false and warns; written
out (``x == null``, ``x != ""``) it is a test and does neither. ``and`` and ``or`` give the operand that decided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pflow.errors import ExpressionError
from pflow.lang.comparison import Warn, alike, contained, is_blank, is_empty, ordered, shown, size, truth, unlike
from pflow.lang.grammar import COMPARISONS, MalformedExpression, check_depth, parse, quoted
from pflow.lang.path import MISSING, Path, Reference, Values, getter, path_text
from pflow.lang.template import to_text
from pflow.model.value import same
from pflow.model.workflow import Expr

__all__ = ["Compiled", "MalformedExpression", "compile_expr", "describe", "parse"]

_Evaluate: TypeAlias = Callable[[Values, Warn], Any]


class Compiled:
    """An expression made ready to be evaluated."""

    __slots__ = ("_evaluate", "references")

    def __init__(self, references: tuple[Reference, ...], evaluate: _Evaluate) -> None:
        self.references = references
        self._evaluate = evaluate

    def evaluate(self, values: Values, warn: Warn | None = None) -> Any:
        """The expression's value; ``warn`` is told of comparisons with nothing."""
        return self._evaluate(values, warn or _ignore)

    def test(self, values: Values, warn: Warn | None = None) -> bool:
        """Whether the expression holds."""
        return truth(self._evaluate(values, warn or _ignore))


def compile_expr(expr: Expr) -> Compiled:
    """Check an expression and make it ready; a form that is not known is refused."""
    check_depth(expr)
    references: list[Reference] = []
    evaluate = _compile(expr, references, False)
    return Compiled(tuple(references), evaluate)


def describe(expr: Expr) -> str:
    """An expression in words, as the text language writes it: the reason why a node was skipped."""
    return _words(expr, 0)


class _Unresolved(Exception):
    """A path inside ``same`` leads nowhere; never leaves this module."""


def _ignore(message: str) -> None:
    """Where nobody listens to warnings."""


# Compiling.


def _compile(expr: Any, references: list[Reference], strict: bool) -> _Evaluate:
    """``strict`` says that an unresolved path is not null: the expression stands inside ``same``."""
    head, arguments = _checked(expr)
    if head == "value":
        constant = arguments[0]
        return lambda values, warn: constant
    if head == "path":
        references.append(Reference(tuple(arguments), path_text(arguments), False))
        return _path(tuple(arguments), strict)
    parts = [_compile(argument, references, strict or head == "same") for argument in arguments]
    if head in COMPARISONS:
        return (_membership if head.endswith("in") else _comparison)(head, expr, parts)
    return _FORMS[head](expr, parts)


def _checked(expr: Any) -> tuple[str, list[Any]]:
    """A form's name and arguments, when it is one."""
    if not isinstance(expr, (list, tuple)) or not expr or not isinstance(expr[0], str):
        raise ExpressionError("an expression is a list that starts with its form's name", f"known forms: {_known()}")
    head, arguments = expr[0], list(expr[1:])
    if head == "path":
        valid = bool(arguments) and isinstance(arguments[0], str) and all(map(_is_part, arguments))
    elif head in ("value", "not", "len"):
        valid = len(arguments) == 1
    elif head in COMPARISONS or head == "same":
        valid = len(arguments) == 2
    elif head in _FORMS:
        valid = True
    else:
        raise ExpressionError(f'there is no form "{head[:40]}" in expressions', f"known forms: {_known()}")
    if not valid:
        raise ExpressionError(f'the form "{head}" does not take these arguments ({len(arguments)})')
    return head, arguments


def _is_part(part: Any) -> bool:
    return isinstance(part, str) or type(part) is int


def _known() -> str:
    return ", ".join(["value", "path", *_FORMS, *sorted(COMPARISONS)])


def _path(path: Path, strict: bool) -> _Evaluate:
    look = getter(path, False)

    def evaluate(values: Values, warn: Warn) -> Any:
        found = look(values)
        if found is not MISSING:
            return found
        if strict:
            raise _Unresolved
        return None

    return evaluate


def _same(expr: Expr, parts: list[_Evaluate]) -> _Evaluate:
    left, right = parts

    def evaluate(values: Values, warn: Warn) -> bool:
        try:
            return same(left(values, warn), right(values, warn))
        except _Unresolved:
            return False

    return evaluate


def _not(expr: Expr, parts: list[_Evaluate]) -> _Evaluate:
    (part,) = parts
    return lambda values, warn: not truth(part(values, warn))


def _and(expr: Expr, parts: list[_Evaluate]) -> _Evaluate:
    def evaluate(values: Values, warn: Warn) -> Any:
        found: Any = True
        for part in parts:
            found = part(values, warn)
            if not truth(found):
                break
        return found

    return evaluate


def _or(expr: Expr, parts: list[_Evaluate]) -> _Evaluate:
    def evaluate(values: Values, warn: Warn) -> Any:
        found: Any = False
        for part in parts:
            found = part(values, warn)
            if truth(found):
                break
        return found

    return evaluate


def _list(expr: Expr, parts: list[_Evaluate]) -> _Evaluate:
    return lambda values, warn: [part(values, warn) for part in parts]


def _len(expr: Expr, parts: list[_Evaluate]) -> _Evaluate:
    (part,) = parts

    def evaluate(values: Values, warn: Warn) -> int:
        found = part(values, warn)
        if found is None:
            warn(f"{describe(expr)}: its argument is null, which counts as empty")
        return size(found)

    return evaluate


def _comparison(op: str, expr: Expr, parts: list[_Evaluate]) -> _Evaluate:
    """A comparison; one with nothing is false, unless nothing is what it asks for."""
    left, right = parts
    compare, equality = _OPERATORS[op], op in ("==", "!=")
    asks_for_nothing = equality and any(side[0] == "value" and is_blank(side[1]) for side in expr[1:])
    is_nothing = is_blank if equality else is_empty

    def evaluate(values: Values, warn: Warn) -> bool:
        a, b = left(values, warn), right(values, warn)
        if asks_for_nothing:
            return compare(a, b)
        if is_nothing(a) or is_nothing(b):
            warn(f"{describe(expr)}: {describe(expr[1 if is_nothing(a) else 2])} is null or empty, so this is false")
            return False
        if equality and unlike(a, b):
            warn(f"{describe(expr)}: {shown(a)} and {shown(b)} are of unlike types")
        return compare(a, b)

    return evaluate


def _membership(op: str, expr: Expr, parts: list[_Evaluate]) -> _Evaluate:
    """``in`` and ``not in``; nothing is in null."""
    item, container = parts

    def evaluate(values: Values, warn: Warn) -> bool:
        a, b = item(values, warn), container(values, warn)
        if b is None:
            warn(f"{describe(expr)}: {describe(expr[2])} is null, which counts as empty")
        return contained(a, b) is (op == "in")

    return evaluate


_FORMS: dict[str, Callable[[Expr, list[_Evaluate]], _Evaluate]] = {
    "same": _same,
    "not": _not,
    "and": _and,
    "or": _or,
    "list": _list,
    "len": _len,
}
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": alike,
    "!=": lambda left, right: not alike(left, right),
    "<": lambda left, right: ordered("<", left, right),
    "<=": lambda left, right: ordered("<=", left, right),
    ">": lambda left, right: ordered(">", left, right),
    ">=": lambda left, right: ordered(">=", left, right),
}


# Describing. Higher binds tighter; what binds looser than its place gets parentheses.

_OR, _AND, _NOT, _COMPARED, _OPERAND = range(1, 6)


def _words(expr: Expr, place: int) -> str:
    strength, text = _described(expr)
    return f"({text})" if strength < place else text


def _described(expr: Expr) -> tuple[int, str]:
    head, arguments = _checked(expr)
    match head:
        case "value":
            return _OPERAND, _literal(arguments[0])
        case "path":
            return _OPERAND, path_text(arguments)
        case "list":
            return _OPERAND, f"[{', '.join(_words(item, 0) for item in arguments)}]"
        case "len":
            return _OPERAND, f"len({_words(arguments[0], 0)})"
        case "not":
            return _NOT, f"not {_words(arguments[0], _NOT)}"
        case "or" | "and" if not arguments:
            return _OPERAND, "true" if head == "and" else "false"
        case "or":
            return _OR, " or ".join(_words(item, _AND) for item in arguments)
        case "and":
            return _AND, " and ".join(_words(item, _NOT) for item in arguments)
        case _:
            sign = "==" if head == "same" else head
            return _COMPARED, f"{_words(arguments[0], _OPERAND)} {sign} {_words(arguments[1], _OPERAND)}"


def _literal(value: Any) -> str:
    return "null" if value is None else quoted(value) if isinstance(value, str) else to_text(value)

"""Templates: texts with references to values, in three syntaxes over one resolver.

    mustache   {{path}}   {{?path}} empty if missing   {{path | default:<json>}}       null counts as missing
    dollar     ${path}    $${x} is the text ${x}   ${a[${i}].x}                        goes into JSON texts
    brace      {path}     {{ and }} are single braces; braces around anything else than a path stay as they are

A template that is one reference and nothing else keeps the value's type. Values are put in once and never read
as templates again. Everything is read when compiled; what is left for each render is lookups.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

from pflow.errors import BindingError
from pflow.lang.path import (
    MISSING,
    MalformedTemplate,
    Path,
    Reference,
    Values,
    getter,
    path_text,
    read_path,
    unresolved,
)
from pflow.model.value import json_text
from pflow.model.workflow import Syntax

Missing = Literal["fail", "keep"]
Lookup: TypeAlias = Callable[[Values], Any]

MAX_DEPTH = 200  # of lists and objects inside each other

# Possessive, so that text which is nearly a reference is passed once and not tried again.
_brace_path = re.compile(
    r"""\{[^\W\d][\w-]*+(?:\.[\w-]++|\[\d++\]|\["[^"\\]*+(?:\\.[^"\\]*+)*+"\]|\['[^'\\]*+(?:\\.[^'\\]*+)*+'\])*+\}""",
    re.DOTALL,
)
_any_brace = re.compile(r"[{}]")
_open_mustache = re.compile(r"\{\{\s*+(\?)?")
_default = re.compile(r"\|\s*+default\s*+:\s*+")
_close_mustache = re.compile(r"\s*+\}\}")


class Template:
    """A compiled text; ``render`` gives its value for the values of a run."""

    __slots__ = ("constant", "references", "render", "text")

    def __init__(self, text: str, references: tuple[Reference, ...], render: Lookup) -> None:
        self.text = text
        self.references = references
        self.constant = not references
        self.render = render


class Bound:
    """A compiled value whose texts are templates, at any depth; ``bind`` gives it with all of them rendered."""

    __slots__ = ("bind", "constant", "references", "value")

    def __init__(self, value: Any, references: tuple[Reference, ...], bind: Lookup) -> None:
        self.value = value
        self.references = references
        self.constant = not references
        self.bind = bind


class _Hole(NamedTuple):
    """A reference in a text; ``fallback`` stands in for what is missing, and MISSING is no fallback."""

    path: Path
    written: str
    fallback: Any = MISSING


_Piece: TypeAlias = str | _Hole


def compile_text(text: str, syntax: Syntax, missing: Missing = "fail") -> Template:
    """Read a text once; ``keep`` leaves a reference that cannot be resolved as it is written."""
    pieces = _merged(_read[syntax](text))
    if missing == "keep":
        pieces = [_kept(piece) for piece in pieces]
    holes = [piece for piece in pieces if isinstance(piece, _Hole)]
    if not holes:
        literal = str(pieces[0]) if pieces else text
        return Template(text, (), lambda values: literal)
    references = tuple(reference for hole in holes for reference in _references(hole))
    if len(pieces) == 1:
        return Template(text, references, _lookup(holes[0], syntax))
    return Template(text, references, _joined(pieces, syntax))


def compile_value(value: Any, syntax: Syntax, missing: Missing = "fail") -> Bound:
    """Read every text in a value once; keys are not templates, and what holds no reference is passed on as it is."""
    references: list[Reference] = []
    constant, bind = _deep(value, syntax, missing, references, 0)
    return Bound(value, tuple(references), bind or (lambda values: constant))


def to_text(value: Any) -> str:
    """A value as it appears inside a text: null is empty, lists and objects are compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if type(value) is int or (isinstance(value, float) and not math.isfinite(value)):
        return repr(value)  # of any size; JSON has no word for the infinite
    return json_text(value)


# Compiling.


def _deep(
    value: Any, syntax: Syntax, missing: Missing, references: list[Reference], depth: int
) -> tuple[Any, Lookup | None]:
    """A value's constant form and, unless that is all there is to it, what binds it."""
    if isinstance(value, str):
        template = compile_text(value, syntax, missing)
        references.extend(template.references)
        return (template.render({}), None) if template.constant else (value, template.render)
    if not isinstance(value, (dict, list)):
        return value, None
    if depth == MAX_DEPTH:
        raise BindingError(f"a value is nested more than {MAX_DEPTH} deep")
    base: Any = value
    dynamic: list[tuple[Any, Lookup]] = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        constant, bind = _deep(item, syntax, missing, references, depth + 1)
        if bind:
            dynamic.append((key, bind))
        elif constant is not item:
            base = value.copy() if base is value else base
            base[key] = constant
    return base, _filled(base, dynamic) if dynamic else None


def _filled(base: Any, dynamic: list[tuple[Any, Lookup]]) -> Lookup:
    """A copy of a list or object with its dynamic items bound."""

    def bind(values: Values) -> Any:
        result = base.copy()
        for key, item in dynamic:
            result[key] = item(values)
        return result

    return bind


def _joined(pieces: list[_Piece], syntax: Syntax) -> Lookup:
    """Text around references."""
    if len(pieces) <= 3 and len([piece for piece in pieces if isinstance(piece, _Hole)]) == 1:
        return _surrounded(pieces, syntax)
    parts = [piece if isinstance(piece, str) else _lookup(piece, syntax) for piece in pieces]

    def render(values: Values) -> str:
        return "".join([part if isinstance(part, str) else to_text(part(values)) for part in parts])

    return render


def _surrounded(pieces: list[_Piece], syntax: Syntax) -> Lookup:
    """Text around one reference, the usual case."""
    at = next(n for n, piece in enumerate(pieces) if isinstance(piece, _Hole))
    before, after = "".join(map(str, pieces[:at])), "".join(map(str, pieces[at + 1 :]))
    look = _lookup(pieces[at], syntax)  # type: ignore[arg-type]  # the hole found above

    def render(values: Values) -> str:
        found = look(values)
        return before + (found if type(found) is str else to_text(found)) + after

    return render


def _lookup(hole: _Hole, syntax: Syntax) -> Lookup:
    """What gives a reference's value: the lookup, then what to do when nothing is there."""
    look = getter(hole.path, syntax == "dollar")
    absent = None if syntax == "mustache" else MISSING  # a second thing that counts as missing

    def get(values: Values) -> Any:
        found = look(values)
        if found is MISSING or found is absent:
            return hole.fallback if hole.fallback is not MISSING else _fail(values, hole, syntax)
        return found

    return get


def _fail(values: Values, hole: _Hole, syntax: Syntax) -> NoReturn:
    if getter(hole.path, syntax == "dollar")(values) is None:
        name = path_text(hole.path)
        raise BindingError(
            f"{hole.written} is null", f"write {{{{?{name}}}}} or {{{{{name} | default:…}}}} to allow it"
        )
    raise unresolved(values, hole.path, hole.written, syntax == "dollar")


def _kept(piece: _Piece) -> _Piece:
    """A reference that stays as it is written when it cannot be resolved."""
    return piece._replace(fallback=piece.written) if isinstance(piece, _Hole) and piece.fallback is MISSING else piece


def _references(hole: _Hole) -> Iterator[Reference]:
    """A hole's reference, and those inside its indexes."""
    strict = hole.fallback is MISSING
    yield Reference(hole.path, hole.written, strict)
    for part in hole.path:
        if isinstance(part, tuple):
            yield from _references(_Hole(part, f"${{{path_text(part)}}}", hole.fallback))


def _merged(pieces: Iterator[_Piece]) -> list[_Piece]:
    """Pieces without empty texts, and with neighbouring texts joined."""
    result: list[_Piece] = []
    literal: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            literal.append(piece)
            continue
        if text := "".join(literal):
            result.append(text)
        literal.clear()
        result.append(piece)
    if text := "".join(literal):
        result.append(text)
    return result


# Reading. Each syntax passes over its text once: a malformed reference ends the reading.


def _read_mustache(text: str) -> Iterator[_Piece]:
    at = 0
    while (start := text.find("{{", at)) >= 0:
        yield text[at:start]
        if text.find("}}", start) < 0:
            raise MalformedTemplate('"{{" is not closed', start)
        opened = _open_mustache.match(text, start)
        path, end = read_path(text, opened.end() if opened else start)
        fallback: Any = "" if opened and opened[1] else MISSING
        if default := _default.match(text, end):
            fallback, end = _json_at(text, default.end())
        closed = _close_mustache.match(text, end)
        if not closed:
            raise MalformedTemplate(
                f'"}}}}" is missing after {path_text(path)[:80]}',
                end,
                "write {{path}}, {{?path}} or {{path | default:<json>}}",
            )
        at = closed.end()
        yield _Hole(path, text[start:at], fallback)
    yield text[at:]


def _read_dollar(text: str) -> Iterator[_Piece]:
    at = 0
    while (start := text.find("${", at)) >= 0:
        if start > at and text[start - 1] == "$":
            yield text[at : start - 1] + "${"
            at = start + 2
            continue
        yield text[at:start]
        path, end = _path_in_dollar(text, start)
        at = end + 1
        yield _Hole(path, text[start:at])
    yield text[at:]


def _path_in_dollar(text: str, start: int) -> tuple[Path, int]:
    literal = "write $${ where ${ is meant as text"
    if text.find("}", start) < 0:
        raise MalformedTemplate('"${" is not closed', start, literal)
    try:
        path, end = read_path(text, start + 2, nested=True)
    except MalformedTemplate as error:
        error.hint = literal
        raise
    if not text.startswith("}", end):
        raise MalformedTemplate(f'"}}" is missing after {path_text(path)[:80]}', end, literal)
    return path, end


def _read_brace(text: str) -> Iterator[_Piece]:
    opened: list[bool] = []  # the literal braces that are open: whether each was written double
    at = 0
    while found := _any_brace.search(text, at):
        start = found.start()
        yield text[at:start]
        if reference := _brace_path.match(text, start):
            at = reference.end()
            path = _path_in_brace(text, start)
            yield _Hole(path, reference.group()) if path else reference.group()
            continue
        if found.group() == "{":
            double = text.startswith("{{", start)
            opened.append(double)
        else:
            double = text.startswith("}}", start) and (opened[-1] if opened else True)
            if opened and opened[-1] == double:
                opened.pop()
        yield found.group()
        at = start + 1 + double
    yield text[at:]


def _path_in_brace(text: str, start: int) -> Path | None:
    """Nothing is malformed in this syntax: an index that no list can have makes it plain text."""
    try:
        return read_path(text, start + 1)[0]
    except MalformedTemplate:
        return None


_read: dict[Syntax, Callable[[str], Iterator[_Piece]]] = {
    "mustache": _read_mustache,
    "dollar": _read_dollar,
    "brace": _read_brace,
}


def _json_at(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that starts at ``start``, and where it ends."""
    from pflow.documents.json_in_text import (
        value_at,  # a template with a default is rare; starting should not pay for it
    )

    try:
        return value_at(text, start)
    except ValueError as error:
        at = getattr(error, "pos", start)
        raise MalformedTemplate("a default is not JSON", at, 'texts are quoted: {{path | default:"text"}}') from None

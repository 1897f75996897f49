"""Grammar: the text form of expressions.

    or       := and ("or" and)*
    and      := not ("and" not)*
    not      := "not"* comparison
    compared := operand (("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not" "in") operand)*
    operand  := path | number | text | true | false | null | "len" "(" or ")" | "[" [or ("," or)*] "]" | "(" or ")"

Everything else is refused with its column. Nothing here is Python's parser, so nothing here can run code.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from pflow.errors import ExpressionError
from pflow.lang.path import Path, is_index, unescaped
from pflow.model.workflow import Expr

MAX_DEPTH = 100  # of an expression, and of brackets inside each other
COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in"})
LITERALS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
ALLOWED = (
    "allowed are names and dotted paths, numbers, quoted texts, true, false, null, lists, "
    "== != < <= > >=, and, or, not, in, len()"
)
INSTEAD = {"=": "==", "&": "and", "|": "or", "!": "not", "is": "=="}
_KEYWORDS = frozenset({"and", "or", "not", "in", *LITERALS})
_LONGEST_NUMBER = 300  # characters: as an integer it still fits a float

_QUOTED = r""""[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+'"""
_token = re.compile(
    rf"""\s*+(?:(?P<number>-?(?:\d++(?:\.\d++)?|\.\d++)(?:[eE][-+]?\d++)?(?![\w.]))
    |(?P<text>{_QUOTED})
    |(?P<path>[^\W\d]\w*+(?:-\w++)*+(?:\.\w++(?:-\w++)*+|\[\d++\]|\[(?:{_QUOTED})\])*+)
    |(?P<sign>==|!=|<=|>=|[<>()\[\],])
    |(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
_part = re.compile(rf"\.?([\w-]++)|\[(\d++)\]|\[({_QUOTED})\]", re.DOTALL)
_unknown = re.compile(r"\s*+(\w++|\S)", re.DOTALL)
_escape = re.compile(r"\\([\\'\"nrt])")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class MalformedExpression(ExpressionError):
    """A text that is no expression; ``offset`` counts characters from its start."""

    def __init__(self, message: str, offset: int, hint: str = ALLOWED) -> None:
        super().__init__(f"{message} in column {offset + 1}", hint)
        self.offset = offset


class _Token(NamedTuple):
    kind: str  # number, text, path, sign, end; a keyword counts as a sign
    text: str
    offset: int


def parse(text: str) -> Expr:
    """Read an expression's text into its plain form."""
    parser = _Parser(_tokens(text))
    result = parser.expression()
    parser.expect("")
    check_depth(result)
    return result


def quoted(text: str) -> str:
    """A text as the grammar writes it."""
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def check_depth(expr: Any) -> None:
    """Refuse an expression that is nested too deeply to walk."""
    level = [expr]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, (list, tuple)) and item and item[0] not in ("value", "path")
            for child in item[1:]
        ]
        if not level:
            return
    raise ExpressionError(f"an expression is nested more than {MAX_DEPTH} deep")


def _tokens(text: str) -> list[_Token]:
    tokens = []
    at = 0
    while True:
        match = _token.match(text, at)
        if match is None:
            raise _unexpected_text(text, at)
        kind, found = match.lastgroup or "", match[match.lastgroup or 0]
        tokens.append(_Token("sign" if found in _KEYWORDS and kind == "path" else kind, found, match.start(kind)))
        if kind == "end":
            return tokens
        at = match.end()


def _unexpected_text(text: str, at: int) -> MalformedExpression:
    unknown = _unknown.match(text, at)
    found, offset = (unknown[1], unknown.start(1)) if unknown else ("", at)
    if found in ('"', "'"):
        return MalformedExpression("a text is not closed", offset)
    return _unexpected(found, offset)


def _unexpected(found: str, offset: int) -> MalformedExpression:
    if not found:
        return MalformedExpression("the expression ends too early", offset)
    instead = f'write "{INSTEAD[found]}" instead; ' if found in INSTEAD else ""
    return MalformedExpression(f'unexpected "{found[:40]}"', offset, instead + ALLOWED)


class _Parser:
    """Reads tokens from left to right, each once."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def take(self, sign: str) -> bool:
        token = self.tokens[self.at]
        found = token.kind in ("sign", "end") and token.text == sign
        self.at += found and token.kind == "sign"
        return found

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            token = self.tokens[self.at]
            raise _unexpected(token.text, token.offset)

    def expression(self) -> Expr:
        choices = []
        while True:
            needs = [self.negation()]
            while self.take("and"):
                needs.append(self.negation())
            choices.append(_joined("and", needs))
            if not self.take("or"):
                return _joined("or", choices)

    def negation(self) -> Expr:
        count = 0
        while self.take("not"):
            count += 1
        result = self.comparison()
        for _ in range(count):
            result = ["not", result]
        return result

    def comparison(self) -> Expr:
        left = self.operand()
        found: list[Expr] = []
        while op := self.operator():
            offset = self.tokens[self.at].offset
            if found and not _is_simple(left):
                # It stands in two comparisons: only what is small may, or chains in chains would grow without bound.
                raise MalformedExpression("the middle of a chain is not a name or value", offset, "join two with and")
            right = self.operand()
            found.append([op, left, right])
            left = right
        return _joined("and", found) if found else left

    def operator(self) -> str:
        token = self.tokens[self.at]
        if token.kind != "sign":
            return ""
        if token.text == "not":
            self.at += 1
            self.expect("in")
            return "not in"
        return token.text if token.text in COMPARISONS and self.take(token.text) else ""

    def operand(self) -> Expr:
        token = self.tokens[self.at]
        self.at += token.kind != "end"
        match token.kind:
            case "number":
                return ["value", _number(token)]
            case "text":
                return ["value", _text(token.text)]
            case "path":
                return self.call(token) if self.take("(") else ["path", *_path(token)]
        if token.text in LITERALS:
            return ["value", LITERALS[token.text]]
        if token.text == "(":
            return self.nested(token, ")")[0]
        if token.text == "[":
            return ["list", *([] if self.take("]") else self.nested(token, "]"))]
        raise _unexpected(token.text, token.offset)

    def call(self, token: _Token) -> Expr:
        if token.text != "len":
            raise MalformedExpression(f'"{token.text[:40]}" cannot be called', token.offset)
        return ["len", *self.nested(token, ")")]

    def nested(self, token: _Token, closing: str) -> list[Expr]:
        """What stands in brackets: one expression, or several in a list."""
        if self.depth == MAX_DEPTH:
            raise MalformedExpression(f"brackets are nested more than {MAX_DEPTH} deep", token.offset)
        self.depth += 1
        items = [self.expression()]
        while closing == "]" and self.take(","):
            items.append(self.expression())
        self.expect(closing)
        self.depth -= 1
        return items


def _joined(word: str, items: list[Expr]) -> Expr:
    return items[0] if len(items) == 1 else [word, *items]


def _is_simple(expr: Expr) -> bool:
    return expr[0] in ("path", "value") or (expr[0] == "len" and expr[1][0] in ("path", "value"))


def _number(token: _Token) -> int | float:
    short = token.text[:_LONGEST_NUMBER]
    number = int(short) if short.lstrip("-").isdigit() else float(short)
    if short != token.text or not math.isfinite(number):
        raise MalformedExpression("a number is too large", token.offset)
    return number


def _text(written: str) -> str:
    return _escape.sub(lambda match: _ESCAPES.get(match[1], match[1]), written[1:-1])


def _path(token: _Token) -> Path:
    parts: list[str | int] = []
    for match in _part.finditer(token.text):
        key, index, text = match.groups()
        if index is not None and not is_index(index):
            raise MalformedExpression("an index is too large", token.offset + match.start())
        parts.append(key if key is not None else int(index) if index is not None else unescaped(text[1:-1]))
    return tuple(parts)

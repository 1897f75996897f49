"""Everything pflow can raise at a caller.

    PflowError
    ├── UsageError             the call itself is wrong: a bad option, an input that does not fit
    ├── WorkflowError          a document cannot be used; carries every Problem found in it
    ├── BindingError           a template or expression asks for something that is not there
    ├── ExpressionError        an expression cannot be evaluated on these values
    ├── NodeError              a node says that it failed (``raise NodeError(...)`` in node code)
    │   └── PurityError        a node that promised to be safe was not
    ├── RunError               a run cannot be opened, driven or read
    │   ├── RunNotFound
    │   ├── RunBusy            another live process drives it
    │   └── JournalError       the journal is damaged or cannot be written
    └── InternalError          a bug of pflow's own

A node's failure is data (``model.run.Failure``), not an exception: these are for callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import msgspec


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """A position in a document, counted from 1; 0 where it is not known."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        numbers = [str(n) for n in (self.line, self.column) if n]
        return ":".join([self.file or "<document>", *numbers])


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing wrong with a document: what, where, and what to do about it."""

    message: str
    place: Place = Place()
    hint: str = ""
    code: str = "invalid"
    node_id: str = ""
    warning: bool = False

    def __str__(self) -> str:
        lead = f"{self.place}: " if self.place.file or self.place.line else ""
        tail = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{lead}{'warning: ' if self.warning else ''}{self.message}{tail}"


class PflowError(Exception):
    """The root: catch this to catch everything pflow raises on purpose."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(PflowError):
    """The call is wrong, not the workflow."""


class WorkflowError(PflowError):
    """A document cannot be used; ``problems`` holds everything that was found, in order of place."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class BindingError(PflowError):
    """A reference leads nowhere; the hint lists what exists instead."""


class ExpressionError(PflowError):
    """An expression cannot be parsed, or not be evaluated on the values at hand."""


class NodeError(PflowError):
    """Raised by node code to fail with a clear message, a kind and a hint."""

    def __init__(self, message: str, hint: str = "", kind: str = "node", details: dict[str, object] | None = None):
        super().__init__(message, hint)
        self.kind = kind
        self.details = details or {}
        self.suggestions: tuple[str, ...] = ()  # steps that may help, from whoever knows better than the hint


class PurityError(NodeError):
    """A node that promised to be safe touched the outside world."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint, kind="purity")


class RunError(PflowError):
    """A run cannot be opened, driven or read."""


class RunNotFound(RunError):
    """No run has this id."""


class RunBusy(RunError):
    """Another live process drives this run."""


class JournalError(RunError):
    """A journal is damaged, or a record could not be written."""


class InternalError(PflowError):
    """A bug in pflow itself, never the user's fault."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """The candidate most like ``name``, or an empty string when none is close."""
    by_fold = {candidate.casefold(): candidate for candidate in candidates}
    matches = get_close_matches(name.casefold(), by_fold, n=1, cutoff=0.6)
    return by_fold[matches[0]] if matches else ""


def suggest(name: str, candidates: Iterable[str], what: str = "available") -> str:
    """A hint in words: the nearest candidate if there is one, and what exists."""
    known = list(candidates)
    close = nearest(name, known)
    shown = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return " ".join(
        part for part in (f'did you mean "{close}"?' if close else "", f"{what}: {shown or 'none'}") if part
    )


def needed(package: str, what: str) -> None:
    """Raise ``NodeError`` where an optional package of the same extra is not installed."""
    from importlib.util import find_spec

    if find_spec(package) is None:
        hint = f"pip install 'pflow[{package}]'"
        raise NodeError(f"{what} needs a package that is not installed", hint, "validation")

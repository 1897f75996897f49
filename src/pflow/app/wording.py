"""Wording: reasons in sentences, and texts that fit a line, the same in every front end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pflow.model.reason import Reason

LONGEST = 2000  # characters of one message

_OFF = {
    "setting": "its cache is off (exec.cache: false)",
    "impure": "only nodes that are @flow_safe are cached by inputs",
    "": "no cache is used",
}


def sentence(reason: Reason | None) -> str:
    """A reason in words; nothing for none."""
    if reason is None:
        return ""
    said = _SENTENCES[reason.kind]
    return said if isinstance(said, str) else said(reason)


def told(data: dict[str, Any]) -> dict[str, Any]:
    """What an event says, with its reason in words beside the reason itself."""
    reason = data.get("reason")
    if not isinstance(reason, Reason):
        return data
    why = {"kind": reason.kind, "names": list(reason.names), "age": reason.age}
    return {**data, "reason": sentence(reason), "why": {key: value for key, value in why.items() if value}}


def ago(seconds: float) -> str:
    """A time that has passed, in words."""
    return f"{_span(seconds)} ago"


def _span(seconds: float) -> str:
    for size, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {word}"
    return f"{max(0, int(seconds))} s"


def shortened(text: str, most: int = LONGEST) -> str:
    """A text that fits a screen, printable: what is cut off is told."""
    text = printable(text)
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} characters more)"


def printable(text: str) -> str:
    """A text without what would move the cursor or change the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)


def one_line(text: str, most: int = 300) -> str:
    """A text on one line."""
    return shortened(" ".join(text.split()), most)


def _changed(what: str) -> Callable[[Reason], str]:
    return lambda reason: f"{what} changed: {', '.join(reason.names)}"


_SENTENCES: dict[str, str | Callable[[Reason], str]] = {
    "guard": lambda reason: f"when: {reason.names[0]} does not hold",
    "settled": lambda reason: (
        f"its attempt {reason.names[0]} was cut off and may have taken effect; it was decided not to repeat it"
    ),
    "when": lambda reason: f"when {reason.names[0]}",
    "label": lambda reason: f"{reason.names[0]} is {reason.names[1]!r}",
    "default": "default",
    "next": "next",
    "end": "end",
    "critical": "critical",
    "optional": "optional: it may fail",
    "error": "on error",
    "stuck": "no way on",
    "cached": lambda reason: f"cached {ago(reason.age or 0.0)}",
    "same-inputs": "same inputs",
    "off": lambda reason: _OFF[reason.names[0] if reason.names else ""],
    "rerun": lambda reason: reason.names[0],
    "new": "no earlier result",
    "failed": "it failed last time",
    "dropped": "dropped",
    "config": _changed("config"),
    "input": _changed("input"),
    "file": _changed("file"),
    "shared": _changed("shared key"),
    "upstream": _changed("upstream"),
    "resolved": "resolved params changed",
    "expired": lambda reason: f"the cached result is {_span(reason.age or 0.0)} old, older than the cache's ttl",
    "fresh": "the workflow has completed since; it judges a world that no param names",
    "gone": lambda reason: f"its file {reason.names[0]} is gone",
    "above": lambda reason: f"upstream would run: {', '.join(reason.names)}",
    "binding": lambda reason: reason.names[0],
    "route": "if the run comes to it",
    "first": "first",
    "pushed": "when it is pushed to, or pulled",
    "pulled": "when it is pulled",
    "portal": "a portal is stepped through",
    "unreached": "no edge leads here",
    "composite": "its own nodes are looked up when it runs",
}

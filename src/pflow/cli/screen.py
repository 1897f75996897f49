"""Where words go: results to stdout, everything else to stderr. Writing never stops a run."""

from __future__ import annotations

import os
import sys
from typing import TextIO

_PLAIN = str.maketrans({"✓": "+", "✗": "x", "ℹ": "i", "⏸": "=", "…": "~", "→": ">", "·": "-", "↻": "@"})
_COLOURS = {"✓": "32", "✗": "31", "ℹ": "36", "⏸": "33"}


def result(text: str | bytes) -> None:
    """Write a result to stdout; a reader that went away is no error, a full disk is."""
    write(sys.stdout, text if isinstance(text, bytes) or text.endswith("\n") else f"{text}\n")


def write(stream: TextIO, text: str | bytes) -> None:
    """Write and flush; raises ``PflowError`` when what was asked for cannot be delivered."""
    try:
        if isinstance(text, bytes):
            stream.flush()
            stream.buffer.write(text)
        else:
            _write_text(stream, text)
        stream.flush()
    except BrokenPipeError:
        silence(stream)
    except OSError as error:
        from pflow.errors import PflowError

        silence(stream)
        raise PflowError(f"the result cannot be written: {error.strerror}") from None


def silence(stream: TextIO) -> None:
    """Send what is still to come nowhere, so that flushing it at exit cannot fail."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # no file behind it
        return


def _write_text(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:  # the terminal's alphabet is smaller than ours
        stream.write(text.encode(stream.encoding, "replace").decode(stream.encoding))


class Screen:
    """Lines for people, on stderr; plain where there is no terminal, or one that wants no colours."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.terminal = self.stream is not None and self.stream.isatty() and os.environ.get("TERM") != "dumb"
        self.colours = self.terminal and not os.environ.get("NO_COLOR")
        self._narrow = not _can_write(self.stream, "✓…")

    def say(self, text: str) -> None:
        """Write a line, whole or not at all."""
        self.put(f"{self.dressed(text)}\n")

    def put(self, text: str) -> None:
        """Write as it is."""
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError, AttributeError):  # gone, closed, or never there: a run goes on without readers
            return

    def dressed(self, text: str) -> str:
        """A line in the colour of its mark, in letters that the terminal has."""
        if self._narrow:
            text = text.translate(_PLAIN)
        colour = _COLOURS.get(text[:1]) if self.colours else None
        return f"\x1b[{colour}m{text[0]}\x1b[0m{text[1:]}" if colour else text


def _can_write(stream: TextIO | None, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def lasted(ms: float) -> str:
    """A duration for people: 12ms, 3.1s, 2m 05s, 3h 20m."""
    seconds = ms / 1000
    if ms < 999.5:
        return f"{ms:.0f}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"

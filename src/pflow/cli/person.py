"""The person at the terminal: asked questions and doubts on stderr, answers typed there.

The terminal is read by the event loop as lines come in, so the run goes on meanwhile and Ctrl-C works.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from pflow.app.wording import shortened
from pflow.cli.progress import Progress
from pflow.model.records import Asked, Decision
from pflow.model.typed import choice_of
from pflow.model.visit import short

_YES = ("yes", "y", "true", "ok")
_DECISIONS: dict[str, Decision] = {
    "r": "retry", "retry": "retry", "s": "skip", "skip": "skip", "f": "fail", "fail": "fail",
}  # fmt: skip
_LATER = "Ctrl-D: not now; the run pauses"


class Typed:
    """The lines of stdin, whatever is behind it; read by the event loop, so that the run goes on meanwhile."""

    def __init__(self) -> None:
        self._read = b""
        self._ended = False

    async def line(self) -> str | None:
        """The next line, or None at the end."""
        while b"\n" not in self._read and not self._ended:
            data = await _some(sys.stdin.fileno())
            self._read += data
            self._ended = not data
        if not self._read:
            return None
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(errors="replace").removesuffix("\r")


async def _some(fd: int) -> bytes:
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    try:
        loop.add_reader(fd, _wake, readable)
    except PermissionError:  # a regular file: it never keeps anybody waiting
        return os.read(fd, 1 << 16)
    try:
        await readable
    finally:
        loop.remove_reader(fd)
    return os.read(fd, 1 << 16)


def _wake(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


class Person:
    """Whoever sits at the terminal, if anybody does."""

    def __init__(self, lines: Progress, present: bool, yes: bool) -> None:
        self.present = present
        self._lines = lines
        self._yes = yes  # yes-or-no questions need not be asked
        self._typed = Typed()

    async def answer(self, asked: Asked) -> Any:
        """The answer to a node's question, or None for "not now"."""
        agreed = next((choice for choice in asked.choices if choice.lower() in _YES), None)
        if self._yes and agreed is not None:
            return agreed
        if not self.present:
            return None
        with self._lines.paused():
            self._lines.screen.say(f"\nNode '{short(asked.visit)}' asks: {shortened(asked.question)}")
            for number, choice in enumerate(asked.choices, 1):
                self._lines.screen.say(f"  {number}. {shortened(choice, 200)}")
            return await self._chosen(asked.choices)

    async def _chosen(self, choices: tuple[str, ...]) -> str | None:
        prompt = f"your answer, 1–{len(choices)} ({_LATER}): " if choices else f"your answer ({_LATER}): "
        while True:
            text = await self._line(prompt)
            if not text or not choices:  # nothing at all may mean the node's default
                return text
            made = choice_of(text, choices)
            if made is not None:
                return made
            self._lines.screen.say(f"that is none of: {', '.join(choices)}")

    async def decide(self, visit: str, attempt: int) -> Decision | None:
        """What to do about a node that may have taken effect, or None for "not now"."""
        with self._lines.paused():
            when = f"in attempt {attempt}" if attempt else "in an earlier run"
            self._lines.screen.say(
                f"\nNode '{short(visit)}' was cut off {when}, and it may have taken effect.\n"
                "  retry: run it again   skip: take it as done   fail: count it as failed"
            )
            while True:
                text = await self._line(f"retry, skip or fail? ({_LATER}): ")
                if text is None or text.strip().lower() in _DECISIONS:
                    return None if text is None else _DECISIONS[text.strip().lower()]

    async def _line(self, prompt: str) -> str | None:
        """A line from the terminal, or None at its end."""
        self._lines.screen.put(prompt)
        line = await self._typed.line()
        if line is None:
            self._lines.screen.put("\n")
        return line

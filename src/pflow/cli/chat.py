"""A graph on the command line is a chat: answers are streamed to stdout, and the user's lines are what it waits for.

On a terminal a line that ends in a backslash goes on, and a line of three double quotes begins or ends a text of
several lines. Without a terminal, the lines of stdin answer in turn; when they run out, the run pauses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TextIO

from pflow.app.session import Session
from pflow.app.wording import one_line
from pflow.cli.person import Typed
from pflow.cli.progress import Progress
from pflow.cli.screen import write
from pflow.model.event import Envelope
from pflow.model.records import Asked

BLOCK = '"""'
PROMPT, MORE = "you> ", "...> "
_COMMANDS = {
    "/stop": "leave the chat; the run can be resumed",
    "/context": "show the conversation",
    "/model": "/model NAME: go on with another model",
    "/help": "this list",
}


class Chat:
    """The conversation of one run."""

    def __init__(self, lines: Progress, out: TextIO, silent: bool) -> None:
        self.terminal = sys.stdin is not None and sys.stdin.isatty() and lines.screen.stream.isatty()
        self.spoken = False  # something was said on stdout
        self._lines = lines
        self._out = None if silent else out
        self._typed = Typed()
        self._open = False  # a line was begun and not ended
        self._doing: dict[str, Callable[[Session, str], None]] = {
            "/stop": lambda session, _: session.interrupt(),
            "/context": self._show,
            "/model": self._change,
            "/help": lambda session, _: self._say("\n".join(f"  {name:10}{what}" for name, what in _COMMANDS.items())),
        }

    # ── what is said ──

    def __call__(self, envelope: Envelope) -> None:
        """Take in an event: pieces of answers are shown as they come."""
        kind, data = envelope.event.type, envelope.event.data
        if kind == "conversation:chunk":
            self._put(str(data.get("text", "")))
        elif kind in ("task:complete", "task:failed", "ask"):
            self._end_line()
        elif kind == "agent:tool:start" and self.terminal:
            self._end_line()
            self._say(f"  ⚙ {data.get('tool')} {one_line(str(data.get('arguments', '')))}")

    def _put(self, text: str) -> None:
        if self._out is not None and text:
            write(self._out, text)
            self.spoken = True
            self._open = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._open and self._out is not None:
            write(self._out, "\n")
            self._open = False

    def _say(self, text: str) -> None:
        self._lines.screen.say(text)

    # ── what is heard ──

    async def answer(self, asked: Asked) -> Any:
        """What the user says next, or None when there is nothing more."""
        session = self._lines.session
        assert session is not None
        while True:
            said = await (self._typed_text(asked) if self.terminal else self._typed.line())
            word, _, rest = (said or "").strip().partition(" ")
            if said is None or word not in self._doing:
                return said
            self._doing[word](session, rest.strip())
            if session.leaving:
                return None

    async def _typed_text(self, asked: Asked) -> str | None:
        """A text from the terminal, of one line or of several."""
        self._end_line()
        prompt = f"{one_line(asked.question)} " if asked.question else PROMPT
        kept: list[str] = []
        block = False
        while True:
            self._lines.screen.put(MORE if kept or block else prompt)
            line = await self._typed.line()
            if line is None:
                self._lines.screen.put("\n")
                return "\n".join(kept) if kept else None
            if line.strip() == BLOCK:
                if block:
                    return "\n".join(kept)
                block = True
            elif block:
                kept.append(line)
            elif line.endswith("\\"):
                kept.append(line[:-1])
            elif kept or line.strip():
                return "\n".join([*kept, line])

    # ── commands ──

    def _show(self, session: Session, _: str) -> None:
        if not session.contexts:
            self._say("there is no conversation yet")
        for context in session.contexts:
            model = f", {context.model}" if context.model else ""
            self._say(f"{context.context_type} context {context.context_id}{model}: {len(context)} messages")
            for message in context.message_history:
                pinned = " (pinned)" if message.pinned else ""
                self._say(f"  {message.role}{pinned}: {one_line(message.content)}")

    def _change(self, session: Session, name: str) -> None:
        if not name:
            self._say("which one? /model NAME")
            return
        session.follow(name)
        self._say(f"the conversation goes on with {name}")

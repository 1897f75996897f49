"""Driving a run from the command line: its display, the person at the terminal, signals, the limit on its time."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pflow.app import Result
from pflow.app.problems import error_view, problems_of
from pflow.app.session import Session
from pflow.cli.errors import failed_view, print_json, told
from pflow.cli.line import Line
from pflow.cli.person import Person
from pflow.cli.progress import QUIET, VERBOSE, Progress
from pflow.cli.report import report
from pflow.cli.screen import Screen, write
from pflow.errors import PflowError, UsageError
from pflow.model.event import Envelope
from pflow.model.value import json_text, plain

if TYPE_CHECKING:
    from pflow.cli.chat import Chat

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130


class Drive:
    """One run in the hands of the command line."""

    def __init__(self, line: Line, chat: bool = False) -> None:
        self.line = line
        self.screen = Screen()
        self._chat = chat
        self.chat: Chat | None = None  # the conversation, for a graph
        talking = chat and sys.stdin is not None and sys.stdin.isatty() and line.level < VERBOSE
        self.lines = Progress(self.screen, QUIET) if talking else _lines(self.screen, line.level)
        self.session: Session | None = None
        self._timeout = line.number("timeout")
        self._events: Events | None = None
        self._hits = 0
        self._why = ""  # why the run was cancelled here

    def complete(
        self, start: Callable[[dict[str, Any]], Awaitable[Result]], look: Callable[[], Session] | None = None
    ) -> int:
        """Drive a run as far as it goes and report; ``look`` finds the run when there was nothing to drive."""
        if not gc.isenabled():  # what starting made stays
            gc.freeze()
            gc.enable()
        try:
            result = _finish(self._drive(start))
        except PflowError as error:
            if self.session is None:
                raise
            return self._broke(self.session, error)
        session = self.session or (look() if look is not None else None)
        assert session is not None
        return report(result, session, self.line, self.lines, self._why, self.chat is not None and self.chat.spoken)

    def _broke(self, session: Session, error: PflowError) -> int:
        """Something of the engine's own went wrong while it ran; what was recorded until then is kept."""
        told(self.screen, error)
        self.lines.say(f"  next: pflow resume {session.run_id}", QUIET)
        if self.line.json:
            view = failed_view([error_view(problem) for problem in problems_of(error)])
            print_json(view | {"run_id": session.run_id})
        return 1

    async def _drive(self, start: Callable[[dict[str, Any]], Awaitable[Result]]) -> Result:
        target = self.line.value("events")
        self._events = None if target is None else Events(target)
        loop = asyncio.get_running_loop()
        caught = _catchable()
        for number in caught:
            loop.add_signal_handler(number, self._hit)
        aside: Any = self.lines.aside()
        try:
            # What node code prints is not the result, so it goes where everything else goes.
            with contextlib.redirect_stdout(aside), contextlib.redirect_stderr(aside):
                return await start(self._options())
        finally:
            self.lines.close()
            if self._events is not None:
                self._events.close()
            for number in caught:
                loop.remove_signal_handler(number)

    def _options(self) -> dict[str, Any]:
        present = sys.stdin is not None and sys.stdin.isatty() and self.screen.stream.isatty()
        present = present and not self.line.has("print")
        person = Person(self.lines, present, self.line.has("yes"))
        sinks: list[Callable[[Envelope], None]] = [self.lines]
        if self._chat:
            from pflow.cli.chat import Chat

            silent = self.line.json or self.line.value("events") == "-"
            self.chat = Chat(self.lines, sys.__stdout__ or sys.stdout, silent)
            sinks.insert(0, self.chat)
        if self._events is not None:
            sinks.append(self._events)
        return {
            "on_event": lambda envelope: _tell(sinks, envelope),
            "on_doubt": self.line.value("on-doubt"),
            "answer": self.chat.answer if self.chat else person.answer if present or self.line.has("yes") else None,
            "decide": person.decide if person.present else None,
            "started": self._started,
        }

    def _started(self, session: Session) -> None:
        self.session = self.lines.session = session
        if self._timeout is not None:
            asyncio.get_running_loop().call_later(self._timeout, self._time_out, session)

    def _time_out(self, session: Session) -> None:
        self._why = f"it took longer than {self._timeout:g} s"
        session.cancel(self._why)

    def _hit(self) -> None:
        """Ctrl-C: the first stops cleanly, the second now."""
        self._hits += 1
        if self._hits == 1 and self.session is not None:
            self.lines.say("\nstopping… (once more to stop now)", QUIET)
            self.session.interrupt()
            return
        self.lines.close()
        _kill_children()
        kept = (
            f"What completed is kept.\n  next: pflow resume {self.session.run_id}"
            if self.session
            else "Nothing was run."
        )
        self.screen.say(f"⏸ Stopped. {kept}")
        os._exit(INTERRUPTED)


def _tell(sinks: list[Callable[[Envelope], None]], envelope: Envelope) -> None:
    for sink in sinks:
        sink(envelope)


def _finish(work: Awaitable[Result]) -> Result:
    """``asyncio.run``, which would wait for threads of node code whose work nobody wants any more."""
    loop = asyncio.new_event_loop()
    try:
        result: Result = loop.run_until_complete(work)
        return result
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _lines(screen: Screen, level: int) -> Progress:
    if level > QUIET and screen.terminal:
        from pflow.cli.live import LiveProgress

        return LiveProgress(screen, level)
    return Progress(screen, level)


def _catchable() -> list[signal.Signals]:
    """Signals that are ours to catch: those that nobody made this process ignore, as nohup does."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _kill_children() -> None:
    """Kill the process groups of our children, as far as the system tells who they are."""
    with contextlib.suppress(OSError, ValueError):
        for listing in Path("/proc/self/task").glob("*/children"):
            for pid in map(int, listing.read_text().split()):
                with contextlib.suppress(OSError):
                    os.killpg(pid, signal.SIGKILL)


class Events:
    """Writes every event as a line of JSON."""

    def __init__(self, target: str) -> None:
        self._own = target != "-"
        try:
            self._stream: TextIO = open(target, "w", encoding="utf-8", opener=_private) if self._own else sys.stdout  # noqa: SIM115 - closed with the run
        except OSError as error:
            raise UsageError(f"--events: {target} cannot be written: {error.strerror}") from None

    def __call__(self, envelope: Envelope) -> None:
        """Write an event; what cannot be written must not stop the run: this is a view, the journal is the truth."""
        view = envelope.to_dict()
        view["event"]["type"] = envelope.event.type  # whatever else is called so in its data
        with contextlib.suppress(PflowError, ValueError):
            write(self._stream, json_text(plain(view)) + "\n")

    def close(self) -> None:
        """Close the file; stdout stays open."""
        if self._own:
            self._stream.close()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)  # events show values

"""The feed in plain lines: one for each thing that a person wants to know of a run while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from pflow.app.session import Session
from pflow.app.story import cost_of
from pflow.app.wording import ago, one_line
from pflow.cli.screen import Screen, lasted
from pflow.model.event import Envelope
from pflow.model.visit import is_nested, short

QUIET, NORMAL, VERBOSE = range(3)

# Why a node is executed although an earlier run did it.
_MISSES = {"config": "config changed, re-executing...", "upstream": "invalidated (upstream changed)"}
_OLD = 60  # seconds
_UNREMARKABLE = ("new", "failed", "dropped", "off")


class Working:
    """A node at work, as far as its events tell."""

    __slots__ = ("attempt", "done", "limit", "name", "since", "total")

    def __init__(self, name: str) -> None:
        self.name = name
        self.since = monotonic()
        self.attempt = 1
        self.limit = 1
        self.done: float | None = None
        self.total: float | None = None


class Progress:
    """Subscribes to a run's feed and says what happens, line by line."""

    def __init__(self, screen: Screen, level: int) -> None:
        self.screen = screen
        self.level = level
        self.session: Session | None = None
        self.working: dict[str, Working] = {}  # by task
        self.ended = 0  # nodes of the workflow itself
        self.cost = 0.0
        self._meaning: dict[str, Callable[[dict[str, Any]], None]] = {
            "task:start": self._started,
            "task:complete": self._completed,
            "task:skipped": self._skipped,
            "task:failed": self._failed,
            "task:retry": self._retried,
            "task:progress": self._progressed,
            "task:doubt": self._doubted,
            "usage": self._used,
            "log": self._logged,
        }

    def __call__(self, envelope: Envelope) -> None:
        """Take in an event."""
        meaning = self._meaning.get(envelope.event.type)
        if meaning is not None:
            try:
                meaning(envelope.event.data)
            except (KeyError, TypeError, ValueError):  # node code may publish what it likes under any name
                return

    def say(self, text: str, level: int = NORMAL) -> None:
        """Say a line, if so much is to be said."""
        if level <= self.level:
            self.screen.say(text)

    def close(self) -> None:
        """Nothing more will be said while the run goes on."""

    def aside(self) -> Any:
        """A stream for what node code prints."""
        return self.screen.stream

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to somebody else for a while."""
        yield

    # ── events ──

    def _started(self, data: dict[str, Any]) -> None:
        one = self.working[data["taskId"]] = Working(_name(data))
        if self.session is not None:
            one.attempt = one.limit = self.session.attempts(data["visit"])[0]
        if why := data.get("why"):
            kind, names = why["kind"], ", ".join(why.get("names", ()))
            level = VERBOSE if kind in _UNREMARKABLE else NORMAL
            known = f"{_MISSES[kind]} ({one_line(names)})" if kind in _MISSES else _again(data)
            self.say(f"ℹ Node '{one.name}' {known}", level)
        self.say(f"ℹ Node '{one.name}' started ({data['nodeType']})", VERBOSE)

    def _completed(self, data: dict[str, Any]) -> None:
        self._end(data)
        took = lasted(data.get("durationMs", 0))
        age = data.get("why", {}).get("age", 0.0)
        old = f" · from {ago(age)}" if age >= _OLD else ""  # the world may have moved on
        self.say(f"✓ Node '{_name(data)}' completed ({'cached, ' if data.get('cached') else ''}{took}){old}")

    def _skipped(self, data: dict[str, Any]) -> None:
        self._end(data)
        reason = data.get("reason")
        self.say(f"ℹ Node '{_name(data)}' skipped" + (f" ({one_line(reason)})" if reason else ""))

    def _failed(self, data: dict[str, Any]) -> None:
        known = self._end(data)
        if data.get("status") == "cancelled":
            self.say(f"ℹ Node '{_name(data)}' cancelled")
            return
        attempt = data.get("attempts", 0)
        limit = max(attempt, known.limit if known else 1)
        tried = f" (attempt {attempt}/{limit})" if attempt else ""
        self.say(f"✗ Node '{_name(data)}' failed{tried}: {_message(data)}")

    def _retried(self, data: dict[str, Any]) -> None:
        attempt = data["attempt"]
        before = self.session.attempts(data["visit"])[1] if self.session is not None else 0
        limit = max(attempt + 1, before + data["maxAttempts"])
        one = self.working.get(data["taskId"])
        if one is not None:
            one.attempt, one.limit = attempt + 1, limit
        again = f"; again in {lasted(data['delay'] * 1000)}" if data["delay"] else ""
        self.say(f"✗ Node '{_name(data)}' failed (attempt {attempt}/{limit}): {_message(data)}{again}")

    def _progressed(self, data: dict[str, Any]) -> None:
        one = self.working.get(data["taskId"])
        if one is not None:
            one.done, one.total = data.get("done"), data.get("total")

    def _doubted(self, data: dict[str, Any]) -> None:
        name = short(data["visit"])
        self.say(f"ℹ Node '{name}' was cut off in attempt {data['attempt']} and may have taken effect")

    def _used(self, data: dict[str, Any]) -> None:
        self.cost += cost_of(data)

    def _logged(self, data: dict[str, Any]) -> None:
        level = NORMAL if data.get("level") in ("warn", "error") else VERBOSE
        mark = "✗" if data.get("level") == "error" else "ℹ"
        self.say(f"{mark} Node '{_name(data)}' says: {one_line(str(data.get('message', '')), 1000)}", level)

    def _end(self, data: dict[str, Any]) -> Working | None:
        self.ended += not is_nested(data["visit"])
        return self.working.pop(data["taskId"], None)


def _name(data: dict[str, Any]) -> str:
    return str(data["taskId"]).removeprefix("node:")


def _again(data: dict[str, Any]) -> str:
    return f"{one_line(str(data.get('reason', '')))}, re-executing..."


def _message(data: dict[str, Any]) -> str:
    return one_line(str(data.get("error", {}).get("message", "")) or "no reason was given")

"""Purity: ``@flow_safe`` is a promise that is checked before it is believed.

A safe node of a stranger runs under a guard: Python's audit events tell what it touches, and whatever would reach
outside raises ``PurityError``. Its verdict (two equal answers, nothing touched) is remembered by type, version and
digest of its source, so an edit is checked again.
"""

from __future__ import annotations

import _thread
import asyncio
import inspect
import os
import sys
import threading
import typing
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

import msgspec

from pflow.errors import PurityError
from pflow.model.value import canonical, digest, plain
from pflow.storage.files import home as default_home
from pflow.storage.files import read_json, write_json

Standing = Literal["", "pure", "impure", "accepted"]
FILE = "types.json"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = {
    "socket.": "opens a socket",
    "subprocess.": "starts a process",
    "os.system": "starts a process",
    "os.exec": "starts a process",
    "os.fork": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.spawn": "starts a process",
    "os.startfile": "starts a process",
    "pty.": "starts a process",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.mkdir": "makes a folder",
    "os.rmdir": "removes a folder",
    "os.link": "makes a link",
    "os.symlink": "makes a link",
    "os.truncate": "changes a file",
    "os.chmod": "changes a file",
    "os.chown": "changes a file",
    "os.utime": "changes a file",
    "os.setxattr": "changes a file",
    "os.kill": "sends a signal",
    "os.putenv": "changes the environment",
    "os.unsetenv": "changes the environment",
    "shutil.": "changes files",
    "tempfile.": "makes a file",
    "sqlite3.": "opens a database",
    "ctypes.dlopen": "loads a library",
    "_thread.start_new_thread": "starts a thread",
    "webbrowser.": "opens a browser",
}
_watched: ContextVar[list[str] | None] = ContextVar("watched", default=None)
_installed = False


# ── the guard ──


def watch(function: Callable[..., Any], *args: Any, **params: Any) -> Any:
    """Call a sync function under the guard."""
    seen = _begin()
    made = function(*args, **params)
    return _end(seen, made)


async def watch_async(work: Awaitable[Any]) -> Any:
    """Await something under the guard; to be run in a context of its own."""
    seen = _begin()
    return _end(seen, await work)


def _tell_of_threads() -> None:
    start = _thread.start_new_thread

    def told(*args: Any, **kwargs: Any) -> int:
        sys.audit("_thread.start_new_thread", *args[:1])
        return start(*args, **kwargs)

    setattr(threading, "_start_new_thread", told)  # noqa: B010 - what `threading` itself calls
    _thread.start_new_thread = told


def _begin() -> list[str]:
    global _installed
    if not _installed:
        sys.addaudithook(_audit)  # stays for the life of the process, and does nothing where nobody is watched
        if sys.version_info < (3, 12):  # which tells nobody that a thread starts
            _tell_of_threads()
        _installed = True
    seen: list[str] = []
    _watched.set(seen)
    return seen


def _end(seen: list[str], made: Any) -> Any:
    _watched.set(None)
    if seen:  # it was told, and went on all the same
        raise PurityError(f"a node that promised to be safe {seen[0]}", _HINT)
    return made


_HINT = "remove @flow_safe, or what it does to the world outside"


def _audit(event: str, args: tuple[Any, ...]) -> None:
    seen = _watched.get()
    if seen is None:
        return
    what = _breach(event, args)
    if what:
        seen.append(what)
        raise PurityError(f"a node that promised to be safe {what}", _HINT)


def _breach(event: str, args: tuple[Any, ...]) -> str:
    if event == "open":
        return _breach_by_open(*args)
    for start, what in _EVENTS.items():
        if event.startswith(start):
            return f"{what} ({event})"
    return ""


def _breach_by_open(path: Any, mode: Any, flags: Any) -> str:
    writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & _WRITING)
    if not writes or isinstance(path, int) or "__pycache__" in os.fsdecode(path):  # the last: Python's own, on import
        return ""
    return f"writes the file {os.fsdecode(path)}"


# ── verifying ──


class Verdict(msgspec.Struct, frozen=True):
    """Whether a type keeps its promise, and why not."""

    pure: bool
    reason: str = ""


async def verify(kind: Any, examples: list[dict[str, Any]]) -> Verdict:
    """Run a type twice on each example, watched."""
    for example in examples:
        answers = []
        for _ in range(2):
            try:
                answers.append(canonical(plain(await _call(kind, example))))
            except PurityError as error:
                return Verdict(False, error.message.removeprefix("a node that promised to be safe "))
            except Exception as error:  # noqa: BLE001 - node code: an error is an answer, too
                answers.append(f"{type(error).__name__}: {error}".encode())
        if answers[0] != answers[1]:
            return Verdict(False, f"answers differently when asked twice (on {example})")
    return Verdict(True)


async def _call(kind: Any, example: dict[str, Any]) -> Any:
    params = kind.convert(dict(example))
    if kind.is_async:
        return await asyncio.create_task(watch_async(kind.call(**params)))
    return await asyncio.to_thread(watch, kind.call, **params)


def examples_for(kind: Any) -> list[dict[str, Any]]:
    """The declared examples, or some made from the annotations."""
    declared = list(kind.declared.examples)
    if declared:
        return declared
    texts, numbers = ["", "a b", "Zürich"], [0, 1, 7]
    made = []
    for i in range(3):
        made.append({name: _sample(param.annotation, texts[i], numbers[i]) for name, param in kind.params.items()})
    return made if kind.params else [{}]


def _sample(annotation: Any, text: str, number: int) -> Any:
    origin = typing.get_origin(annotation) or annotation
    by_type: dict[Any, Any] = {str: text, int: number, float: number / 2, bool: number % 2 == 1, bytes: text.encode()}
    if origin in by_type:
        return by_type[origin]
    if origin in (list, tuple, set):
        return [text, text]
    if origin is dict:
        return {"key": text}
    arguments = typing.get_args(annotation)
    return _sample(arguments[0], text, number) if arguments else text


# ── remembering ──


def source_digest(target: Any) -> str:
    """The digest of a type's source, with the whole file it is in: helpers there are a part of it."""
    try:
        file = inspect.getsourcefile(target)
    except TypeError:
        file = None
    text = Path(file).read_text(encoding="utf-8", errors="replace") if file and os.path.exists(file) else repr(target)
    return digest(text)


class Known(msgspec.Struct, frozen=True):
    """What is known about one type."""

    version: str
    source: str
    standing: Standing
    reason: str = ""


class Standings:
    """Verdicts about types, and types that their user accepted, in the home folder."""

    def __init__(self, home: Path | None = None) -> None:
        self._path = (home or default_home()) / FILE
        self._known: dict[str, Known] | None = None

    def of(self, kind: Any) -> Known | None:
        """What is known about a type as it is now; an edit makes it unknown."""
        known = self._load().get(kind.name)
        if known is None or known.version != kind.version or known.source != kind.source:
            return None
        return known

    def set(self, kind: Any, standing: Standing, reason: str = "") -> None:
        """Remember something about a type."""
        self._known = None
        known = {**self._load(), kind.name: Known(kind.version, kind.source, standing, reason)}
        write_json(self._path, msgspec.to_builtins(known))
        self._known = known

    def _load(self) -> dict[str, Known]:
        if self._known is None:
            try:
                self._known = msgspec.convert(read_json(self._path), dict[str, Known])
            except (OSError, ValueError):
                self._known = {}  # not there, or damaged: types are checked again
        return self._known

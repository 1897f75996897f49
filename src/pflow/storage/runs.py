"""Runs on disk: their ids, their folders, and how to find one again.

Most runs live in ``<home>/runs/<id>``. A run elsewhere (``.dotrunner/sessions/<id>``) is found through an
index in the home folder.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path, PurePath

import msgspec

from pflow.errors import RunError, RunNotFound, UsageError, suggest
from pflow.storage import blobs, inbox, lease
from pflow.storage.files import home as default_home
from pflow.storage.files import open_private, private_folder, safe_name, write_all, write_atomic

_STAMP = re.compile(r"_(\d{8}_\d{6})_[0-9a-f]{8}$")
_SLUG = 40
_LONGEST = 200


class RunFolder:
    """A run's folder and the names of what is in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.name
        self.journal = path / "trace.jsonl"
        self.state = path / "state.json"
        self.context = path / "context.json"
        self.metadata = path / "metadata.json"
        self.nodes = path / "nodes"
        self.documents = path / "documents"
        self.blobs = path / blobs.FOLDER
        self.inbox = path / inbox.FOLDER
        self.lease = path / lease.FILE

    def save_document(self, name: str, data: bytes, main: bool = False) -> str:
        """Keep a document as it was run; returns its file name, relative to the folder."""
        base = PurePath(name)
        # The suffix is put behind a letter: a leading dot would be escaped.
        kept = safe_name(f"workflow{base.suffix or '.txt'}") if main else self._numbered(base.name)
        write_atomic(self.path / kept, data)
        return kept

    def copy_document(self, source: RunFolder, name: str) -> Path:
        """Take over a document of another run, under the same name."""
        write_atomic(self.path / name, (source.path / name).read_bytes())
        return self.path / name

    def _numbered(self, base: str) -> str:
        count = len(list(self.documents.glob("[0-9]*"))) if self.documents.is_dir() else 0
        return f"{self.documents.name}/{count + 1}-{safe_name(base)}"


class _Entry(msgspec.Struct):
    run_id: str
    path: str


def new_id(workflow_name: str, now: float) -> str:
    """A fresh run id: what runs, when it started (UTC), and enough chance to be unique."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", workflow_name)[:_SLUG].strip("-_")
    return f"{slug or 'workflow'}_{_stamp(now)}_{os.urandom(4).hex()}"


def check_id(run_id: str) -> str:
    """The id itself, if it can be the name of a folder and of nothing else; else UsageError."""
    unsafe = not run_id.isprintable() or any(mark in run_id for mark in ("/", "\\", ".."))
    if not run_id or unsafe or run_id.startswith(".") or len(run_id.encode()) > _LONGEST:
        hint = "an id is the name of a run's folder, without its path; `pflow runs` lists them"
        raise UsageError(f"{run_id!r} is not a run id", hint)
    return run_id


def create(root: Path, run_id: str) -> RunFolder:
    """Make the folder of a new run below ``root``."""
    path = private_folder(root) / check_id(run_id)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        raise RunError(f"run {run_id} exists already: {path}", "resume it, or choose another id") from None
    os.chmod(path, 0o700)
    return RunFolder(path)


def register(run_id: str, folder: Path, home: Path | None = None) -> None:
    """Note in the index where a run is that lives outside the home folder."""
    entry = _Entry(check_id(run_id), str(folder.absolute()))
    index = _index_path(private_folder(home or default_home()))
    # One small write to a file opened for appending: lines of concurrent processes do not mix.
    fd = open_private(index, os.O_WRONLY | os.O_APPEND)
    try:
        write_all(fd, msgspec.json.encode(entry) + b"\n")
    finally:
        os.close(fd)


def find(run_id: str, home: Path | None = None) -> Path:
    """The folder of a run, by its id or by the start of it, when only one run starts so."""
    root = home or default_home()
    direct = root / "runs" / check_id(run_id)
    if direct.is_dir():
        return direct
    known = _known(root)
    if run_id in known:
        return known[run_id]
    return known[_completed(run_id, list(known))]


def list_runs(home: Path | None = None) -> list[Path]:
    """The folders of all runs that still exist, newest first."""
    return list(_known(home or default_home()).values())


def _completed(start: str, ids: list[str]) -> str:
    """The only id with this start."""
    matches = [name for name in ids if name.startswith(start)]
    if len(matches) > 1:
        raise UsageError(f"{start!r} is the start of {len(matches)} run ids", f"one of: {', '.join(matches)}")
    if not matches:
        raise RunNotFound(f"no run {start!r}", suggest(start, ids, "recent runs"))
    return matches[0]


def _known(home: Path) -> dict[str, Path]:
    """Every run that still exists by its id, newest first."""
    found = {run_id: path for run_id, path in (_indexed(home) | _direct(home)).items() if path.is_dir()}
    return dict(sorted(found.items(), key=_started, reverse=True))


def _started(run: tuple[str, Path]) -> tuple[str, int, str]:
    """When a run began, to sort by: the time in its id, else that of its folder."""
    run_id, path = run
    try:
        modified = path.stat().st_mtime_ns
    except FileNotFoundError:  # removed since it was listed
        modified = 0
    stamp = _STAMP.search(run_id)
    return (stamp[1] if stamp else _stamp(modified / 1e9), modified, run_id)


def _stamp(seconds: float) -> str:
    return time.strftime("%Y%m%d_%H%M%S", time.gmtime(seconds))


def _index_path(home: Path) -> Path:
    return home / "index.jsonl"  # not in runs/, where only run folders stand


def _direct(home: Path) -> dict[str, Path]:
    runs = home / "runs"
    return {path.name: path for path in runs.iterdir() if path.name[0] != "."} if runs.is_dir() else {}


def _indexed(home: Path) -> dict[str, Path]:
    """Where the index says that runs are; a later entry wins, a damaged line is passed over."""
    try:
        lines = _index_path(home).read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    entries = [entry for line in lines if (entry := _entry(line))]
    return {entry.run_id: Path(entry.path) for entry in entries}


def _entry(line: bytes) -> _Entry | None:
    try:
        return msgspec.json.decode(line, type=_Entry)
    except ValueError:
        return None

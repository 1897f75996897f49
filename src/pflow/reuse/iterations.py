"""The iterations of one workflow file: its store, and what is known of its nodes.

<home>/cache/workflow-iterations/<hash of the path>/
    metadata.json        the workflow, and how each node fared last
    <node>.json          the newest entry of a node
    entries/             all entries, by visit and key
    blobs/               outputs too large for an entry
    claims/              who is at which visit right now
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

from pflow.model.visit import terse
from pflow.reuse.claims import Claims
from pflow.reuse.store import Entry, Store, remove
from pflow.storage.files import home as default_home
from pflow.storage.files import read_object, safe_name, write_json

ROOT = Path("cache") / "workflow-iterations"
METADATA = "metadata.json"
KEPT = 8  # entries of one visit


def folder_of(workflow: Path, home: Path | None = None) -> Path:
    """The folder of a workflow file's cache."""
    name = hashlib.sha256(os.fsencode(os.path.abspath(workflow))).hexdigest()[:16]
    return (home or default_home()) / ROOT / name


def name_of(visit: str) -> str:
    """A visit's name in the cache; no node's id can collide with the metadata or leave the folder."""
    name = safe_name(terse(visit))
    return f"%{ord(name[0]):02X}{name[1:]}" if name.lower() == "metadata" else name


class Iterations(Store):
    """The store of one workflow file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.claims = Claims(folder / "claims")
        self._metadata: dict[str, Any] | None = None
        self._listed: dict[str, list[Path]] | None = None  # a visit's name → its entries

    def name(self, visit: str, key: str) -> str:
        """The name of a visit's entry for a key."""
        return f"entries/{name_of(visit)}.{key[:24]}"

    def newest(self, visit: str) -> Entry | None:
        """The last entry that a visit got, whatever its key."""
        return self.read(name_of(visit), whole=False)

    def past(self, visit: str) -> list[Entry]:
        """Every entry that can be read of a visit, as they were when this was first asked, the newest first."""
        if self._listed is None:
            self._listed = {}
            for path, _ in _files(self.folder / "entries"):
                self._listed.setdefault(_visit(path), []).append(path)
        names = [f"entries/{path.stem}" for path in self._listed.get(name_of(visit), ())]
        found = [entry for name in names if (entry := self.read(name, whole=False)) is not None]
        return sorted(found, key=lambda entry: entry.at, reverse=True)

    def keep(self, visit: str, key: str, entry: Entry) -> None:
        """Keep an entry, and make it the newest of its visit."""
        name = self.name(visit, key)
        if self.write(name, entry):
            _point(self.path(name_of(visit)), self.path(name))

    # ── metadata ──

    @property
    def metadata(self) -> dict[str, Any]:
        """What is known about the workflow as a whole."""
        if self._metadata is None:
            self._metadata = read_object(self.folder / METADATA)
        return self._metadata

    def refresh(self) -> None:
        """Look at everything again when it is next asked for."""
        self._metadata = None
        self._listed = None

    def changed(self) -> set[str]:
        """Files that some node of the workflow made or changed: none of them is ever an input."""
        found = self.metadata.get("changed_files", [])
        return {path for path in found if isinstance(path, str)} if isinstance(found, list) else set()

    def update(self, **parts: Any) -> None:
        """Write metadata; what another process wrote meanwhile about other files is kept."""
        before = read_object(self.folder / METADATA)
        files = sorted({*self.changed(), *before.get("changed_files", []), *parts.pop("changed_files", [])})
        self._metadata = {**before, **parts, "changed_files": files}
        try:
            write_json(self.folder / METADATA, self._metadata)
        except OSError:
            self.lost = self.folder

    # ── size ──

    def size(self) -> int:
        """Bytes on disk, a file that has two names counted once."""
        seen = {(status.st_dev, status.st_ino): status.st_size for _, status in _files(self.folder)}
        return sum(seen.values())

    def prune(self, most: int) -> int:
        """Drop what is beyond the newest few of each visit, then the oldest beyond a size; tells how many went."""
        found = sorted(_files(self.folder / "entries"), key=lambda one: one[1].st_mtime_ns, reverse=True)
        counts: dict[str, int] = {}
        total = gone = 0
        for path, status in found:
            visit = _visit(path)
            counts[visit] = counts.get(visit, 0) + 1
            total += status.st_size
            if counts[visit] > KEPT or total > most:
                gone += remove(path)
        return gone

    def clear(self) -> bool:
        """Forget everything; False when there was nothing."""
        if not self.folder.is_dir():
            return False
        shutil.rmtree(self.folder, ignore_errors=True)
        return True


def stamp(seconds: float) -> str:
    """A time as people and scripts read it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _visit(entry: Path) -> str:
    """The name of the visit that an entry is of."""
    return entry.name.rsplit(".", 2)[0]


def _point(name: Path, entry: Path) -> None:
    """Give an entry a second name, at once."""
    temporary = name.with_name(f".{name.name}.{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        os.link(entry, temporary)
        os.replace(temporary, name)
    except OSError:
        return  # a file system without links: the newest entry is a convenience


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                found.append((path, path.stat()))
        except OSError:
            continue  # gone since it was listed
    return found

"""Outcomes on disk, an entry each: the same wherever they are kept.

A damaged entry is as good as none, and where nothing can be written nothing is kept. What is large in the outputs of an
entry is in a blob beside it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from pflow.errors import JournalError
from pflow.model.conversation import whole
from pflow.model.value import portable, restore
from pflow.storage.blobs import FOLDER, Blobs
from pflow.storage.files import write_atomic

_TAG = b'"__type"'
_NAMES = re.compile(rb'"digest":"([0-9a-f]{64})"')


class Entry(msgspec.Struct):
    """How a visit ended, and what that depended on."""

    outputs: dict[str, Any]
    writes: dict[str, Any]
    route: str | None = None
    lineage: str = ""
    parts: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    execution_time_ms: float = 0.0
    config_hash: str = ""
    node_id: str = ""
    node_type: str = ""
    visit: str = ""
    run_id: str = ""
    flow: str = ""  # the file, or the name, of the workflow that made it
    at: float = 0.0
    cached_at: str | float = ""  # the same for people to read


_decode = msgspec.json.Decoder(Entry).decode
_encode = msgspec.json.Encoder(enc_hook=whole).encode


class Store:
    """Entries by name in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lost: Path | None = None  # the folder, once something could not be kept in it
        self._blobs = Blobs(folder)

    def path(self, name: str) -> Path:
        """Where an entry is, or would be."""
        return self.folder / f"{name}.json"

    def read(self, name: str, whole: bool = True) -> Entry | None:
        """An entry; its large outputs stay where they are unless it is wanted whole."""
        try:
            data = self.path(name).read_bytes()
            if _TAG not in data:  # nothing in it needs a second look
                return _decode(data)
            found = msgspec.json.decode(data)
            outputs = found.pop("outputs")
            rest = restore(found)
            return msgspec.convert({**rest, "outputs": self._blobs.get_all(outputs) if whole else outputs}, Entry)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, JournalError):
            return None

    def version(self, name: str) -> tuple[int, int] | None:
        """What tells an entry from a later one in its place; None where there is none."""
        try:
            status = self.path(name).stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino

    def write(self, name: str, entry: Entry) -> bool:
        """Keep an entry; False when the folder does not let us."""
        rest = {field: portable(value) for field, value in msgspec.structs.asdict(entry).items() if field != "outputs"}
        try:
            outputs = self._blobs.put_all(entry.outputs)
            write_atomic(self.path(name), _encode({**rest, "outputs": outputs}))
        except OSError:
            self.lost = self.folder
            return False
        return True

    def drop(self, flow: str) -> int:
        """Drop the entries that a flow made, and the blobs that no other one needs; tells how many entries went."""
        found = {path: self.read(path.stem, whole=False) for path in self.folder.glob("*.json")}
        gone = sum(remove(path) for path, entry in found.items() if entry is not None and entry.flow == flow)
        if gone:
            self._sweep()
        return gone

    def _sweep(self) -> None:
        needed = {name.decode() for path in self.folder.glob("*.json") for name in _NAMES.findall(path.read_bytes())}
        for path in (self.folder / FOLDER).glob("*"):
            if path.name not in needed:
                remove(path)


def remove(path: Path) -> bool:
    """Drop a file; False when it was not there."""
    try:
        path.unlink()
    except OSError:
        return False
    return True

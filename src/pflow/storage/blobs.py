"""Blobs: values too large for a journal's line, each in a file named by the digest of its content."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from pflow.errors import JournalError
from pflow.model.conversation import TAG
from pflow.model.value import Value, portable, restore
from pflow.storage.files import sync_path, write_atomic

FOLDER = "blobs"
LIMIT = 64 * 1024  # bytes of JSON


class _Threaded(Exception):
    """A conversation is in it, which only the journal can write."""


def _refuse(value: Any) -> Any:
    raise _Threaded


_encode = msgspec.json.Encoder(enc_hook=_refuse).encode
_decode = msgspec.json.Decoder().decode


class Blobs:
    """The blobs of one run."""

    __slots__ = ("_known", "_unsynced", "folder")

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER
        # Written or verified by this process. A file that is merely there may be what a power cut left of one.
        self._known: set[str] = set()
        # Contains what was only read as well: the process that wrote it may have died before it synced.
        self._unsynced: set[str] = set()

    def put(self, value: Value) -> Any:
        """The portable form of ``value``, which is a reference to a blob when it is large."""
        made = portable(value)
        try:
            data = _encode(made)
        except _Threaded:
            return made
        if len(data) <= LIMIT:
            return made
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._known:
            write_atomic(self.folder / digest, data)
            self._keep(digest)
        return {TAG: "blob", "digest": digest, "size": len(data)}

    def put_all(self, values: dict[str, Value]) -> dict[str, Any]:
        """``put`` for each value of a mapping, which itself stays in the line."""
        made = {key: self.put(value) for key, value in values.items()}
        return {TAG: "dict", "value": made} if TAG in values else made

    def get(self, made: Any) -> Value:
        """The value of which ``put`` made this."""
        # Asked before ``restore``: a user's own mapping with such a tag is wrapped until then.
        if type(made) is dict and made.get(TAG) == "blob":
            return self._load(made["digest"])
        return restore(made)

    def get_all(self, made: dict[str, Any]) -> dict[str, Value]:
        """The mapping of which ``put_all`` made this."""
        inner = made["value"] if made.get(TAG) == "dict" else made
        return {key: self.get(value) for key, value in inner.items()}

    def sync(self) -> None:
        """Force to disk every blob that may not be there yet, and its name."""
        if not self._unsynced:
            return
        for digest in self._unsynced:
            sync_path(self.folder / digest)
        sync_path(self.folder)
        sync_path(self.folder.parent)
        self._unsynced.clear()

    def _keep(self, digest: str) -> None:
        self._known.add(digest)
        self._unsynced.add(digest)

    def _load(self, digest: str) -> Value:
        path = self.folder / digest
        try:
            data = path.read_bytes()
        except OSError as error:
            raise _unusable(path, f"cannot be read: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise _unusable(path, "is damaged: its content does not match its name")
        self._keep(digest)
        return restore(_decode(data))


def _unusable(path: Path, what: str) -> JournalError:
    return JournalError(f"blob {path} {what}", "restore it from a backup, or start a new run")

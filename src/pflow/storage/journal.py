"""The journal: a run's records, one JSON line each, only ever appended.

    {"c":<crc32 of what follows>,"k":"ended","t":1700000000.0,"visit":"a#1",…}

A crash can leave a part of a line at the end, which nobody was told about; it is cut off. Damage before an
intact record is no crash of ours: it is reported and never repaired in silence. Who opens a journal to write
must hold the run's lease. Secrets stand in it as references (see ``sealing``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

import msgspec

from pflow.errors import JournalError
from pflow.model.conversation import Threads
from pflow.model.records import VALUES, AnyRecord, Opened
from pflow.model.value import plain, portable
from pflow.storage import blobs
from pflow.storage.blobs import Blobs
from pflow.storage.files import open_private, private_folder, sync_path, write_all
from pflow.storage.sealing import SEALED, Seal, veiled
from pflow.version import __version__

_decode = msgspec.json.Decoder(AnyRecord).decode
_HEAD = b'{"c":'
_THREADED = b'"__type":"conversation"'
_datasync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync

_NO_SECRETS = Seal()
OLDEST = [0, 2]  # the version whose records are still read


class Journal:
    """A journal open for appending; after one failed write it refuses everything."""

    __slots__ = (
        "_blobs",
        "_encode",
        "_fd",
        "_refusal",
        "_required",
        "_seal",
        "_threads",
        "_unnamed",
        "_unsynced",
        "path",
    )

    def __init__(
        self, path: Path, fd: int, files: Blobs, fresh: bool, seal: Seal | None, threads: Threads | None = None
    ) -> None:
        self.path = path
        self._threads = threads or Threads()
        self._encode = msgspec.json.Encoder(enc_hook=self._threads.encode).encode
        self._seal = seal
        self._fd = fd  # -1 once closed or failed, so that the system itself refuses a write
        self._blobs = files
        self._required: set[Path] = set()
        self._unnamed = fresh  # the folders do not yet durably list what was made in them
        self._unsynced = True  # what a reopened journal holds may never have been synced by its writer
        self._refusal = ("", "")  # the message and hint of every error once the journal is closed or failed

    @classmethod
    def create(cls, path: Path, seal: Seal | None = _NO_SECRETS) -> Journal:
        """Start a new journal; there must be none at ``path``. Without a seal, records are sealed already."""
        private_folder(path.parent)
        try:
            fd = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_EXCL)
        except OSError as error:
            raise JournalError(f"{path} cannot be created: {error.strerror}") from error
        return cls(path, fd, Blobs(path.parent), fresh=True, seal=seal)

    @classmethod
    def open(cls, path: Path, seal: Seal = _NO_SECRETS) -> tuple[Journal, list[AnyRecord]]:
        """Open an existing journal for appending, with its records; a bad tail is cut off."""
        files = Blobs(path.parent)
        reader = _Reader(path, files, seal.open)
        records = list(reader)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            if reader.end < os.fstat(fd).st_size:
                os.ftruncate(fd, reader.end)
        except OSError as error:
            raise JournalError(f"{path} cannot be opened for writing: {error.strerror}") from error
        return cls(path, fd, files, False, seal, reader.threads), records

    def append(self, record: AnyRecord) -> None:
        """Write one record; when this returns, a crash of the process cannot lose it."""
        rest = _body(_mapped(record, portable, portable), self._encode)
        if self._seal is not None and self._seal.concerns(rest):
            self._threads.dropped()
            record = self._seal.close(record)
            rest = _body(_mapped(record, portable, portable), self._encode)
        if len(rest) > blobs.LIMIT:
            self._threads.dropped()
            rest = self._body_with_blobs(record)
        line = b'{"c":%d,%b\n' % (crc32(rest), rest)
        try:
            done = os.write(self._fd, line)
        except OSError as error:
            raise self._broken(error) from error
        self._unsynced = True
        if self._threads.fresh:
            self._threads.written()
        if done != len(line):
            self._complete(line[done:])

    def sync(self) -> None:
        """Force everything appended so far to disk, with one call, or with none when it is there."""
        if self._fd < 0:
            raise JournalError(*self._refusal)
        if not self._unsynced:
            return
        try:
            self._sync_named()
            _datasync(self._fd)
        except OSError as error:
            # The system may have dropped what it failed to write, and would say "done" next time.
            raise self._broken(error) from error
        self._unsynced = False

    def require(self, path: Path) -> None:
        """Have a file that records name (a document of the run) synced before they are."""
        self._required.add(path)
        self._unsynced = True

    def close(self) -> None:
        """Close the file without syncing; further records are refused."""
        self._refuse(f"{self.path} is closed", "open it again to write")

    def _sync_named(self) -> None:
        self._blobs.sync()
        for path in self._required:
            sync_path(path)
        self._required.clear()
        if self._unnamed:
            sync_path(self.path.parent)
            sync_path(self.path.parent.parent)
            self._unnamed = False

    def _body_with_blobs(self, record: AnyRecord) -> bytes:
        try:
            return _body(_mapped(record, self._blobs.put, self._blobs.put_all), self._encode)
        except OSError as error:
            raise self._broken(error) from error

    def _complete(self, rest: bytes) -> None:
        # Refuse others until the line is whole: a torn line may only ever be the last one.
        fd, self._fd = self._fd, -1
        try:
            write_all(fd, rest)
        except OSError as error:
            os.close(fd)
            raise self._broken(error) from error
        self._fd = fd

    def _broken(self, error: OSError) -> JournalError:
        hint = "free space or fix the disk, then resume the run"
        self._refuse(f"{self.path} cannot be written: {error.strerror}", hint)
        return JournalError(*self._refusal)

    def _refuse(self, why: str, hint: str) -> None:
        if not self._refusal[0]:  # the first reason is the true one
            self._refusal = (why, hint)
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def read(path: Path, sealed: Callable[[AnyRecord], AnyRecord] = veiled) -> Iterator[AnyRecord]:
    """The records of a journal, one by one; it is not changed, and a bad tail is passed over.

    ``sealed`` says what becomes of a record with secrets in it: they are hidden.
    """
    return iter(_Reader(path, Blobs(path.parent), sealed))


def as_it_stands(record: AnyRecord) -> AnyRecord:
    """For ``read``: leave secrets sealed, to copy records."""
    return record


class _Reader:
    """The intact records of a journal; ``end`` is the offset at which the last one read ends."""

    def __init__(self, path: Path, files: Blobs, sealed: Callable[[AnyRecord], AnyRecord]) -> None:
        self.path = path
        self.end = 0
        self._sealed = sealed
        self.threads = Threads()
        self._blobs = files
        self._version = ""

    def __iter__(self) -> Iterator[AnyRecord]:
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise JournalError(f"{self.path} cannot be read: {error.strerror}") from error
        with file:
            yield from self._records(file)

    def _records(self, file: BinaryIO) -> Iterator[AnyRecord]:
        bad = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # the end of the file, or of what a live writer has written so far
            rest = _checked(line)
            if rest is None:
                bad = bad or number
            if bad and (rest is not None or _hides_intact(line)):
                raise self._damaged(bad)
            if rest is not None:
                self.end += len(line)
                yield self._record(rest, number)

    def _record(self, rest: bytes, number: int) -> AnyRecord:
        try:
            record: AnyRecord = _decode(b"{" + rest)
        except msgspec.DecodeError as error:
            raise self._unknown(rest, number, error) from error
        if type(record) is Opened:
            self._version = record.version
            if record.version and _order(record.version) < OLDEST:
                raise self._unknown(rest, number, "it is in an older form")
        if b'"__type"' in rest:
            if _THREADED in rest:
                record = _mapped(record, self.threads.decode, self.threads.decode)
            record = _mapped(record, self._blobs.get, self._blobs.get_all)
            return self._sealed(record)  # what is in a blob cannot be seen in the line
        return self._sealed(record) if SEALED in rest else record

    def _damaged(self, number: int) -> JournalError:
        return JournalError(
            f"{self.path}:{number}: damaged record, with intact ones after it",
            f"restore the file from a backup, or keep only what is before line {number} and resume from there",
        )

    def _unknown(self, rest: bytes, number: int, error: Exception | str) -> JournalError:
        kind = _loose(rest).get("k", "?")
        version = self._version or str(_loose(rest).get("version", ""))
        if version and _order(version) < _order(__version__):
            hint = f"the run was begun by pflow {version}: go on with it there, or start a new run"
        else:
            needed = f"pflow {version} or newer" if version else "a newer pflow"
            hint = f"the run needs {needed}: upgrade and try again"
        return JournalError(f"{self.path}:{number}: this pflow cannot read a record of kind {kind!r}: {error}", hint)


def _checked(line: bytes) -> bytes | None:
    """What the line's checksum covers, or None when it does not match."""
    head, comma, rest = line[:-1].partition(b",")
    number = head[len(_HEAD) :]
    if not comma or not head.startswith(_HEAD) or not number.isdigit() or len(number) > 10:
        return None
    return rest if int(number) == crc32(rest) else None


def _hides_intact(line: bytes) -> bool:
    """Whether a bad line ends in an intact record, as when the line break before it was damaged."""
    at = line.find(_HEAD, 1)
    while at > 0:
        if _checked(line[at:]) is not None:
            return True
        at = line.find(_HEAD, at + 1)
    return False


def _order(version: str) -> list[int]:
    """What tells which of two versions is the older one."""
    return [int(part) for part in version.split(".") if part.isdigit()]


def _loose(rest: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(b"{" + rest)
    return found


def _body(record: msgspec.Struct, encode: Callable[[Any], bytes]) -> bytes:
    """The record's JSON without its opening brace, to go behind the checksum."""
    try:
        return encode(record)[1:]
    except UnicodeEncodeError:  # an exception's message may quote a file name that is no UTF-8
        return encode(plain(msgspec.to_builtins(record, enc_hook=_as_it_is)))[1:]


def _as_it_is(value: Any) -> Any:
    return value


def _mapped(record: Any, one: Callable[[Any], Any], many: Callable[[Any], Any]) -> Any:
    """The record with its values translated; the same object when none changed."""
    changes: dict[str, Any] = {}
    for name in VALUES.get(type(record), ()):
        value = getattr(record, name)
        if name == "value":
            made = one(value)
        elif not value:  # an empty mapping, or no failure
            continue
        else:
            made = _mapped(value, one, many) if type(value) in VALUES else many(value)
        if made is not value:
            changes[name] = made
    return msgspec.structs.replace(record, **changes) if changes else record

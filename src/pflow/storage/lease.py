"""The lease: two processes never drive one run.

It is a locked file that stays, because its token must grow; what it says about a holder is only for messages.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from pflow.errors import RunBusy
from pflow.storage import lock

FILE = "lease"


class Holder(msgspec.Struct, frozen=True):
    """Who acquired a lease last."""

    token: int = 0
    pid: int = 0
    host: str = ""
    since: str = ""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}" if self.pid else "another process"


class Lease:
    """The right to drive a run, held until it is released or the process ends."""

    def __init__(self, path: Path, run_id: str, fd: int, token: int) -> None:
        self.token = token  # larger than that of anyone who held the lease before
        self._path = path
        self._run_id = run_id
        self._fd = fd

    @classmethod
    def acquire(cls, folder: Path, run_id: str) -> Lease:
        """Take the lease of a run, or raise RunBusy with the name of its holder."""
        path = folder / FILE
        fd = lock.take(path)
        if fd is None:
            raise _busy(run_id, f"is driven by {holder(folder)}")
        return cls(path, run_id, fd, _sign(fd))

    def check(self) -> None:
        """Raise RunBusy unless this process still holds the lease; cheap enough to ask before each effect."""
        if self._fd < 0:
            raise _busy(self._run_id, "was released by this process")
        if not lock.is_at(self._fd, self._path):
            raise _busy(self._run_id, f"was taken over by {holder(self._path.parent)}")

    def release(self) -> None:
        """Let others drive the run; doing it twice is fine."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def holder(folder: Path) -> Holder:
    """Who acquired the lease last, alive or not; an empty holder when nobody is known."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Holder)
    except (OSError, ValueError):
        return Holder()


def alive(folder: Path) -> bool:
    """Whether some live process drives the run; asking does not get in its way."""
    return lock.taken(folder / FILE)


def _sign(fd: int) -> int:
    """Write who we are, with the next token, over what the file said; only under the lock."""
    old = os.pread(fd, 4096, 0)
    try:
        token = msgspec.json.decode(old, type=Holder).token + 1
    except ValueError:
        token = 1
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    new = msgspec.json.encode(Holder(token, os.getpid(), os.uname().nodename, since)) + b"\n"
    # One write covers all of the old text, so that a crash in between cannot lose the token.
    os.pwrite(fd, new.ljust(len(old)), 0)
    os.ftruncate(fd, len(new))
    return token


def _busy(run_id: str, what: str) -> RunBusy:
    return RunBusy(f"run {run_id} {what}", "wait for it, or stop that process; its lease ends with it")

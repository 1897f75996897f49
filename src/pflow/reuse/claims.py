"""Claims: several processes on one workflow do each node once.

A claim is a locked file. It ends with its holder; what a dead holder wrote into it says that an effect may have
happened.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path

import msgspec

from pflow.reuse.policy import Abandoned
from pflow.storage import lock
from pflow.storage.files import sync_path


class Claims:
    """The claims on the visits of one workflow."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}  # name → the open file

    def take(self, name: str) -> Abandoned | bool:
        """True when the claim is ours now, False when somebody alive has it; else it is ours with a doubt."""
        try:
            fd = lock.take(self._path(name))
        except OSError:
            return True  # no cache can be written here, so there is nothing to share
        if fd is None:
            return False
        self._held[name] = fd
        try:
            return msgspec.json.decode(os.pread(fd, 4096, 0), type=Abandoned)
        except msgspec.DecodeError:
            return True

    def sign(self, name: str, run_id: str, attempt: int) -> None:
        """Say that an effect is about to be attempted under this claim."""
        fd = self._held.get(name)
        if fd is None:
            return
        data = msgspec.json.encode(Abandoned(run_id, attempt))
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
        os.fsync(fd)
        sync_path(self._folder)

    def others(self, visit: str, name: str) -> list[Abandoned]:
        """Doubts that were left under other recipes of the same visit; each is told once."""
        found = []
        for path in self._folder.glob(f"{glob.escape(visit)}.*.lock"):
            other = path.name.removesuffix(".lock")
            if other == name or other.rpartition(".")[0] != visit:
                continue
            taken = self.take(other)
            if isinstance(taken, Abandoned):
                found.append(taken)
            self.release(other, settled=True)
        return found

    def release(self, name: str, settled: bool) -> None:
        """Give a claim up; one that is not settled leaves its doubt behind."""
        fd = self._held.pop(name, None)
        if fd is None:
            return
        if settled:
            self._path(name).unlink(missing_ok=True)
        os.close(fd)

    def close(self) -> None:
        """Give all claims up; what was begun under them is in doubt."""
        for name in list(self._held):
            self.release(name, settled=False)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"

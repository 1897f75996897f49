"""Locks on files that may be removed or replaced while one waits for them.

A lock is the operating system's, on an open file, so it ends with its holder however that dies.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from pflow.storage.files import open_private, private_folder

_PROBES = 100  # tries, a millisecond apart, to get past others who only look


def take(path: Path) -> int | None:
    """Lock a file, made if missing, and give it open; None while somebody has it. Closing it gives the lock up."""
    private_folder(path.parent)
    while True:
        fd = open_private(path, os.O_RDWR)
        if not _lock(fd):
            os.close(fd)
            return None
        if is_at(fd, path):
            return fd
        os.close(fd)  # the file was removed or replaced between our open and our lock


def taken(path: Path) -> bool:
    """Whether somebody alive has the lock; asking does not get in its way."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _try(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def is_at(fd: int, path: Path) -> bool:
    """Whether the open file is the one at ``path``; its inode is not reused while we hold it open."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _lock(fd: int) -> bool:
    """Lock for ourselves; False when somebody has the lock, as opposed to asking whether it is ``taken`` just now."""
    for _ in range(_PROBES):
        if _try(fd, fcntl.LOCK_EX):
            return True
        if not _try(fd, fcntl.LOCK_SH):
            return False
        fcntl.flock(fd, fcntl.LOCK_UN)
        time.sleep(0.001)
    return False


def _try(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

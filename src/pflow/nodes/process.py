"""Ending work for real: process groups are terminated, then killed, with everything they started.

A child that left its group is found by the mark that every child carries in its environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import Process
from collections.abc import Callable
from pathlib import Path

GRACE = 0.5  # seconds between asking a group to end and killing it
_PAUSE = 0.01
_ROUNDS = 30
MARK = "PFLOW_IDEMPOTENCY_KEY"


async def end_group(process: Process, mark: str) -> None:
    """End a process that leads its own group, its descendants, and strays that carry ``mark``."""
    _signal_all(process.pid, mark, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE)
    for _ in range(_ROUNDS):  # a child may have been started while its parent was being ended
        if not _signal_all(process.pid, mark, signal.SIGKILL):
            break
        await asyncio.sleep(_PAUSE)
    await process.wait()


def close(process: Process) -> None:
    """Close our ends of a process's pipes, which a child that lives on may keep open at its own."""
    process._transport.close()  # type: ignore[attr-defined]


def _signal_all(leader: int, mark: str, number: int) -> bool:
    """Signal everything that belongs to the group or carries the mark; whether there was anything."""
    found = _signal(os.killpg, leader, number)
    for pid in _marked(mark):
        found |= _signal(os.kill, pid, number)
    return found


def _signal(send: Callable[[int, int], None], target: int, number: int) -> bool:
    try:
        send(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _marked(mark: str) -> list[int]:
    """Processes whose environment carries the mark; none where the system does not show environments."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc"):  # noqa: PTH208 - names only, read while processes come and go
            if entry.isdigit() and int(entry) != os.getpid():
                with contextlib.suppress(OSError):
                    if wanted in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                        found.append(int(entry))
    return found

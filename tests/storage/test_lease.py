"""The lease: one driver at a time, and none that is dead."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pflow.errors import RunBusy
from pflow.storage import lease
from pflow.storage.lease import Lease

HOLD = """
import sys
from pathlib import Path
from pflow.storage.lease import Lease
held = Lease.acquire(Path(sys.argv[1]), "r1")
print(held.token, flush=True)
sys.stdin.read()
"""


def holding_process(folder: Path) -> subprocess.Popen[str]:
    """A process that holds the lease until its stdin ends; it is known to hold it when this returns."""
    command = [sys.executable, "-c", HOLD, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip().isdigit()
    return process


def test_a_live_holder_is_named_and_a_killed_one_is_replaced(tmp_path: Path) -> None:
    """While the process lives the run is busy; after kill -9 its lease is free."""
    with holding_process(tmp_path) as process:
        with pytest.raises(RunBusy, match=f"run r1 is driven by process {process.pid} on {os.uname().nodename} since"):
            Lease.acquire(tmp_path, "r1")
        assert lease.alive(tmp_path)
        process.kill()
    assert not lease.alive(tmp_path)
    with Lease.acquire(tmp_path, "r1") as taken:
        assert taken.token == 2
        taken.check()


def test_the_token_grows_with_each_acquisition(tmp_path: Path) -> None:
    """Of two holders the later one has the larger number, also in the file."""
    tokens = []
    for _ in range(12):
        with Lease.acquire(tmp_path, "r1") as held:
            tokens.append(held.token)
            assert lease.holder(tmp_path).token == held.token
    assert tokens == list(range(1, 13))


def test_a_process_does_not_take_its_own_lease_twice(tmp_path: Path) -> None:
    """Two drivers in one process exclude each other as well."""
    with Lease.acquire(tmp_path, "r1"), pytest.raises(RunBusy, match=str(os.getpid())):
        Lease.acquire(tmp_path, "r1")
    Lease.acquire(tmp_path, "r1").release()


def test_a_holder_notices_that_its_lease_was_replaced(tmp_path: Path) -> None:
    """Who breaks a lease by replacing its file fences the old holder off."""
    old = Lease.acquire(tmp_path, "r1")
    (tmp_path / lease.FILE).unlink()
    with pytest.raises(RunBusy, match="taken over by another process"):
        old.check()
    with Lease.acquire(tmp_path, "r1"), pytest.raises(RunBusy, match=f"taken over by process {os.getpid()}"):
        old.check()
    old.release()


def test_a_released_lease_is_no_right(tmp_path: Path) -> None:
    """After release, which may be repeated, the check fails."""
    held = Lease.acquire(tmp_path, "r1")
    held.release()
    held.release()
    with pytest.raises(RunBusy, match="released"):
        held.check()
    assert not lease.alive(tmp_path)


def test_asking_whether_a_run_is_alive_makes_nothing(tmp_path: Path) -> None:
    """A run that was never driven is not alive, and stays without a lease file."""
    assert not lease.alive(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert lease.holder(tmp_path).pid == 0


def test_someone_who_only_looks_does_not_keep_a_driver_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe's shared lock delays an acquisition until the probe is over."""
    Lease.acquire(tmp_path, "r1").release()
    probe = os.open(tmp_path / lease.FILE, os.O_RDONLY)
    fcntl.flock(probe, fcntl.LOCK_SH)
    monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(probe, fcntl.LOCK_UN))
    Lease.acquire(tmp_path, "r1").release()
    os.close(probe)


def test_an_unreadable_lease_file_can_be_taken(tmp_path: Path) -> None:
    """What the file says is only for messages: the lock decides."""
    (tmp_path / lease.FILE).write_bytes(b"\0" * 500)
    with Lease.acquire(tmp_path, "r1"):
        assert lease.holder(tmp_path).pid == os.getpid()


def test_only_one_of_many_gets_the_lease(tmp_path: Path) -> None:
    """However many try at once, one drives."""
    start = threading.Barrier(8)
    won: list[Lease] = []
    lost: list[RunBusy] = []

    def contend() -> None:
        start.wait()
        try:
            won.append(Lease.acquire(tmp_path, "r1"))
        except RunBusy as error:
            lost.append(error)

    threads = [threading.Thread(target=contend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 7)
    won[0].release()

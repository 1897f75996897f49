"""Stopped in every way: Ctrl-C once and twice, SIGTERM, kill -9, a reader that goes away."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Pflow
from tests.cli.processes import COMMAND, process, slow_workflow, started


def gone(pid: int) -> bool:
    """Whether a process has ended, or is only waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal_stops_cleanly_and_the_run_can_go_on(pflow: Pflow, here: Path, number: signal.Signals) -> None:
    slow_workflow(here)
    with process(here, "slow.yaml") as running:
        pid = started(here)
        running.send_signal(number)
        out, err = running.communicate()
    assert running.returncode == 130 and out == "" and "Interrupted" in err and "Traceback" not in err
    assert gone(pid), "the command was ended, too"
    (run,) = pflow("runs", "--json").json
    assert run["status"] == "interrupted" and f"pflow resume {run['run_id']}" in err
    (here / "hurry").touch()
    said = pflow("resume", run["run_id"], "--on-doubt", "retry")
    assert said.out == "after\n" and (here / "log").read_text() == "before\n"


def test_a_second_signal_stops_now(pflow: Pflow, here: Path) -> None:
    """Node code that will not be stopped cannot keep the process."""
    folder = here / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    (folder / "t.py").write_text(
        "import asyncio\nfrom pathlib import Path\nfrom pflow import node\n"
        "@node('t/stubborn')\nasync def stubborn() -> None:\n"
        "    Path('started').write_text('0')\n"
        "    while True:\n"
        "        try:\n            await asyncio.sleep(600)\n"
        "        except asyncio.CancelledError:\n            Path('started').write_text('1')\n"
    )
    (here / "w.yaml").write_text("flow: {name: w}\nnodes: [{id: a, type: t/stubborn}]\nedges: []\n")
    os.mkfifo(here / "started")
    with process(here, "w.yaml") as running:
        assert started(here) == 0
        running.send_signal(signal.SIGINT)
        assert started(here) == 1, "it was asked, and refused"
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    assert running.returncode == 130 and "Stopped." in err and "pflow resume" in err
    assert pflow("runs", "--json").json[0]["status"] == "interrupted"


def test_a_thread_that_nobody_waits_for_does_not_keep_the_process(here: Path) -> None:
    folder = here / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    (folder / "t.py").write_text(
        "import time\nfrom pathlib import Path\nfrom pflow import node\n"
        "@node('t/sleepy')\ndef sleepy() -> None:\n    Path('started').write_text('0')\n    time.sleep(600)\n"
    )
    (here / "w.yaml").write_text("flow: {name: w}\nnodes: [{id: a, type: t/sleepy}]\nedges: []\n")
    os.mkfifo(here / "started")
    with process(here, "w.yaml") as running:
        started(here)
        running.send_signal(signal.SIGINT)
        running.communicate()
    assert running.returncode == 130


def test_a_signal_that_was_switched_off_stays_off(here: Path) -> None:
    """As under nohup: the terminal's end is not the run's."""
    slow_workflow(here)
    with process(here, "slow.yaml", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as running:
        pid = started(here)
        running.send_signal(signal.SIGHUP)
        os.kill(pid, signal.SIGTERM)
        running.communicate()
    assert running.returncode == 1, "the node's own end was what failed the run"


def test_killed_and_resumed_nothing_is_repeated_unasked(pflow: Pflow, here: Path) -> None:
    slow_workflow(here)
    with process(here, "slow.yaml") as running:
        pid = started(here)
        running.kill()
        running.communicate()
        os.kill(pid, signal.SIGKILL)
    (run,) = pflow("runs", "--json").json
    assert run["status"] == "interrupted"
    said = pflow("resume", run["run_id"])
    assert said.code == 3 and "node 'slow' was cut off in attempt 1" in said.err
    (here / "hurry").touch()
    said = pflow("resume", run["run_id"], "--on-doubt", "retry")
    assert (said.code, said.out) == (0, "after\n") and (here / "log").read_text() == "before\n"
    before = (Path(run["path"]) / "trace.jsonl").read_bytes()
    assert pflow("resume", run["run_id"]).code == 0
    assert (Path(run["path"]) / "trace.jsonl").read_bytes() == before


def test_a_live_run_is_cancelled_from_outside(pflow: Pflow, here: Path) -> None:
    slow_workflow(here)
    with process(here, "slow.yaml") as running:
        started(here)
        (run,) = pflow("runs", "--json").json
        assert run["status"] == "running"
        assert pflow("cancel", run["run_id"]).code == 0
        _, err = running.communicate()
    assert running.returncode == 1 and "cancelled" in err
    assert pflow("runs", "--json").json[0]["status"] == "cancelled"


@pytest.mark.parametrize("words", [["trace", "--json"], ["--help"], ["runs"]])
def test_a_reader_that_goes_away_is_no_error(pflow: Pflow, greeting: str, here: Path, words: list[str]) -> None:
    pflow(greeting)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, *words], cwd=here, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_goes_on_when_nobody_reads_its_lines(pflow: Pflow, greeting: str, here: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*COMMAND, greeting, "--events", "-"], cwd=here, stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 0 and pflow("runs", "--json").json[0]["status"] == "completed"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_result_that_cannot_be_written_is_an_error(greeting: str, here: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, greeting], cwd=here, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1 and "cannot be written: No space left on device" in done.stderr


def test_without_any_streams_a_run_still_runs(pflow: Pflow, greeting: str, here: Path) -> None:
    shell = f'"{COMMAND[0]}" -m pflow {greeting} <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", shell], cwd=here, check=False).returncode == 0
    assert pflow("runs", "--json").json[0]["status"] == "completed"

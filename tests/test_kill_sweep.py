"""Law 4, with real processes: killed with -9 around every record of the journal, and again while resuming.

Whatever happens, the run comes to the same end; no effect that completed is repeated, and every effect that may have
been repeated was reported as a doubt first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pflow.model.records import Doubt, Ended, Reopened
from pflow.storage.journal import read

ROOT = Path(__file__).parents[1]
RETRIED_BY_POLICY = {"b#1": 1, "s#1/j#1": 1, "draft#2": 1}  # visits whose first attempt acts and fails


class Sweeper:
    """The process that forks and kills."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "tests.sweep_world"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=ROOT, text=True
        )

    def fresh(self) -> Path:
        self.count += 1
        path = self.folder / f"case-{self.count}"
        path.mkdir()
        return path

    def run(self, case: Path, **command: Any) -> dict[str, Any] | None:
        """Run or resume; None when it was killed."""
        assert self.process.stdin is not None and self.process.stdout is not None
        answer = case / "answer.json"
        answer.unlink(missing_ok=True)
        full = {"home": str(case / "home"), "world": str(case / "world"), "answer": str(answer), **command}
        self.process.stdin.write(json.dumps(full) + "\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())
        if said["signal"] == 9:
            return None
        assert said["status"] == 0, "the process failed by itself"
        made: dict[str, Any] = json.loads(answer.read_text())
        return made

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def sweeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sweeper]:
    made = Sweeper(tmp_path_factory.mktemp("sweep"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(sweeper: Sweeper) -> dict[str, Any]:
    """The run that nobody kills."""
    made = sweeper.run(sweeper.fresh())
    assert made is not None and made["status"] == "completed"
    return made


def check(case: Path, runs: str = "home/runs") -> None:
    """Compare what happened outside with what the journal admits."""
    (folder,) = (case / runs).iterdir()
    world = case / "world"
    acts = Counter(line.partition(":")[2] for line in world.read_text().splitlines()) if world.exists() else Counter()
    records = list(read(folder / "trace.jsonl"))
    doubts = Counter(record.visit for record in records if isinstance(record, Doubt))
    completed: set[str] = set()
    for record in records:
        if isinstance(record, Ended):
            assert record.visit not in completed, f"{record.visit} ran again after it had completed"
            if record.outcome.status == "completed":
                completed.add(record.visit)
    for visit, count in acts.items():
        allowed = 1 + RETRIED_BY_POLICY.get(visit, 0) + doubts[visit]
        assert count <= allowed, f"{visit} acted {count} times, but only {doubts[visit]} doubts were reported"
    assert not any(isinstance(record, Reopened) for record in records)


def points(records: int) -> list[tuple[int, bool]]:
    """Before and after each record."""
    return [(at, after) for at in range(1, records + 1) for after in (False, True)]


def test_killed_around_every_record_and_again_while_resuming(
    sweeper: Sweeper, whole: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    every = request.config.getoption("--sweep") == "full"
    for at, after in points(whole["records"]):
        for second in range(1, 12) if every else [1 + at % 9]:
            case = sweeper.fresh()
            assert sweeper.run(case, at=at, after=after) is None
            sweeper.run(case, at=second, after=not after, on_doubt="retry")  # it may be done before it is killed
            done = sweeper.run(case, on_doubt="retry")
            assert done is not None and done["status"] == "completed", (at, after, second)
            assert done["outputs"] == whole["outputs"], (at, after, second)
            check(case)
            again = sweeper.run(case, on_doubt="retry")
            assert again is not None and again["records"] == 0, "resuming a complete run wrote something"


def test_unasked_no_effect_is_repeated_at_all(sweeper: Sweeper, whole: dict[str, Any]) -> None:
    for at, after in points(whole["records"]):
        case = sweeper.fresh()
        assert sweeper.run(case, at=at, after=after) is None
        done = sweeper.run(case)
        assert done is not None and done["status"] in ("completed", "paused"), (at, after)
        world = case / "world"
        acts = (
            Counter(line.partition(":")[2] for line in world.read_text().splitlines()) if world.exists() else Counter()
        )
        for visit, count in acts.items():
            assert count <= 1 + RETRIED_BY_POLICY.get(visit, 0), f"{visit} acted {count} times and nobody was asked"


ROUTED = ".dotrunner/sessions"


def story(case: Path) -> tuple[Any, list[str]]:
    """A session's context and the path it took; what ran at once has no order."""
    (folder,) = (case / ROUTED).iterdir()
    context = {
        name: value for name, value in json.loads((folder / "context.json").read_text()).items() if name[0] != "_"
    }
    ends = [record.visit for record in read(folder / "trace.jsonl") if isinstance(record, Ended)]
    return context, [visit for visit in ends if "/" not in visit] + sorted(visit for visit in ends if "/" in visit)


def test_a_session_killed_around_every_record_comes_to_the_same_end(
    sweeper: Sweeper, request: pytest.FixtureRequest
) -> None:
    """A loop, a workflow inside, tasks at once: the same context and path, and no agent is asked again."""
    every = request.config.getoption("--sweep") == "full"
    case = sweeper.fresh()
    whole = sweeper.run(case, flow="routed")
    assert whole is not None and whole["status"] == "completed"
    wanted = story(case)
    assert [visit for visit in wanted[1] if "/" not in visit] == [
        "draft#1", "review#1", "draft#2", "review#2", "inside#1", "checks#1", "last#1",
    ]  # fmt: skip
    for at, after in points(whole["records"]):
        for second in range(1, 12) if every else [1 + at % 9]:
            case = sweeper.fresh()
            assert sweeper.run(case, flow="routed", at=at, after=after) is None
            sweeper.run(case, flow="routed", at=second, after=not after, on_doubt="retry")
            done = sweeper.run(case, flow="routed", on_doubt="retry")
            assert done is not None and done["status"] == "completed", (at, after, second)
            assert done["outputs"] == whole["outputs"] and story(case) == wanted, (at, after, second)
            check(case, ROUTED)

"""What a visit costs, beside the floors of this machine, in one run: `make bench`.

Every line is a ratio to something measured a moment earlier on the same machine, so that the numbers can be compared
between machines. Limits are stated for a machine on which an empty `await` round trip takes about 0.1 µs.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pflow.app.driver import NoJournal
from pflow.kernel.events import Hub
from pflow.kernel.run import Run
from pflow.model.records import AnyRecord, Ended, Opened, Outcome
from pflow.model.workflow import Edge, Node, Workflow
from pflow.nodes import node
from pflow.nodes.registry import Registry
from pflow.planning.build import build
from pflow.planning.plan import Plan, Values
from pflow.storage.journal import Journal

ROUNDS = 5


@node("bench/quiet", version="1", effect="quiet")
async def quiet(text: str) -> dict[str, str]:
    return {"text": text}


@node("bench/impure", version="1")
async def impure(text: str) -> dict[str, str]:
    return {"text": text}


class Unsynced:
    """A journal that is written and never synced."""

    def __init__(self, journal: Journal) -> None:
        self.append = journal.append

    def sync(self) -> None:
        pass


def registry() -> Registry:
    from pflow.nodes.type import describe_type

    return Registry([describe_type(quiet, trusted=True), impure], installed=False)


def chain(count: int, kind: str) -> Plan:
    nodes = [Node("n0", kind, {"text": "{{start}}"})]
    nodes += [Node(f"n{i}", kind, {"text": f"{{{{n{i - 1}.text}}}}"}) for i in range(1, count)]
    edges = [Edge(f"n{i - 1}", f"n{i}") for i in range(1, count)]
    return build(Workflow("chain", "bench", tuple(nodes), tuple(edges)), registry())


def fan(count: int) -> Plan:
    nodes = [Node("root", "bench/quiet", {"text": "{{start}}"})]
    nodes += [Node(f"n{i}", "bench/quiet", {"text": "{{root.text}}"}) for i in range(count)]
    edges = [Edge("root", f"n{i}") for i in range(count)]
    return build(Workflow("fan", "bench", tuple(nodes), tuple(edges), width=count), registry())


def timed(run: Run) -> float:
    """Seconds that driving a run takes, without pauses to collect garbage."""
    gc.collect()
    gc.disable()
    began = time.perf_counter()
    asyncio.run(run.drive())
    took = time.perf_counter() - began
    gc.enable()
    return took


def per_visit(plan: Plan, make: Callable[[Path], Any], width: int = 1, rounds: int = ROUNDS) -> float:
    """Microseconds a visit, the best of some rounds, with one subscriber."""
    best = float("inf")
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            log = make(Path(folder))
            seen: list[Any] = []
            run = Run(plan, Values({"start": "x"}), "bench", log, width=width, hub=Hub(seen.append))
            run.open(Opened(0.0, "bench", "chain", "bench", plan.digest))
            took = timed(run)
            assert run.status == "completed", run.memory.finished
            assert len(seen) == 2 * len(plan.order) + 2
            best = min(best, took / len(plan.order) * 1e6)
    return best


def await_floor() -> float:
    async def nothing() -> None:
        return None

    async def main() -> float:
        began = time.perf_counter()
        for _ in range(100_000):
            await nothing()
        return (time.perf_counter() - began) / 100_000 * 1e6

    return min(asyncio.run(main()) for _ in range(3))


def append_floor(folder: Path) -> float:
    journal = Journal.create(folder / "floor.jsonl")
    record: AnyRecord = Ended(0.0, "n1#1", Outcome("completed", {"text": "x"}))
    began = time.perf_counter()
    for _ in range(10_000):
        journal.append(record)
    return (time.perf_counter() - began) / 10_000 * 1e6


def sync_floor(folder: Path, count: int) -> float:
    fd = os.open(folder / "sync", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    began = time.perf_counter()
    for _ in range(count):
        os.write(fd, b"x" * 200)
        os.write(fd, b"x" * 80)
        getattr(os, "fdatasync", os.fsync)(fd)
    took = (time.perf_counter() - began) / count * 1e6
    os.close(fd)
    return took


def show(name: str, value: float, limit: float, unit: str = "µs") -> bool:
    good = value <= limit
    print(f"  {'ok ' if good else 'OVER'} {name:<58} {value:8.2f} {unit}   (limit {limit:g})")
    return good


def main() -> int:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        floor = await_floor()
        print(f"floors: await {floor:.3f} µs · journal append {append_floor(folder):.2f} µs")
        thousand = chain(1000, "bench/quiet")

        def journal(path: Path) -> Journal:
            return Journal.create(path / "run" / "trace.jsonl")

        good = show("chain of 1,000, in memory", per_visit(thousand, lambda _: NoJournal()), 8)
        good &= show("chain of 1,000, journalled", per_visit(thousand, journal), 12)
        effects = chain(1000, "bench/impure")
        good &= show("chain of 1,000 impure, no sync", per_visit(effects, lambda p: Unsynced(journal(p))), 15)
        some = chain(200, "bench/impure")
        synced = per_visit(some, journal, rounds=2)
        base = min(sync_floor(folder, 200) for _ in range(3))
        good &= show(f"impure and synced, against a bare sync of {base:.0f} µs", synced / base, 1.4, "×")
        large = chain(100_000, "bench/quiet")
        good &= show("chain of 100,000, journalled", per_visit(large, journal, rounds=2), 18)
        good &= show("fan-out of 1,000", per_visit(fan(1000), lambda _: NoJournal(), width=1000), 20)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

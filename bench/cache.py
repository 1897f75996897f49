"""What the iteration cache costs: a hit, a write, and a fully cached file from the shell."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pflow import app
from pflow.nodes import node
from pflow.reuse.store import Entry, Store

SIZE = 1000


@node("bench/text", version="1")
async def text(size: int = SIZE, after: str = "") -> dict[str, str]:
    return {"text": "x" * size}


def document(folder: Path, count: int, size: int) -> Path:
    nodes: list[dict[str, Any]] = [{"id": "n0", "type": "bench/text", "params": {"size": size}}]
    for i in range(1, count):
        nodes.append({"id": f"n{i}", "type": "bench/text", "params": {"size": size, "after": f"${{n{i - 1}.text}}"}})
    path = folder / f"flow-{count}-{size}.json"
    path.write_text(json.dumps({"nodes": nodes}))
    return path


def once(path: Path, home: Path) -> tuple[float, app.Result]:
    workflow = app.load(path)

    result = asyncio.run(app.run(workflow, home=home, types=(text,), iterate=True, durable=False, keep=False))
    return result.duration, result


def library(folder: Path) -> list[tuple[str, float, float]]:
    """Milliseconds a node, executed and reused."""
    rows = []
    for count, size in ((1, 1000), (100, 1000), (1000, 1000), (10, 1_000_000)):
        path = document(folder, count, size)
        home = folder / "home"
        first, _ = once(path, home)
        best = float("inf")
        for _ in range(3):
            took, result = once(path, home)
            assert all(outcome.reused for outcome in result.visits.values())
            best = min(best, took)
        rows.append((f"{count:>5} nodes of {size:>9,} bytes", first / count * 1000, best / count * 1000))
    return rows


def store(folder: Path) -> tuple[float, float]:
    """Milliseconds to write and to look up one entry."""
    made = Store(folder / "store")
    entry = Entry({"text": "x" * SIZE}, {})
    began = time.perf_counter()
    for i in range(300):
        made.write(f"n{i}", entry)
    wrote = (time.perf_counter() - began) / 300 * 1000
    began = time.perf_counter()
    for i in range(300):
        assert made.read(f"n{i}") is not None
    return wrote, (time.perf_counter() - began) / 300 * 1000


def shell(folder: Path) -> tuple[float, float]:
    """Milliseconds of bare Python with asyncio, and of a fully cached file of 100 nodes, from the shell."""
    nodes = [
        {"id": f"n{i}", "type": "echo", "params": {"text": f"${{n{i - 1}.text}}" if i else "x"}} for i in range(100)
    ]
    path = folder / "hundred.json"
    path.write_text(json.dumps({"nodes": nodes}))
    environment = {**os.environ, "PFLOW_HOME": str(folder / "home")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def median(words: list[str]) -> float:
        times = []
        for _ in range(9):
            began = time.perf_counter()
            subprocess.run(words, env=environment, capture_output=True, check=True)
            times.append(time.perf_counter() - began)
        return sorted(times)[4] * 1000

    run = [sys.executable, "-m", "pflow", str(path)]
    median(run)
    return median([sys.executable, "-c", "import asyncio"]), median(run)


def disk(folder: Path) -> tuple[float, float]:
    """Megabytes that a run of 1,000 nodes of 1 KB leaves in its journal, and the peak of memory so far."""
    workflow = app.load(document(folder, 1000, 1000))
    result = asyncio.run(app.run(workflow, home=folder / "disk", types=(text,), durable=False))
    assert result.path is not None
    journal = (result.path / "trace.jsonl").stat().st_size / 1e6
    return journal, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(name: str, value: float, limit: float, unit: str) -> bool:
    good = value <= limit
    print(f"  {'ok ' if good else 'OVER'} {name:<58} {value:8.3f} {unit}   (limit {limit:g})")
    return good


def main() -> int:
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        wrote, read = store(folder)
        print(f"store: write {wrote:.3f} ms · look up {read:.3f} ms")
        good = True
        for what, executed, reused in library(folder):
            limit = 0.05 if "1,000 bytes" in what and not what.strip().startswith("1 ") else 10.0
            print(f"  {what}: executed {executed:.3f} ms a node")
            good &= show(f"{what}: reused", reused, limit, "ms")
        bare, cached = shell(folder)
        good &= show(f"100 cached nodes from the shell; import asyncio {bare:.0f}", cached, 150, "ms")
        journal, memory = disk(folder)
        good &= show(f"journal of 1,000 nodes of 1 KB; peak memory {memory:.0f} MB", journal, 1.5, "MB")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

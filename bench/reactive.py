"""What graphs cost: a push from node to node, many pushes to one node, and the turns of a long chat.

A turn late in a chat is compared with an early one of the same run, in time and in what it adds to the disk.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from run import ROUNDS, chain, per_visit, show, timed

from pflow.kernel.events import Hub
from pflow.kernel.ports import Guide
from pflow.kernel.run import Run
from pflow.llm.budget import Means, using
from pflow.model.records import Asked, Opened
from pflow.model.workflow import Edge, Node, Workflow
from pflow.nodes import Flow, Inputs, node
from pflow.nodes.registry import Registry
from pflow.nodes.type import describe_type
from pflow.planning.build import build
from pflow.planning.plan import Plan, Values
from pflow.storage.journal import Journal

NODES = 1000
PUSHES = 10_000
TURNS = 1000
PART = 100  # turns that are compared


@node("defaultContextStart", version="1", effect="quiet")
async def start(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Any) -> Any:
    return {"context": flow.main(None), "data": 1, "status": "success"}


@node("bench/pass", version="1", effect="quiet")
async def passing(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Any) -> Any:
    return {"data": data_in, "status": "success"}


@node("bench/all", version="1", effect="quiet")
async def everything(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Any) -> Any:
    stream = flow.step.stream()
    assert stream is not None
    while stream.seen() < PUSHES - 1:  # noqa: ASYNC110 - whoever pushes knows nothing of events
        await asyncio.sleep(0)
    return {"data": len(stream.values()), "status": "success"}


@node("bench/user", version="1", effect="quiet")
async def user(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Any) -> Any:
    return {"context": context, "data": await flow.wait_for_user_input(), "status": "success"}


@node("bench/bot", version="1", effect="quiet")
async def bot(flow: Flow, context: Any, data_in: Any, inputs: Inputs, config: Any) -> Any:
    said = [{"role": "user", "content": data_in}, {"role": "assistant", "content": data_in * 2}]
    return {"context": flow.context.add_messages(context, said), "status": "success"}


def planned(nodes: list[Node], edges: list[Edge]) -> Plan:
    types = [describe_type(kind, trusted=True) for kind in (start, passing, everything, user, bot)]
    workflow = Workflow("bench", "hifide", tuple(nodes), tuple(edges), scheduler="reactive")
    return build(workflow, Registry(types, installed=False))


def pushed() -> Plan:
    """A chain: each node pushes to the next."""
    nodes = [Node("start", "defaultContextStart"), *(Node(f"n{i}", "bench/pass") for i in range(NODES))]
    names = [one.id for one in nodes]
    return planned(nodes, [Edge(a, b, "data", port="data") for a, b in pairwise(names)])


def gathered() -> Plan:
    """Many nodes that push to one that is in flight."""
    names = [f"n{i}" for i in range(PUSHES)]
    nodes = [Node("start", "defaultContextStart"), *(Node(name, "bench/pass") for name in names)]
    edges = [Edge("start", name, "data", port="data") for name in names]
    return planned([*nodes, Node("all", "bench/all")], edges + [Edge(name, "all", "data", port=name) for name in names])


def chat() -> Plan:
    nodes = [Node("start", "defaultContextStart"), Node("user", "bench/user"), Node("bot", "bench/bot")]
    ports = [
        ("start", "user", "context"),
        ("user", "bot", "context"),
        ("user", "bot", "data"),
        ("bot", "user", "context"),
    ]
    return planned(nodes, [Edge(a, b, port, port=port) for a, b, port in ports])


def driven(plan: Plan, folder: Path, answer: Callable[[Asked], Any] | None = None) -> tuple[Run, float]:
    log = Journal.create(folder / "run" / "trace.jsonl")
    seen: list[Any] = []
    run = Run(plan, Values({}), "bench", log, hub=Hub(seen.append), guide=Guide(answer=answer))
    run.open(Opened(0.0, "bench", "graph", "hifide", plan.digest))
    with using(Means()):
        return run, timed(run)


def best(plan: Plan, rounds: int) -> tuple[Run, float]:
    fastest = float("inf")
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            run, took = driven(plan, Path(folder))
            fastest = min(fastest, took)
    return run, fastest


def turns() -> tuple[float, float, float]:
    """The time of an early turn, and what a late one takes and writes in terms of it."""
    stamps: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as name:
        trace = Path(name) / "run" / "trace.jsonl"

        async def answer(asked: Asked) -> str | None:
            stamps.append((time.perf_counter(), trace.stat().st_size))
            return "x" * 500 if len(stamps) <= TURNS else None

        run, _ = driven(chat(), Path(name), answer)
        assert run.status == "paused" and run.root.streams is not None and run.root.streams.main is not None
        assert len(run.root.streams.main) == 2 * TURNS
    early = (stamps[2 * PART][0] - stamps[PART][0]) / PART
    late = (stamps[TURNS][0] - stamps[TURNS - PART][0]) / PART
    disk = (stamps[TURNS][1] - stamps[TURNS - PART][1]) / (stamps[2 * PART][1] - stamps[PART][1])
    return early * 1e6, late / early, disk


def main() -> int:
    run, took = best(pushed(), ROUNDS)
    assert run.status == "completed" and len(run.memory.ended) == NODES + 1
    print(f"graphs: a chain of {NODES:,} nodes, {PUSHES:,} pushes to one node, a chat of {TURNS:,} turns; journalled")
    plain = per_visit(chain(NODES, "bench/quiet"), lambda folder: Journal.create(folder / "run" / "trace.jsonl"))
    visit = took / NODES * 1e6
    print(
        f"  a visit that was pushed to, with all its node is handed: {visit:.2f} µs; one in a plain chain: {plain:.2f}"
    )
    good = show("a push, above the visit that it starts", visit - plain, 20)
    run, took = best(gathered(), 2)
    assert run.status == "completed" and run.root.outputs()["all"]["data"] == PUSHES and "all#2" not in run.memory.ended
    good &= show("a push to a node in flight, and its own visit", took / PUSHES * 1e6, 40)
    turn, ratio, disk = min(turns() for _ in range(3))
    good &= show(f"a late turn against an early one of {turn:.0f} µs, in time", ratio, 1.3, "×")
    good &= show("a late turn against an early one, on disk", disk, 1.05, "×")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

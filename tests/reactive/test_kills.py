"""Killed at any record, a graph with feeds, pulls and waits comes to the end it would have come to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pflow.model.records import AnyRecord, Ended, Replied
from pflow.nodes.type import node
from pflow.testing import ListLog
from tests.kernel.driving import Driven
from tests.reactive.chats import flow, speaker

LINES = ["one", "two"]


@node("step", effect="quiet")
async def step(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
    for _ in range(config.get("slow", 0)):
        await asyncio.sleep(0)
    return {"context": context, "data": f"{config['name']}({data_in})", "status": "success"}


@node("pulls", effect="quiet")
async def pulls(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
    first = await inputs.pull("a")
    second = await inputs.pull("a")
    said = await flow.wait_for_user_input()
    return {"context": context, "data": f"{data_in}+{first}+{second}+{said}", "status": "success"}


@node("late", effect="quiet")
async def late(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
    """Begins with a context, and waits until the data arrive."""
    while not flow.step.stream().values().get("data"):
        await asyncio.sleep(0)
    return {"data": await inputs.pull("data"), "status": "success"}


@node("joins", effect="quiet")
async def joins(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
    return {"data": f"<{data_in}|{await inputs.pull('b')}>", "status": "success"}


GRAPH = flow(
    "start.context > fast.context", "start.context > slow.context", "start.context > hold.context",
    "slow.data > hold.data", "hold.data > kept.data", "fast.data > ask.data", "source.data > ask.a",
    "ask.data > last.data", "other.data > last.b", "last.data > again.data", "again.data > end.data",
    nodes={"fast": "step", "slow": "step", "hold": "late", "ask": "pulls", "source": "step", "last": "joins",
           "again": "userInput", "end": "step", "kept": "step", "other": "step"},
    fast={"name": "fast"}, slow={"name": "slow", "slow": 7}, source={"name": "source", "slow": 2}, end={"name": "end"},
    kept={"name": "kept"}, other={"name": "other"},
)  # fmt: skip
TYPES = (step, pulls, late, joins)


def driven(lines: list[str], records: list[AnyRecord] | None = None) -> Driven:
    run = Driven(GRAPH, TYPES, records=records or (), answer=speaker(lines))
    return run.drive() if run.run.memory.finished is None else run


def ends(records: list[AnyRecord]) -> list[str]:
    return [record.visit for record in records if isinstance(record, Ended)]


def rest(records: list[AnyRecord]) -> list[str]:
    return LINES[sum(isinstance(record, Replied) for record in records) :]


def test_it_ends_as_it_should() -> None:
    run = driven(LINES)
    assert run.status == "completed", run.ended
    assert run.outputs["last"]["data"] == "<fast(None)+source(None)+source(None)+one|other(None)>"
    assert run.outputs["end"]["data"] == "end(two)" and run.outputs["kept"]["data"] == "kept(slow(None))"


@pytest.mark.parametrize("second", [None, 1, 3], ids=["once", "and soon again", "and later again"])
def test_killed_anywhere_it_ends_the_same_and_repeats_nothing_that_ended(second: int | None) -> None:
    whole = driven(LINES)
    for count in range(1, len(whole.log.records)):
        kept = whole.log.records[:count]
        run = driven(rest(kept), kept)
        if second is not None:
            kept = run.log.records[: count + second]
            run = driven(rest(kept), kept)
        assert run.status == "completed", (count, run.ended)
        assert run.outputs["last"] == whole.outputs["last"] and run.outputs["end"] == whole.outputs["end"], count
        assert run.outputs["kept"] == whole.outputs["kept"]
        made = ends(run.log.records)
        assert len(made) == len(set(made)), f"killed after {count}, a visit that had ended was executed again"
        assert made.count("ask#1") == 1 and "hold#2" not in made


def test_live_and_replayed_states_are_one_after_every_record() -> None:
    live: list[dict[str, Any]] = []  # the state before each record is that after all the records before it
    log = ListLog(lambda record: live.append(run.run.root.scheduler.dump()) if log.records else None)
    run = Driven(GRAPH, TYPES, log=log, answer=speaker(list(LINES)))
    run.drive()
    assert run.status == "completed" and len(live) == len(log.records) - 1
    for count, state in enumerate(live, 1):
        if count > 1:  # before the first command there is nothing to compare
            replayed = Driven(GRAPH, TYPES, records=log.records[:count])
            assert replayed.run.root.scheduler.dump() == state, count

"""Law 2: any prefix of a journal resumes to the same end; live, replayed and loaded states are one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pflow.kernel.run import Run
from pflow.model.records import AnyRecord, Doubt, Ended, Fact, Tried
from pflow.model.workflow import Workflow
from pflow.schedulers.topological import Topological
from pflow.testing import ListLog
from tests.graphs import effect, mix, workflows
from tests.kernel.driving import Driven

TYPES = [mix, effect]
ROOT = Path(__file__).parents[2]


def state(run: Run) -> dict[str, Any]:
    """Everything that decides how a run goes on."""
    memory = {key: value for key, value in vars(run.memory).items() if not key.startswith("_")}
    return {
        "scheduler": run.root.scheduler.dump(),
        "values": dict(run.root.values),
        "started": dict(run.root.started),
        "finish": run.root.finish,
        **memory,
    }


@settings(max_examples=60)
@given(workflows(failures=True))
def test_the_live_state_is_the_fold_of_the_journal_at_every_record(flow: Workflow) -> None:
    driven: Driven

    def look(record: AnyRecord) -> None:
        if not log.records or not driven.run.root.awake:
            return
        # Between two records the run is where a replay of those so far would be.
        replayed = Driven(flow, TYPES, records=log.records)
        live, read = state(driven.run), state(replayed.run)
        for key in read:
            assert live[key] == read[key], (key, record)

    log = ListLog(look)
    driven = Driven(flow, TYPES, log=log)
    driven.drive()
    assert state(driven.run) | {"updated": 0} == state(Driven(flow, TYPES, records=log.records).run) | {"updated": 0}


@settings(max_examples=60)
@given(workflows(), st.data())
def test_any_prefix_resumes_to_the_same_end(flow: Workflow, data: st.DataObject) -> None:
    whole = Driven(flow, TYPES).drive()
    assert whole.status == "completed"
    for count in range(1, len(whole.log.records) + 1):
        resumed = whole.again(count, on_doubt="retry").drive()
        assert resumed.status == "completed"
        assert resumed.outputs == whole.outputs
        assert _ends(resumed.log.records) == _ends(whole.log.records)


def _ends(records: list[AnyRecord]) -> dict[str, Any]:
    """How each visit ended, without what time and crashes may change."""
    ends = [record for record in records if isinstance(record, Ended)]
    assert len({record.visit for record in ends}) == len(ends), "a completed visit was run again"
    return {record.visit: (record.outcome.status, record.outcome.outputs, record.outcome.route) for record in ends}


@settings(max_examples=60)
@given(workflows(failures=True), st.data())
def test_a_failed_run_resumes_from_any_prefix_without_repeating_what_completed(
    flow: Workflow, data: st.DataObject
) -> None:
    driven = Driven(flow, TYPES).drive()
    for _ in range(4):
        count = data.draw(st.integers(1, len(driven.log.records)))
        driven = driven.again(count, on_doubt="retry").drive()
        assert driven.status in ("completed", "failed")
        completed: set[str] = set()
        for record in driven.log.records:
            if isinstance(record, Ended):
                assert record.visit not in completed, "a completed visit was run again"
                if record.outcome.status == "completed":
                    completed.add(record.visit)


@settings(max_examples=40)
@given(workflows(), st.data())
def test_attempts_count_on_after_a_crash_and_a_crash_in_a_delay_is_no_doubt(
    flow: Workflow, data: st.DataObject
) -> None:
    whole = Driven(flow, TYPES).drive()
    tried = [i for i, record in enumerate(whole.log.records) if isinstance(record, Tried)]
    if not tried:
        return
    cut = data.draw(st.sampled_from(tried)) + 1
    resumed = whole.again(cut).drive()  # nobody decides doubts: there must be none about the visit that waits
    record = whole.log.records[cut - 1]
    assert isinstance(record, Tried)
    doubts = [one.visit for one in resumed.log.records if isinstance(one, Doubt)]
    assert record.visit not in doubts
    if resumed.status == "completed":
        before = {r.visit: r.outcome.attempts for r in whole.log.records if isinstance(r, Ended)}
        after = {r.visit: r.outcome.attempts for r in resumed.log.records if isinstance(r, Ended)}
        assert after[record.visit] == before[record.visit]


@settings(max_examples=60)
@given(workflows(failures=True))
def test_a_scheduler_loaded_from_its_dump_goes_on_like_the_live_one(flow: Workflow) -> None:
    driven = Driven(flow, TYPES).drive()
    plan = driven.run.root.plan
    facts: list[Fact] = [r for r in driven.log.records if isinstance(r, Ended) and "/" not in r.visit]
    values: dict[str, Any] = {}
    live = Topological(plan.graph, values, width=flow.width)
    live.start()
    for fact in facts:
        loaded = Topological(plan.graph, values, width=flow.width)
        loaded.load(json.loads(msgspec.json.encode(live.dump())))
        assert loaded.on(fact) == live.on(fact)
        assert loaded.dump() == live.dump()


HASHED = """
import sys
from tests.kernel.test_laws import TYPES
from tests.kernel.driving import Driven
import msgspec
from pflow.model.workflow import Workflow
flow = msgspec.json.decode(sys.stdin.buffer.read(), type=Workflow)
driven = Driven(flow, TYPES).drive()
for record in driven.log.records:
    data = msgspec.to_builtins(record)
    data.get("outcome", {}).pop("ms", None)
    data.get("outcome", {}).get("failure", {}).pop("stack_trace", None)
    data.get("failure", None) and data["failure"].pop("stack_trace", None)
    sys.stdout.buffer.write(msgspec.json.encode(data) + b"\\n")
"""


@settings(max_examples=3)
@given(workflows(failures=True))
def test_the_journal_does_not_depend_on_the_hash_seed(flow: Workflow) -> None:
    document = msgspec.json.encode(flow)
    seen = set()
    for seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", HASHED], input=document, capture_output=True, env=environment, cwd=ROOT, check=True
        )
        seen.add(done.stdout)
    assert len(seen) == 1

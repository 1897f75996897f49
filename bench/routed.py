"""What going from node to node costs where the outcome of each says where to go: transitions, agents left out.

Beside the time there is the ratio to a chain of as many visits whose order is known, measured a moment earlier.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

from run import ROUNDS, chain, per_visit, show, timed

from pflow.dialects.dotrunner import parse
from pflow.documents.source import load
from pflow.kernel.events import Hub
from pflow.kernel.run import Run
from pflow.model.records import Opened
from pflow.nodes import node
from pflow.nodes.registry import Registry
from pflow.nodes.type import describe_type
from pflow.planning.build import build
from pflow.planning.plan import Plan, Values
from pflow.storage.journal import Journal

VISITS = 1000
LOOP = f"""
name: loop
nodes:
  - id: work
    agent: somebody
    prompt: "go on from {{start}}"
    outputs: [n]
    max_visits: {VISITS}
    next:
      - {{when: "n >= {VISITS}", goto: end}}
      - {{default: check}}
  - id: check
    agent: somebody
    prompt: "is {{n}} enough?"
    outputs: [n]
    max_visits: {VISITS}
    next: {{enough: end, default: work}}
  - {{id: end, agent: somebody, prompt: "{{n}}", type: terminal}}
"""
_turns = count(1)


@node("agent", version="1", effect="quiet")
async def agent(prompt: str, agent: str, outputs: Any = None) -> dict[str, int]:
    """An agent that answers at once: how often it was asked."""
    return {"n": next(_turns)}


def loop() -> Plan:
    return build(parse(load(LOOP, "loop.yaml")), Registry([describe_type(agent, trusted=True)], installed=False))


def per_transition(plan: Plan) -> float:
    """Microseconds a visit, journalled, the best of some rounds, with one subscriber."""
    global _turns
    best = float("inf")
    for _ in range(ROUNDS):
        _turns = count(1)
        with tempfile.TemporaryDirectory() as folder:
            log = Journal.create(Path(folder) / "run" / "trace.jsonl")
            seen: list[Any] = []
            run = Run(plan, Values({"start": "x"}), "bench", log, hub=Hub(seen.append))
            run.open(Opened(0.0, "bench", "loop", "dotrunner", plan.digest))
            took = timed(run)
            assert run.status == "completed", run.memory.finished
            assert len(run.memory.ended) >= VISITS
            best = min(best, took / len(run.memory.ended) * 1e6)
    return best


def main() -> int:
    known = per_visit(chain(VISITS, "bench/quiet"), lambda folder: Journal.create(folder / "run" / "trace.jsonl"))
    routed = per_transition(loop())
    print(f"routed: a loop of {VISITS:,} visits, journalled; a chain of as many: {known:.2f} µs a visit")
    good = show("a transition, agent excluded", routed, 20)
    good &= show("against a visit whose successor is known", routed / known, 2, "×")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

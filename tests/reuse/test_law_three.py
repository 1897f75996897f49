"""Law 3: over any session of edits, failures, kills and runs, a node runs again exactly when it must.

The real engine, on real files, against a naive model that keeps everything it ever saw in a dictionary.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pflow import NodeError, StepContext, app, flow_safe, node
from pflow.kernel.run import Run
from pflow.nodes.type import describe_type
from tests.reuse.iterating import Iterating


class Session(Iterating):
    """A file whose nodes act, fail, or are killed while they act."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.kill: set[str] = set()
        self.order: list[str] = []
        self.driven: Run | None = None

    def types(self) -> tuple[Any, ...]:
        async def work(step: StepContext, text: str) -> dict[str, Any]:
            self.order.append(step.node_id)
            if step.node_id in self.kill:
                assert self.driven is not None
                self.driven.interrupt()  # what is left behind is what a death leaves behind
                await asyncio.Event().wait()
            if step.node_id in self.fail:
                raise NodeError("broken")
            return {"text": text}

        @node("t/act")
        async def act(step: StepContext, text: str) -> dict[str, Any]:
            return await work(step, text)

        @flow_safe
        @node("t/pure", effect="pure", version="1")
        async def pure(step: StepContext, text: str) -> dict[str, Any]:
            return await work(step, text)

        return (act, describe_type(pure, trusted=True))

    def go(self) -> list[str]:
        self.order = []

        def started(session: app.Session) -> None:
            self.driven = session.run

        self.run(started=started, on_doubt="retry", durable=False)
        return self.order


class Shape:
    """A graph whose nodes are edited by giving them another version."""

    def __init__(self, kinds: list[str], above: list[list[int]], reads: list[list[int]]) -> None:
        self.kinds, self.above, self.reads = kinds, above, reads
        self.versions = [0] * len(kinds)
        self.missing: set[int] = set()  # nodes that are commented out

    def upstream(self, i: int) -> list[int]:
        return [u for u in sorted({*self.above[i], *self.reads[i]}) if u not in self.missing]

    def document(self) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
        here = [i for i in range(len(self.kinds)) if i not in self.missing]
        nodes = [
            {
                "id": f"n{i}",
                "type": self.kinds[i],
                "params": {
                    "text": f"v{self.versions[i]}" + "".join(f"${{n{r}.text}}" for r in self.reads[i] if r in here)
                },
            }
            for i in here
        ]
        return nodes, [{"from": f"n{u}", "to": f"n{i}"} for i in here for u in self.upstream(i)]


class Model:
    """What must happen, by the definition and nothing else."""

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}
        self.unique = itertools.count()

    def run(self, shape: Shape, order: list[str], fail: set[str], kill: set[str]) -> list[str]:
        ran: list[str] = []
        value: dict[int, str] = {}
        lineage: dict[int, Any] = {}
        for name in order:
            i = int(name[1:])
            reads = [r for r in shape.reads[i] if r not in shape.missing]
            value[i] = f"v{shape.versions[i]}" + "".join(value[r] for r in reads)
            before = tuple((u, lineage[u]) for u in shape.upstream(i))
            pure = shape.kinds[i] == "t/pure"
            key = (i, "pure", value[i]) if pure else (i, shape.versions[i], tuple(reads), before)
            if key not in self.entries:
                ran.append(name)
                if name in kill or name in fail:
                    return ran
                self.entries[key] = ("made", next(self.unique))
            lineage[i] = ("pure", key, before) if pure else self.entries[key]
        return ran


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    count = draw(st.integers(2, 5))
    kinds = [draw(st.sampled_from(["t/act", "t/act", "t/pure"])) for _ in range(count)]
    earlier = [st.lists(st.integers(0, i - 1), max_size=2, unique=True) if i else st.just([]) for i in range(count)]
    return Shape(kinds, [draw(one) for one in earlier], [sorted(draw(one)) for one in earlier])


@settings(max_examples=40)
@given(shapes(), st.data())
def test_a_node_runs_again_exactly_when_it_must(shape: Shape, data: st.DataObject) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Path(folder))
        for _ in range(data.draw(st.integers(2, 6), label="runs")):
            i = data.draw(st.integers(0, len(shape.kinds) - 1), label="node")
            match data.draw(st.sampled_from(["nothing", "edit", "back", "fail", "kill", "out"]), label="step"):
                case "edit":
                    shape.versions[i] += 1
                case "back":
                    shape.versions[i] = max(0, shape.versions[i] - 1)
                case "fail":
                    session.fail = {f"n{i}"}
                case "kill":
                    session.kill = {f"n{i}"}
                case "out" if len(shape.missing) + 1 < len(shape.kinds):
                    shape.missing ^= {i}
            nodes, edges = shape.document()
            if not edges and len(nodes) > 1:
                continue  # would be read as a chain
            session.write(*nodes, edges=edges)
            order = list(app.plan(app.load(session.path), app.Options(types=session.types())).order)
            must = model.run(shape, order, session.fail, session.kill)
            assert session.go() == must
            session.fail, session.kill = set(), set()

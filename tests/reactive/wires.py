"""Graphs of ports for tests of the reactive scheduler."""

from __future__ import annotations

from typing import Any

from pflow.model.graph import Graph, Wire
from pflow.model.records import PULL, Answer, Asked, Command, Ended, Feed, Finish, Outcome, Say, Start
from pflow.schedulers.reactive import Reactive


def graph(*edges: str, entry: str = "start") -> Graph:
    """A graph from edges such as ``a.data > b.context``; a port that is left out is ``data``."""
    ends = [tuple(_end(part) for part in edge.split(">")) for edge in edges]
    ids = list(dict.fromkeys([entry, *(node for pair in ends for node, _ in pair)]))
    wires = tuple(Wire(ids.index(a), out, ids.index(b), port) for (a, out), (b, port) in ends)
    empty = tuple(() for _ in ids)
    return Graph(tuple(ids), (0,) * len(ids), empty, (False,) * len(ids), wires=wires, entry=ids.index(entry))


def _end(text: str) -> tuple[str, str]:
    node, _, port = text.strip().partition(".")
    return node, port or "data"


class Play:
    """A scheduler driven by hand; keeps what it commanded."""

    def __init__(self, *edges: str, spin: int = 1000) -> None:
        self.scheduler = Reactive(graph(*edges), spin=spin)
        self.started: dict[str, Start] = {}
        self.running: list[str] = []
        self.finish: Finish | None = None
        self.fed: dict[str, int] = {}
        self.time = 0.0
        self.last: list[Command] = []
        self._take(self.scheduler.start())

    def end(self, visit: str, /, status: Any = "completed", seen: int | None = None, **outputs: Any) -> list[Command]:
        """A visit ends, having seen all it was fed unless said otherwise."""
        self.running.remove(visit)
        count = self.fed.get(visit, 0) if seen is None else seen
        return self.post(Ended(self._now(), visit, Outcome(status, outputs), count))

    def pull(self, visit: str, port: str = "data", n: int = 0) -> list[Command]:
        return self.post(Asked(self._now(), visit, 1, PULL + port, n))

    def wait(self, visit: str) -> list[Command]:
        return self.post(Asked(self._now(), visit, 1, "user", 0))

    def post(self, fact: Any) -> list[Command]:
        return self._take(self.scheduler.on(fact))

    def _now(self) -> float:
        self.time += 1
        return self.time

    def _take(self, commands: list[Command]) -> list[Command]:
        for command in commands:
            if isinstance(command, Start):
                self.started[command.visit.id] = command
                self.running.append(command.visit.id)
            elif isinstance(command, Feed):
                self.fed[command.visit] = self.fed.get(command.visit, 0) + 1
            elif isinstance(command, Finish):
                self.finish = command
        self.last = commands
        return commands

    def inputs(self, visit: str) -> dict[str, Any]:
        return self.started[visit].visit.inputs

    def answers(self) -> list[Answer]:
        return [command for command in self.last if isinstance(command, Answer)]

    def said(self, kind: str) -> list[dict[str, Any]]:
        return [{"node": one.node, **one.data} for one in self.last if isinstance(one, Say) and one.kind == kind]

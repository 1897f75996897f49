"""What every scheduler must hold to, whatever it decides.

    Conformance(make, end).check(choose)

drives a scheduler with facts in any order, and compares it after every fact with one that was fed the same facts and
with one that was loaded from its dump.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pflow.model.records import Cancelled, Command, Ended, Fact, Finish, Outcome, Start, Stop, Visit
from pflow.schedulers.protocol import Scheduler


class Conformance:
    """One scheduler under test: ``make`` makes it afresh, ``end`` says how a visit ends."""

    def __init__(self, make: Callable[[], Scheduler], end: Callable[[Visit], Outcome]) -> None:
        self._make = make
        self._end = end
        self.facts: list[Fact] = []
        self.running: dict[str, Visit] = {}
        self.seen: set[str] = set()
        self.stopping: set[str] = set()
        self.finish: Finish | None = None

    def check(self, choose: Callable[[int], int], cancel_at: int = -1) -> Finish:
        """Run to the end, ending the visit that ``choose`` picks among those running each time."""
        scheduler = self._make()
        self._take(scheduler.start())
        for count in range(100_000):
            if self.finish is not None:
                return self.finish
            assert self.running, "it neither finished nor has anything running"
            fact: Fact
            if count == cancel_at:
                fact = Cancelled(float(count), "run", "test")
            else:
                visit = list(self.running.values())[choose(len(self.running))]
                fact = Ended(float(count), visit.id, self._outcome(visit))
                del self.running[visit.id]
            self.facts.append(fact)
            loaded = self._make()
            loaded.load(_through_json(scheduler.dump()))
            commands = scheduler.on(fact)
            assert loaded.on(fact) == commands, "loaded from its dump, it decides differently"
            assert loaded.dump() == scheduler.dump(), "loaded from its dump, it is in another state"
            assert self._replayed().dump() == scheduler.dump(), "fed the same facts, it is in another state"
            self._take(commands)
        raise AssertionError("it never finished")

    def _outcome(self, visit: Visit) -> Outcome:
        if visit.id in self.stopping:
            return Outcome("cancelled")
        return self._end(visit)

    def _take(self, commands: list[Command]) -> None:
        for command in commands:
            assert self.finish is None, f"a command after Finish: {command}"
            if isinstance(command, Start):
                assert not self.stopping, f"started after Stop: {command}"
                assert command.visit.id not in self.seen, f"a visit id given twice: {command}"
                assert command.visit.id.endswith(f"#{command.visit.n}")
                self.seen.add(command.visit.id)
                self.running[command.visit.id] = command.visit
            elif isinstance(command, Stop):
                assert command.visit in self.running, f"stopped what does not run: {command}"
                self.stopping.add(command.visit)
            elif isinstance(command, Finish):
                assert not self.running, f"finished while {list(self.running)} run"
                self.finish = command

    def _replayed(self) -> Scheduler:
        fresh = self._make()
        fresh.start()
        for fact in self.facts:
            fresh.on(fact)
        return fresh


def _through_json(state: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(state))
    return made

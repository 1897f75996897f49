"""What a run remembers: the fold of its journal, the same whether a record is being written or was read."""

from __future__ import annotations

from typing import Any

from pflow.model.records import (
    PULL,
    AnyRecord,
    Asked,
    Began,
    Cancelled,
    Decision,
    Doubt,
    Ended,
    Fact,
    Failure,
    Finished,
    Loaded,
    Opened,
    Outcome,
    Reopened,
    Replied,
    Shared,
    Space,
    Stored,
    Tried,
    Used,
)
from pflow.model.visit import is_nested, owner_of, prefix_of

AskKey = tuple[str, str, int]  # visit, port, n

_OPEN = ("timeout", "lost")  # failures, beside a cancel, that leave open whether the visit took effect


class Memory:
    """The state of a run, apart from what its schedulers hold."""

    def __init__(self) -> None:
        self.opened: Opened | None = None
        self.finished: Finished | None = None
        self.updated = 0.0  # the time of the last record
        self.ended: dict[str, Outcome] = {}  # by visit, in the order in which they ended
        self.begun: dict[str, int] = {}  # visits with an intent and no word of how it went → the attempt
        self.tried: dict[str, int] = {}  # visits that failed and have not succeeded since → attempts so far
        self.failed_before: dict[str, int] = {}  # of those, the attempts before the run was reopened
        self.wait_until: dict[str, float] = {}  # when the next attempt is due
        self.decided: dict[str, Decision] = {}  # doubts that were settled
        self.asked: dict[AskKey, Asked] = {}  # open questions
        self.replies: dict[AskKey, Any] = {}
        self.used: dict[str, dict[str, Any]] = {}  # what the failed attempts of visits that did not succeed used
        self.shared: dict[str, Any] = {}  # what nodes left for each other
        self.stored: dict[Space, dict[str, Any]] = {}  # what a graph's nodes put into its store
        self.loaded: dict[str, str] = {}  # documents that were loaded on the way → the run's copy
        self.held: dict[str, Failure] = {}  # visits that were refused something and have not ended → what
        self.nested: dict[str, dict[str, list[Fact]]] = {}  # composite visit → prefix → the facts below it
        self._folds: dict[type, Any] = {
            Opened: self._opened,
            Ended: self._ended,
            Asked: self._asked,
            Reopened: self._reopened,
            Began: self._began,
            Tried: self._tried,
            Replied: self._replied,
            Doubt: self._doubt,
            Shared: self._shared,
            Stored: self._stored,
            Loaded: self._loaded,
            Finished: self._finished,
            Cancelled: self._nothing,
            Used: self._used,
        }

    def fold(self, record: AnyRecord) -> None:
        """Take in one record."""
        self.updated = record.t
        self._folds[type(record)](record)

    def next_attempt(self, visit: str) -> int:
        """The number of a visit's next attempt, counted from 1 over all of the run's life."""
        return self.tried.get(visit, 0) + 1

    def below(self, owner: str, prefix: str) -> list[Fact]:
        """The facts of a nested scope, as far as they go."""
        return self.nested.get(owner, {}).get(prefix, [])

    def _opened(self, record: Opened) -> None:
        self.opened = record

    def _ended(self, record: Ended) -> None:
        visit, outcome = record.visit, record.outcome
        self.ended.pop(visit, None)
        self.ended[visit] = outcome
        if is_nested(visit):
            self._keep(visit, record)
        if self.wait_until:
            self.wait_until.pop(visit, None)
            self.held.pop(visit, None)
        if self.asked:
            self.asked = {key: ask for key, ask in self.asked.items() if key[0] != visit}
        if outcome.status == "completed" or outcome.status == "skipped":
            self.begun.pop(visit, None)
            if self.tried:
                self.tried.pop(visit, None)
            if self.used:
                self.used.pop(visit, None)
            if self.nested:
                self._forget(visit)
            return
        if outcome.usage:
            self.used[visit] = outcome.usage
        if outcome.status == "failed":
            self.tried[visit] = outcome.attempts
            if outcome.failure is None or outcome.failure.kind not in _OPEN:
                self.begun.pop(visit, None)  # it said how it went
        self.decided.pop(visit, None)

    def _asked(self, record: Asked) -> None:
        if not record.port.startswith(PULL):
            self.asked[record.visit, record.port, record.n] = record
        if is_nested(record.visit):
            self._keep(record.visit, record)

    def _reopened(self, record: Reopened) -> None:
        self.finished = None
        self.failed_before = dict(self.tried)
        for scopes in self.nested.values():
            for facts in scopes.values():
                facts.append(record)

    def _began(self, record: Began) -> None:
        self.begun[record.visit] = record.attempt
        if self.decided:
            self.decided.pop(record.visit, None)

    def _tried(self, record: Tried) -> None:
        visit = record.visit
        self.begun.pop(visit, None)
        self.tried[visit] = record.attempt
        self.wait_until[visit] = record.again_at
        if record.failure.kind == "budget":
            self.held[visit] = record.failure
            self.failed_before[visit] = record.attempt  # it was not even tried
        self._reopen_below(visit, Reopened(record.t, ""))

    def _replied(self, record: Replied) -> None:
        key = (record.visit, record.port, record.n)
        self.replies[key] = record.value
        self.asked.pop(key, None)

    def _doubt(self, record: Doubt) -> None:
        self.decided[record.visit] = record.decision
        if record.decision == "retry":
            self.begun.pop(record.visit, None)
            self.tried[record.visit] = record.attempt

    def _used(self, record: Used) -> None:
        self.used[record.visit] = record.usage

    def _shared(self, record: Shared) -> None:
        self.shared[record.key] = record.value

    def _stored(self, record: Stored) -> None:
        space = self.stored.setdefault(record.space, {})
        space.pop(record.key, None)
        if record.value is not None:
            space[record.key] = record.value

    def _loaded(self, record: Loaded) -> None:
        self.loaded[record.path] = record.name

    def _finished(self, record: Finished) -> None:
        self.finished = record

    def _nothing(self, record: AnyRecord) -> None:
        """Told to schedulers, or shown to people; nothing to remember."""

    def _keep(self, visit: str, fact: Fact) -> None:
        prefix = prefix_of(visit)
        self.nested.setdefault(owner_of(prefix), {}).setdefault(prefix, []).append(fact)

    def _forget(self, visit: str) -> None:
        """Drop what happened below a visit that is done for good."""
        for facts in self.nested.pop(visit, {}).values():
            for fact in facts:
                if type(fact) is Ended:
                    self._forget(fact.visit)

    def _reopen_below(self, visit: str, marker: Reopened) -> None:
        """A composite that is tried again takes up its children where they failed."""
        for facts in self.nested.get(visit, {}).values():
            ends = [fact for fact in facts if type(fact) is Ended]
            for child in sorted({fact.visit for fact in ends if fact.outcome.status in ("failed", "cancelled")}):
                self.failed_before[child] = self.tried.get(child, 0)
                self._reopen_below(child, marker)
            facts.append(marker)

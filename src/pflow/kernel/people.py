"""The people that a run waits for: questions and doubts are theirs to settle, and messages reach the run here.

A run pauses when nothing is at work any more, somebody waits, and nobody here can answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from pflow.kernel import events
from pflow.kernel.memory import AskKey
from pflow.kernel.scope import Ready, Scope
from pflow.model.reason import Reason
from pflow.model.records import Asked, Decision, Doubt, Failure, Outcome, Replied, Tried
from pflow.model.value import plain
from pflow.model.visit import node_of
from pflow.nodes.step import StepContext
from pflow.storage import inbox

if TYPE_CHECKING:
    from pflow.kernel.run import Run

USER = "user"  # the port of questions to a person
DOUBT = "doubt"
HELD = "held"
_LOOK = 0.2  # seconds between looks into the inbox


class People:
    """The people that one run waits for, and the messages that reach it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.doubts: dict[str, int] = {}  # visits that wait for a decision → the attempt that was cut off
        self.held: dict[str, Failure] = {}  # visits that wait for the run to be resumed with more
        self._one_at_a_time = asyncio.Lock()  # there is one terminal
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Begin to look for messages."""
        if self._run.guide.folder is not None:
            self._receive_now_and_later()

    def close(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()

    async def ask(self, step: StepContext, scope: Scope, n: int, question: str, choices: tuple[str, ...]) -> Any:
        """The answer to a question: the recorded one, or that of whoever answers first."""
        run = self._run
        key = (step.visit, USER, n)
        if key in run.memory.replies:
            return run.memory.replies[key]
        if key not in run.memory.asked:
            run.post(scope, Asked(run.clock.now(), step.visit, step.attempt, USER, n, question, choices))
        asked = run.memory.asked[key]
        step.emit("ask", question=question, choices=list(choices), visit=step.visit)
        answer = run.guide.answer
        await run.waits.wait(key, None if answer is None else partial(self._answer, answer, asked))
        return run.memory.replies[key]

    async def _answer(self, answer: Callable[[Asked], Awaitable[Any]], asked: Asked) -> None:
        async with self._one_at_a_time:
            value = await answer(asked)
        if value is not None:
            self.reply((asked.visit, asked.port, asked.n), value)

    def reply(self, key: AskKey, value: Any) -> None:
        """Take an answer: it is on disk before anybody hears of it."""
        run = self._run
        run.note(Replied(run.clock.now(), *key, plain(value)))
        run.journal.sync()
        run.waits.answer(key)

    async def settle(self, scope: Scope, ready: Ready, attempt: int) -> Outcome | None:
        """Decide about a visit whose effect may have happened: an outcome, or None to run it again."""
        run, visit = self._run, ready.visit.id
        if visit not in run.memory.decided:
            decision = run.guide.on_doubt
            if decision is None:
                events.doubt(run, scope, visit, attempt)
                self.doubts[visit] = attempt
                key, decide = (visit, DOUBT, attempt), run.guide.decide
                decision = await run.waits.wait(key, None if decide is None else partial(self._decide, decide, key))
            assert decision is not None
            self.doubts.pop(visit, None)
            run.note(Doubt(run.clock.now(), visit, attempt, decision))
        return _settled(run.memory.decided[visit], ready, attempt)

    async def _decide(self, decide: Callable[[str, int], Awaitable[Decision | None]], key: AskKey) -> None:
        async with self._one_at_a_time:
            decision = await decide(key[0], key[2])
        if decision is not None:
            self._run.waits.answer(key, decision)

    async def hold(self, ready: Ready, failure: Failure) -> None:
        """Hold a visit that cannot go on now, until the run is resumed with more."""
        run, visit = self._run, ready.visit.id
        run.note_usage(ready)
        if not failure.details.get("acted"):  # else its intent stands, and it is in doubt
            run.note(Tried(run.clock.now(), visit, ready.attempt, failure))
        ready.attempt += 1
        ready.begun = False
        self.held[visit] = failure
        await run.waits.wait((visit, HELD, ready.attempt))

    # ── pausing, and messages ──

    def pause_if_stuck(self) -> None:
        """Leave the run if it can only wait; what has just arrived may be the answer."""
        if self._run.waits.only_pause():
            self._receive()
        if self._run.waits.only_pause():
            self._run.leave("paused")

    def _receive_now_and_later(self) -> None:
        self._receive()
        self._timer = asyncio.get_running_loop().call_later(_LOOK, self._receive_now_and_later)

    def _receive(self) -> None:
        """Take messages that the run can act on; the others stay until it can."""
        folder = self._run.guide.folder
        if folder is None or not inbox.pending(folder):
            return
        for name, message in inbox.drain(folder):
            if self._heed(message):
                inbox.remove(folder, name)

    def _heed(self, message: dict[str, Any]) -> bool:
        if message.get("kind") == "cancel":
            self._run.cancel(str(message.get("why", "")))
            self._run.journal.sync()
            return True
        if message.get("kind") != "reply":
            return True  # nobody knows what it means
        visit, node = message.get("visit"), message.get("node")
        for key in list(self._run.memory.asked):
            if key[1] == USER and visit in (None, key[0]) and node in (None, node_of(key[0])):
                self.reply(key, message.get("value"))
                return True
        return False


def _settled(decision: Decision, ready: Ready, attempt: int) -> Outcome | None:
    if decision == "retry":
        ready.attempt = attempt + 1
        return None
    if decision == "skip":
        return Outcome("skipped", reason=Reason("settled", (str(attempt),)), attempts=attempt)
    message = f"attempt {attempt} was cut off and may have taken effect"
    return Outcome("failed", failure=Failure("doubt", message, "check what it did, then resume"), attempts=attempt)

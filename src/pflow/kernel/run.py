"""A run: carries out its schedulers' commands, and writes every fact down before it tells anyone.

    post(fact):  append to the journal → fold → publish → tell the scheduler → apply its commands
    launch:      all intents → one sync → the finishing worker takes the first visit, tasks take the others

Replay is the same road without appending and launching, so a resumed run is in the state in which it stopped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from pflow.errors import InternalError
from pflow.kernel import reusing, telling
from pflow.kernel.clock import Clock, SystemClock
from pflow.kernel.desk import Desk, Guide
from pflow.kernel.door import Door
from pflow.kernel.execute import execute, prepare
from pflow.kernel.feed import Hub
from pflow.kernel.live import Live
from pflow.kernel.memory import Memory
from pflow.kernel.ports import Log, Watcher
from pflow.kernel.scope import Ready, Scope, cancelled
from pflow.model.run import (
    Answer,
    Asked,
    Began,
    Cancelled,
    Command,
    Ended,
    Fact,
    Failure,
    Feed,
    Finish,
    Finished,
    Note,
    Opened,
    RunStatus,
    Say,
    Shared,
    Start,
    Stop,
    Tried,
    Used,
)
from pflow.model.value import plain
from pflow.nodes.step import StepContext, add_usage
from pflow.planning.plan import Plan, Values
from pflow.reuse.policy import Never, Reuse

SLICE = 0.01  # seconds a worker keeps the event loop to itself


class Run:
    """One run of a plan; ``drive`` it once."""

    def __init__(
        self,
        plan: Plan,
        values: Values,
        run_id: str,
        journal: Log,
        *,
        width: int = 1,
        hub: Hub | None = None,
        clock: Clock | None = None,
        reuse: Reuse | None = None,
        guide: Guide | None = None,
        workspace: Path | None = None,
    ) -> None:
        self.run_id = run_id
        self.journal = journal
        self.width = width
        self.hub = hub or Hub()
        self.clock: Clock = clock or SystemClock()
        self.reuse: Reuse = reuse or Never()
        self.guide = guide or Guide()
        self.workspace = workspace or Path.cwd()
        self.memory = Memory()
        self.desk = Desk(self)
        self.door = Door(self)
        self.root = Scope(plan, values, "", "", width, spin=self.guide.spin)
        self.left: Literal["", "paused", "interrupted"] = ""  # why the run was left unfinished
        self.watcher: Watcher | None = None
        self.busy = 0  # visits at work, those that only wait not counted
        self.leaving = False
        self._error: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._posted: deque[tuple[Scope, Fact]] = deque()
        self._done: asyncio.Future[None] | None = None
        self._yielded = 0.0

    @property
    def status(self) -> RunStatus:
        """How the run stands."""
        finished = self.memory.finished
        return finished.status if finished else self.left or "running"

    # ── driving ──

    def open(self, record: Opened) -> None:
        """Write the first record."""
        self.note(record)

    async def drive(self) -> None:
        """Run until the end, a pause or an interrupt; see ``status`` for which."""
        self._done = asyncio.get_running_loop().create_future()
        self._yielded = perf_counter()
        telling.phase(self, "phase:start")
        self.desk.open()
        try:
            self.enter(self.root)
            await self._done
        finally:
            self.desk.close()
            await self._leave()
        if self._error is not None:
            raise self._error
        telling.phase_ended(self)

    def enter(self, scope: Scope) -> None:
        """Start a scope, or take it up where its recorded facts left it."""
        if not scope.awake:
            self._apply(scope, scope.wake())
        else:
            taken_up = list(scope.started.values())
            if scope.finish is not None and not taken_up:
                self._finish(scope, scope.finish)
            for visit in taken_up:
                if visit.id in scope.stopping:
                    stopped = cancelled(scope.stopping[visit.id], self.memory.next_attempt(visit.id))
                    self._posted.append((scope, Ended(self.clock.now(), visit.id, stopped)))
                else:
                    self._apply(scope, [Start(visit)])
        self._work_off()
        self.go(scope)

    def interrupt(self) -> None:
        """Leave now; nothing is written, so the run can be resumed where it is."""
        self.leave("interrupted")

    def cancel(self, why: str = "") -> None:
        """End the run for good: what is under way is stopped."""
        if self.memory.finished is None and not self.leaving:
            self.post(self.root, Cancelled(self.clock.now(), self.run_id, why))

    def leave(self, why: Literal["paused", "interrupted"]) -> None:
        """Stop driving without an end."""
        if self._done is not None and not self._done.done():
            self.left = why
            self.leaving = True
            self._done.set_result(None)

    async def _leave(self) -> None:
        self.leaving = True
        if self.memory.finished is None and not self.left:
            self.left = "interrupted"
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    def crash(self, error: BaseException) -> None:
        """Something of our own went wrong: the run ends here, and its journal tells how far it came."""
        self.leaving = True
        if self._error is None:
            self._error = error
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    # ── recording and deciding ──

    def note(self, record: Note) -> None:
        """Write down something that schedulers need not know."""
        self.journal.append(record)
        self.memory.fold(record)

    def post(self, scope: Scope, fact: Fact) -> None:
        """Write a fact down, then let it take its course."""
        self._posted.append((scope, fact))
        if len(self._posted) == 1:
            self._work_off()

    def _work_off(self) -> None:
        posted = self._posted
        while posted:
            scope, fact = posted[0]
            self.journal.append(fact)
            self.memory.fold(fact)
            if type(fact) is Ended:
                if self.hub.sinks:
                    telling.ended(self, scope, fact)
                if self.watcher is not None:
                    self.watcher.touch(fact.visit, None)
                scope.fold(fact.visit, fact.outcome)
                if scope.live is not None:
                    telling.conversations(self, scope, fact.visit, scope.live.ended(fact.visit, fact.outcome))
            elif type(fact) is Asked and scope.live is not None:
                scope.live.ask(fact)
            self._apply(scope, scope.scheduler.on(fact))
            posted.popleft()

    def _apply(self, scope: Scope, commands: list[Command]) -> None:
        for command in commands:
            if type(command) is Start:
                visit = command.visit
                scope.started[visit.id] = visit
                made = prepare(self, scope, visit)
                if isinstance(made, Ready):
                    scope.ready.append(made)
                else:
                    self._posted.append((scope, Ended(self.clock.now(), visit.id, scope.route(visit, made))))
            elif type(command) is Stop:
                self._stop(scope, command.visit, command.why)
            elif type(command) is Finish:
                self._finish(scope, command)
            elif scope.live is not None:
                self._flow(scope, scope.live, command)
            else:
                raise InternalError(f"the scheduler gave a command that the kernel does not know: {command}")

    def _flow(self, scope: Scope, live: Live, command: Command) -> None:
        """Hand values to visits that are under way."""
        if type(command) is Feed:
            live.feed(command.visit, command.values)
        elif type(command) is Answer:
            self.busy += live.answer(command)
        elif type(command) is Say and self.hub.sinks:
            telling.about(self, scope, command.node, command.kind, command.data)

    def tell(self, scope: Scope, fact: Fact) -> None:
        """Tell a nested scheduler what follows from its parent's command; that needs no record of its own."""
        self._apply(scope, scope.scheduler.on(fact))
        self._work_off()

    def _stop(self, scope: Scope, visit: str, why: str) -> None:
        waiting = next((ready for ready in scope.ready if ready.visit.id == visit), None)
        if waiting is not None:
            scope.ready.remove(waiting)
            self._posted.append((scope, Ended(self.clock.now(), visit, cancelled(why, 0))))
        elif visit not in scope.stopping:
            scope.stopping[visit] = why
            if visit in scope.tasks:
                scope.tasks[visit].cancel()

    def _finish(self, scope: Scope, command: Finish) -> None:
        scope.finish = command
        if scope is not self.root:
            if scope.done is not None and not scope.done.done():
                scope.done.set_result(None)
            return
        if self.memory.finished is None:
            self.note(Finished(self.clock.now(), self.run_id, command.status, command.failure))
            self.journal.sync()
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    # ── launching and working ──

    def go(self, scope: Scope) -> None:
        """Launch everything that is ready, in tasks."""
        ready = self._launch(scope)
        if ready is not None:
            self._spawn(scope, ready)

    def _launch(self, scope: Scope) -> Ready | None:
        """Write the intents, sync once, and hand all but the first ready visit to tasks of their own."""
        batch = scope.ready
        if not batch or self.leaving:
            return None
        scope.ready = []
        intent = False
        for ready in batch:
            at_once = not ready.wait_until and not self.reuse.claims  # otherwise execute sees to it
            if ready.planned.intent and at_once and ready.visit.id not in self.memory.begun:
                self._intend(ready)
                intent = True
        if intent:
            self.journal.sync()
        if self.hub.sinks:
            for ready in batch:
                telling.started(self, scope, ready)
        if self.watcher is not None:
            for ready in batch:
                self.watcher.touch(ready.visit.id, ready)
        for ready in batch[1:]:
            self._spawn(scope, ready)
        return batch[0]

    def _spawn(self, scope: Scope, ready: Ready) -> None:
        task = asyncio.get_running_loop().create_task(self._work(scope, ready))
        scope.tasks[ready.visit.id] = task
        self._tasks.add(task)
        task.add_done_callback(partial(self._reap, scope, ready))

    async def _work(self, scope: Scope, first: Ready) -> None:
        """Execute a visit, then whatever it made ready."""
        task = asyncio.current_task()
        assert task is not None
        ready: Ready | None = first
        while ready is not None:
            visit = ready.visit.id
            weight = 0 if ready.planned.type.composite else 1
            scope.tasks[visit] = task
            self.busy += weight
            try:
                outcome = await execute(self, scope, ready)
            except asyncio.CancelledError:
                if self.leaving or visit not in scope.stopping:
                    raise
                outcome = cancelled(scope.stopping[visit], ready.attempt)
            finally:
                self.busy -= weight
                del scope.tasks[visit]
            if visit in scope.stopping:
                task.uncancel()
            if self._error is not None:
                return
            if ready.call is not None:
                outcome = reusing.remember(self, ready, outcome)
            outcome = scope.route(ready.visit, outcome)
            self.post(scope, Ended(self.clock.now(), visit, outcome, ready.seen))
            if perf_counter() - self._yielded > SLICE:
                await asyncio.sleep(0)
                self._yielded = perf_counter()
            ready = self._launch(scope)
        self.desk.look()

    def _reap(self, scope: Scope, ready: Ready, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        visit = ready.visit.id
        if not task.cancelled():
            error = task.exception()
            if error is not None:
                self.crash(error)
        elif not self.leaving and visit in scope.stopping:
            # Cancelled before its first step: its body never ran, so its end is told here.
            scope.tasks.pop(visit, None)
            self.post(scope, Ended(self.clock.now(), visit, cancelled(scope.stopping[visit], ready.attempt)))
            self.go(scope)

    # ── what execute asks for ──

    def begin(self, ready: Ready) -> None:
        """Have an impure attempt's intent on disk before it touches the world."""
        if ready.planned.intent and not ready.begun:
            if ready.call is not None:
                self.reuse.sign(ready.call, ready.attempt)
            self._intend(ready)
            self.journal.sync()

    def _intend(self, ready: Ready) -> None:
        self.note(Began(self.clock.now(), ready.visit.id, ready.attempt))
        ready.begun = True

    def keep(self, ready: Ready, step: StepContext) -> None:
        """Record what an attempt stored and used."""
        ready.seen = step.seen
        for key, value in step.writes.items():
            made = ready.writes[key] = plain(value)
            self.note(Shared(self.clock.now(), key, made))
        add_usage(ready.used, step.used)

    def note_usage(self, ready: Ready) -> None:
        """Record what the attempts of a visit used so far; what it used in all goes with its end."""
        if ready.used:
            self.note(Used(self.clock.now(), ready.visit.id, dict(ready.used)))

    async def try_again(self, scope: Scope, ready: Ready, failure: Failure, delay: float) -> None:
        """Record a failed attempt and wait for the next."""
        now = self.clock.now()
        self.note_usage(ready)
        self.note(Tried(now, ready.visit.id, ready.attempt, failure, now + delay if delay else 0.0))
        if self.hub.sinks:
            telling.retry(self, scope, ready, failure, delay)
        ready.attempt += 1
        ready.begun = False
        if delay:
            await self.clock.sleep(delay)

    def say(self, scope: Scope, ready: Ready, kind: str, data: dict[str, Any]) -> None:
        """Publish something about a visit."""
        if self.hub.sinks:
            telling.about(self, scope, ready.visit.node, kind, data)

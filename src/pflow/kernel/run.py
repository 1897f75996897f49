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
from typing import Any, Literal, assert_never

from pflow.kernel import events, recall
from pflow.kernel.clock import Clock, SystemClock
from pflow.kernel.events import Hub
from pflow.kernel.execute import execute, prepare
from pflow.kernel.memory import Memory
from pflow.kernel.people import People
from pflow.kernel.ports import Guide, RecordLog, Watcher
from pflow.kernel.scope import Ready, Scope, cancelled
from pflow.kernel.waits import Waits
from pflow.model.records import (
    Answer,
    AnyRecord,
    Began,
    Cancelled,
    Command,
    Ended,
    Fact,
    Failure,
    Feed,
    Finish,
    Finished,
    Opened,
    RunStatus,
    Say,
    Shared,
    Start,
    Stop,
    Tried,
    Used,
    Visit,
)
from pflow.model.value import plain
from pflow.nodes.step import StepContext, add_usage
from pflow.planning.plan import Plan, Values
from pflow.reuse.policy import Never, Reuse


class Run:
    """One run of a plan; ``drive`` it once."""

    def __init__(
        self,
        plan: Plan,
        values: Values,
        run_id: str,
        journal: RecordLog,
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
        self.people = People(self)
        self.waits = Waits(self.people.pause_if_stuck)
        self.root = Scope(plan, values, "", "", width, spin=self.guide.spin)
        self.left: Literal["", "paused", "interrupted"] = ""  # why the run was left unfinished
        self.watcher: Watcher | None = None
        self.leaving = False
        self._error: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._posted: deque[tuple[Scope, Fact]] = deque()
        self._done: asyncio.Future[None] | None = None
        self._turn = self.guide.turn

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
        events.phase(self, "phase:start")
        self.people.open()
        try:
            self.enter(self.root)
            await self._done
        finally:
            self.people.close()
            await self._leave()
        if self._error is not None:
            raise self._error
        events.phase_ended(self)

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
                    self._start(scope, visit)
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

    def note(self, record: AnyRecord) -> None:
        """Write something down and remember it; who knows of schedulers tells them."""
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
            self.note(fact)
            if type(fact) is Ended:
                if self.hub.sinks:
                    events.ended(self, scope, fact)
                if self.watcher is not None:
                    self.watcher.touch(fact.visit, None)
            commands = scope.take(fact)
            if scope.streams is not None and type(fact) is Ended and self.hub.sinks:
                events.conversations(self, scope, fact.visit, scope.streams.changed)
            self._apply(scope, commands)
            posted.popleft()  # only now: what was posted meanwhile waits for its turn

    def _apply(self, scope: Scope, commands: list[Command]) -> None:
        """Note what a scheduler wants done, as a replay does, and do it."""
        for command in commands:
            if scope.note(command):
                self._do(scope, command)

    def _do(self, scope: Scope, command: Command) -> None:
        if isinstance(command, Start):  # no ``match``: every visit comes through here
            self._start(scope, command.visit)
        elif isinstance(command, Stop):
            self._stop(scope, command.visit)
        elif isinstance(command, Finish):
            self._finish(scope, command)
        elif isinstance(command, Answer):
            self.waits.answer((command.visit, command.port, command.n))
        elif isinstance(command, Say):
            if self.hub.sinks:
                events.about(self, scope, command.node, command.kind, command.data)
        elif not isinstance(command, Feed):  # a visit looks for itself what it was fed
            assert_never(command)

    def _start(self, scope: Scope, visit: Visit) -> None:
        made = prepare(self, scope, visit)
        if isinstance(made, Ready):
            scope.ready.append(made)
        else:
            self._posted.append((scope, Ended(self.clock.now(), visit.id, scope.route(visit, made))))

    def tell(self, scope: Scope, fact: Fact) -> None:
        """Tell a nested scheduler what follows from its parent's command; that needs no record of its own."""
        self._apply(scope, scope.scheduler.on(fact))
        self._work_off()

    def _stop(self, scope: Scope, visit: str) -> None:
        waiting = next((ready for ready in scope.ready if ready.visit.id == visit), None)
        if waiting is not None:
            scope.ready.remove(waiting)
            self._posted.append((scope, Ended(self.clock.now(), visit, cancelled(scope.stopping[visit], 0))))
        elif visit in scope.tasks:
            scope.tasks[visit].cancel()  # the end follows when its code has let go

    def _finish(self, scope: Scope, command: Finish) -> None:
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
        for ready in batch:
            self.waits.begin(ready.visit.id)  # here, not in its task: one that has yet to be started is at work, too
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
                events.started(self, scope, ready)
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
            scope.tasks[visit] = task
            try:
                outcome = await execute(self, scope, ready)
            except asyncio.CancelledError:
                if self.leaving or visit not in scope.stopping:
                    raise  # the whole task is to end, not just this visit: its end stays unrecorded
                outcome = cancelled(scope.stopping[visit], ready.attempt)
            finally:
                del scope.tasks[visit]
            if visit in scope.stopping:
                # The cancel was for this visit, and it has ended; the task lives on and executes others. Without this,
                # asyncio would go on counting it as being cancelled, and timeouts in later visits would not be seen.
                task.uncancel()
            if self._error is not None:
                return
            if ready.call is not None:
                outcome = recall.remember(self, ready, outcome)
            outcome = scope.route(ready.visit, outcome)
            self.post(scope, Ended(self.clock.now(), visit, outcome, ready.seen))
            self._turn -= 1
            if not self._turn:
                self._turn = self.guide.turn
                await asyncio.sleep(0)
            self.waits.end(visit)  # not before: a run at a turn is no idle run
            ready = self._launch(scope)

    def _reap(self, scope: Scope, ready: Ready, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        visit = ready.visit.id
        if not task.cancelled():
            error = task.exception()
            if error is not None:
                self.crash(error)
        elif not self.leaving and visit in scope.stopping:
            # A task that is cancelled before its first step never runs its body, so nobody else tells this end.
            scope.tasks.pop(visit, None)
            self.waits.end(visit)
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
            events.retry(self, scope, ready, failure, delay)
        ready.attempt += 1
        ready.begun = False
        if delay:
            await self.clock.sleep(delay)

    def say(self, scope: Scope, ready: Ready, kind: str, data: dict[str, Any]) -> None:
        """Publish something about a visit."""
        if self.hub.sinks:
            events.about(self, scope, ready.visit.node, kind, data)

"""What a run says on its hub: one phase for the run, one task for each visit, and what steps have to say."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pflow.kernel.scope import Ready, Scope
from pflow.model.conversation import Conversation, brief
from pflow.model.event import Context, Envelope, Event
from pflow.model.records import Ended, Failure
from pflow.model.value import plain
from pflow.model.visit import node_of

if TYPE_CHECKING:
    from pflow.kernel.run import Run

Sink = Callable[[Envelope], None]
PHASE = "Run Flow"


class Hub:
    """Publishes envelopes; without subscribers an event costs one comparison."""

    __slots__ = ("_count", "redact", "sinks")

    def __init__(self, *sinks: Sink) -> None:
        self.sinks: list[Sink] = list(sinks)
        self._count = 0
        self.redact: Callable[[dict[str, Any]], dict[str, Any]] | None = None  # what leaves here carries no secret

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Add a subscriber; the returned function removes it."""
        self.sinks.append(sink)
        return lambda: self.sinks.remove(sink)

    def emit(self, context: Context, kind: str, data: dict[str, Any], now: float | None = None) -> None:
        """Publish an event."""
        if not self.sinks:
            return
        self._count += 1
        if self.redact is not None:
            data = self.redact(data)
        stamp = time.time() if now is None else now
        envelope = Envelope(f"evt-{self._count}", stamp, context, Event(kind, data))
        for sink in self.sinks:
            sink(envelope)


def phase(run: Run, kind: str, **data: Any) -> None:
    """Publish an event of the run as a whole."""
    if run.hub.sinks:
        run.hub.emit(Context(run.run_id, PHASE), kind, {"name": PHASE, **data})


def phase_ended(run: Run) -> None:
    """Publish how the run was left."""
    finished = run.memory.finished
    if finished is None:
        phase(run, f"phase:{run.left}")
    elif finished.status == "completed":
        phase(run, "phase:complete")
    else:
        phase(run, "phase:failed", status=finished.status, error=shown(finished.failure))


def started(run: Run, scope: Scope, ready: Ready) -> None:
    """A visit is about to be executed."""
    visit = ready.visit
    task = f"node:{scope.label}{visit.node}"
    data: dict[str, Any] = {"taskId": task, "visit": visit.id, "nodeType": ready.planned.type.name}
    if ready.why is not None:
        data["reason"] = ready.why
    run.hub.emit(Context(run.run_id, PHASE, task), "task:start", data)


def ended(run: Run, scope: Scope, fact: Ended) -> None:
    """A visit ended."""
    outcome = fact.outcome
    task = f"node:{scope.label}{node_of(fact.visit)}"
    data: dict[str, Any] = {"taskId": task, "visit": fact.visit, "durationMs": outcome.ms, "attempts": outcome.attempts}
    kind = "task:complete"
    if outcome.status == "skipped":
        kind = "task:skipped"
    elif outcome.status != "completed":
        kind = "task:failed"
        data |= {"status": outcome.status, "error": shown(outcome.failure)}
    if outcome.reason is not None:
        data["reason"] = outcome.reason
    if outcome.reused:
        data |= {"cached": True, "saved": outcome.saved}
    if outcome.route is not None:
        data["route"] = outcome.route
    if outcome.usage:
        data["usage"] = outcome.usage
    run.hub.emit(Context(run.run_id, PHASE, task), kind, data, fact.t)


def retry(run: Run, scope: Scope, ready: Ready, failure: Failure, delay: float) -> None:
    """An attempt failed, and another will follow."""
    policy = ready.planned.node.policy
    most = policy.by_kind.get(failure.kind, policy.retry).attempts
    task = f"node:{scope.label}{ready.visit.node}"
    data = {"taskId": task, "visit": ready.visit.id, "attempt": ready.attempt, "maxAttempts": most, "delay": delay}
    run.hub.emit(Context(run.run_id, PHASE, task), "task:retry", data | {"error": shown(failure)})


def doubt(run: Run, scope: Scope, visit: str, attempt: int) -> None:
    """A visit was cut off while it may have taken effect."""
    about(run, scope, node_of(visit), "task:doubt", {"visit": visit, "attempt": attempt})


def about(run: Run, scope: Scope, node: str, kind: str, data: dict[str, Any]) -> None:
    """Something about a visit."""
    task = f"node:{scope.label}{node}"
    run.hub.emit(Context(run.run_id, PHASE, task), kind, {"taskId": task, **data})


def conversations(run: Run, scope: Scope, visit: str, changed: list[Conversation]) -> None:
    """Conversations are what they were not before."""
    for made in changed:
        last = made.last
        added = {"last": {"role": last.role, "content": last.content}} if last else {}
        about(run, scope, node_of(visit), "context:update", {"visit": visit, **made.brief(), **added})


def of_step(run: Run, scope: Scope, node: str, kind: str, data: dict[str, Any]) -> None:
    """Something that node code said; an ``agent:…`` event names its agent in the context as well."""
    task = f"node:{scope.label}{node}"
    agent = str(data.get("agent", "")) if kind.startswith("agent:") else ""
    run.hub.emit(Context(run.run_id, PHASE, task, agent), kind, {"taskId": task, **brief(plain(data))})


def shown(failure: Failure | None) -> dict[str, Any]:
    """A failure, as events and views show it."""
    if failure is None:
        return {}
    made = {"kind": failure.kind, "message": failure.message, "hint": failure.hint, "error_type": failure.error_type}
    return {key: text for key, text in made.items() if text}

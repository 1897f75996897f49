"""The trial of a type that promises to be safe: held the first time its purity matters, and remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pflow.kernel.attempt import attempt
from pflow.kernel.scope import Ready, Scope
from pflow.kernel.step import Step
from pflow.model.records import Failure
from pflow.model.value import same
from pflow.nodes.purity import Verdict, verify
from pflow.nodes.type import NodeType

if TYPE_CHECKING:
    from pflow.kernel.run import Run

QUICK = 1.0  # seconds: a visit that took less is executed a second time, to compare the answers


def matters(run: Run, ready: Ready) -> bool:
    """Whether it makes a difference for this visit if its type is pure."""
    return run.reuse.active or ready.planned.node.policy.retry.attempts > 1


async def on_examples(run: Run, scope: Scope, ready: Ready) -> None:
    """Try a type on the examples that it declares."""
    kind = ready.planned.type
    if kind.declared.examples and not kind.wants_step:
        _judge(run, scope, ready, await verify(kind, list(kind.declared.examples)))


async def on_visit(run: Run, scope: Scope, ready: Ready, made: dict[str, Any], seconds: float) -> None:
    """Execute the visit at hand once more, watched, and compare; a long one is believed."""
    verdict = Verdict(True)
    if seconds < QUICK:
        kind = ready.planned.type
        mark = f"{run.run_id}:{ready.visit.id}"
        again = await attempt(kind, _step(run, scope, ready, kind), ready.params, None, mark)
        if isinstance(again, Failure):
            verdict = Verdict(False, f"failed when asked a second time: {again.message}")
        elif not same(made, again[0]):
            verdict = Verdict(False, "answers differently when asked twice")
    _judge(run, scope, ready, verdict)


def failed(run: Run, scope: Scope, ready: Ready, failure: Failure) -> None:
    """A breach of the promise settles it."""
    if failure.kind == "purity":
        _judge(run, scope, ready, Verdict(False, failure.message))


def _step(run: Run, scope: Scope, ready: Ready, kind: NodeType) -> Step | None:
    """A step whose words and writes go nowhere."""
    if not kind.wants_step:
        return None
    step = Step(run, scope, ready.visit, ready.attempt, ready.params)
    step.cancelled = True
    step.may_share = frozenset(kind.declared.shared)
    return step


def _judge(run: Run, scope: Scope, ready: Ready, verdict: Verdict) -> None:
    kind = ready.planned.type
    kind.standing = "pure" if verdict.pure else "impure"
    registry = run.guide.registry
    if registry is not None and registry.standings is not None:
        registry.standings.set(kind, "pure" if verdict.pure else "impure", verdict.reason)
    if not verdict.pure:
        text = f'"{kind.name}" promises to be safe but {verdict.reason}; it is treated as impure'
        run.say(scope, ready, "log", {"level": "warn", "message": text})

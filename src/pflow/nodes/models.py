"""Models for node code: a call in the name of a step, with its text, its retries and its usage on the feed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pflow.nodes.step import StepContext

if TYPE_CHECKING:
    from pflow.llm.budget import Means
    from pflow.llm.interface import Reply, Request, Retry, Usage


async def ask_model(step: StepContext, model: str, request: Request, said: str = "llm:text", **data: Any) -> Reply:
    """The model's reply; each piece of it is an event of the kind ``said``, which also carries ``data``."""
    from pflow.llm.call import call

    def on_text(piece: str) -> None:
        step.emit(said, text=piece, **data)

    def on_retry(retry: Retry) -> None:
        step.emit("llm:retry", attempt=retry.attempt, reason=retry.reason, delay=retry.delay, **data)

    means = run_means()
    reply = await call(model, request, means, on_text, on_retry)
    step.usage(**counted(reply.usage))
    if means.budget is not None and reply.usage.cost_usd is None:
        step.log.warn(f'what "{reply.usage.model}" costs is not known, so the budget does not count it')
    return reply


def counted(usage: Usage) -> dict[str, Any]:
    """A call's usage in numbers that add up; one without a known price is counted as such."""
    used: dict[str, Any] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "model_calls": 1}
    if usage.cost_usd is None:
        return {**used, "unpriced_calls": 1, "model": usage.model}
    return {**used, "cost_usd": usage.cost_usd, "model": usage.model}


def run_means() -> Means:
    """The run's means; where nobody has set any, those of the user's settings."""
    from pflow.llm.budget import Means, means

    set_ = means()
    if set_ is not None:
        return set_
    from pflow.storage import settings

    own = settings.load()
    return Means(own.model.default, own.env)

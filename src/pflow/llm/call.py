"""One call of a model, start to end: who answers, may it cost that, the answer, what it did cost."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import msgspec

from pflow.llm.budget import Means
from pflow.llm.find import find
from pflow.llm.interface import OnRetry, OnText, Reply, Request
from pflow.llm.prices import expected


async def call(
    name: str, request: Request, means: Means, on_text: OnText | None = None, on_retry: OnRetry | None = None
) -> Reply:
    """The reply of a model, with its price; raises ``ModelError``, or ``NodeError`` of the kind budget."""
    # Importing a backend takes as long as a short call, and the loop has others to serve.
    model = await asyncio.to_thread(find, name, default=means.default, env=means.env, on_retry=on_retry)
    budget = means.budget
    guess = model.price(expected(request)) if budget else None
    with budget.hold(guess) if budget else nullcontext(_free) as charge:
        reply = await model.ask(request, on_text)
        usage = reply.usage
        if usage.cost_usd is None:
            usage = msgspec.structs.replace(usage, cost_usd=model.price(usage))
        charge(usage.cost_usd)
    return msgspec.structs.replace(reply, usage=usage)


def _free(cost: float | None) -> None:
    """Without a budget nobody counts."""

"""What a run has for calling models: a default model, keys, and a limit to what may be spent.

with using(Means(default="local", env=keys, budget=Budget(1.00))):
    await drive()                           every call inside, in any task, is made with these means
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec

from pflow.errors import NodeError

Charge = Callable[[float | None], None]


class Budget:
    """A limit in USD; a call that would pass it is refused before it is made."""

    def __init__(self, limit: float, spent: float = 0.0) -> None:
        self.limit = limit
        self.spent = spent
        self._held = 0.0  # what the calls under way are expected to cost

    @contextmanager
    def hold(self, expected: float | None) -> Iterator[Charge]:
        """Hold what a call is expected to cost until it ends; the charge takes what it did cost."""
        if self._passed_by(expected):
            raise self._refusal(expected)
        held = expected or 0.0
        self._held += held
        try:
            yield self._charge
        finally:
            self._held -= held

    def _charge(self, cost: float | None) -> None:
        self.spent += cost or 0.0

    def _passed_by(self, expected: float | None) -> bool:
        if expected is None:  # nobody knows the price: it is allowed while there is anything left
            return self.spent + self._held >= self.limit
        return expected > 0 and self.spent + self._held + expected > self.limit

    def _refusal(self, expected: float | None) -> NodeError:
        cost = "" if expected is None else f", and this call may cost {dollars(expected)}"
        held = f", {dollars(self._held)} is held for calls under way" if self._held else ""
        return NodeError(
            f"the budget of {dollars(self.limit)} would be passed: {dollars(self.spent)} is spent{held}{cost}",
            "go on with a larger --budget",
            "budget",
            {"limit_usd": self.limit, "spent_usd": self.spent, "expected_usd": expected},
        )


class Means(msgspec.Struct, frozen=True):
    """What calls of models are made with."""

    default: str = ""  # the model that is asked where none is named
    env: Mapping[str, str] = {}  # keys and addresses, beside those of the process
    budget: Budget | None = None


_MEANS: ContextVar[Means | None] = ContextVar("means", default=None)


@contextmanager
def using(means: Means) -> Iterator[None]:
    """Make calls of models with these means, here and in every task that is started here."""
    token = _MEANS.set(means)
    try:
        yield
    finally:
        _MEANS.reset(token)


def means() -> Means | None:
    """The means of the run around us; None where nobody has set any."""
    return _MEANS.get()


def dollars(amount: float) -> str:
    """An amount as people write it, with as many places as it needs."""
    return f"${amount:.2f}" if amount >= 0.1 or not amount else f"${amount:.2g}"

"""Both policies at once: a pure node is looked for by its inputs first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pflow.model.reason import Reason
from pflow.model.run import Outcome
from pflow.reuse.by_inputs import ByInputs
from pflow.reuse.by_iteration import ByIteration
from pflow.reuse.policy import Abandoned, Call, Recalled


class Both:
    """Reuse by inputs, then by iteration; what is remembered is remembered in both."""

    active = True
    claims = True

    def __init__(self, by_inputs: ByInputs, by_iteration: ByIteration) -> None:
        self._by_inputs = by_inputs
        self._by_iteration = by_iteration

    @property
    def lost(self) -> Path | None:
        """The folder in which outcomes could not be kept."""
        return self._by_iteration.lost or self._by_inputs.lost

    def recall(self, call: Call) -> Recalled | Reason:
        """The first answer of the two; the reason is that of the second."""
        found = self._by_inputs.recall(call)
        return found if isinstance(found, Recalled) else self._by_iteration.recall(call)

    async def claim(self, call: Call) -> Recalled | Abandoned | None:
        """Claims are made where iterations are kept."""
        return await self._by_iteration.claim(call)

    def sign(self, call: Call, attempt: int) -> None:
        """An impure attempt is about to begin."""
        self._by_iteration.sign(call, attempt)

    def remember(self, call: Call, outcome: Outcome, writes: Mapping[str, Any]) -> Outcome:
        """Keep how a visit ended; the lineage is that of the iteration."""
        self._by_inputs.remember(call, outcome, writes)
        return self._by_iteration.remember(call, outcome, writes)

    def close(self, completed: bool) -> None:
        """The run is over."""
        self._by_iteration.close(completed)

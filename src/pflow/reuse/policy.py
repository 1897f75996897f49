"""What a reuse policy is, and the one that never reuses."""

from __future__ import annotations

from typing import Any, Protocol

from pflow.model.run import Outcome, Visit


class Reuse(Protocol):
    """Decides whether an earlier outcome stands in for a visit."""

    active: bool  # False spares the kernel from asking

    def recall(self, visit: Visit, step: Any, params: dict[str, Any]) -> Outcome | str:
        """An outcome to use instead of executing, or the reason why there is none."""

    def remember(self, visit: Visit, step: Any, params: dict[str, Any], outcome: Outcome) -> None:
        """Keep an outcome for later; called before the visit's end is recorded."""


class Never:
    """Every visit is executed."""

    active = False

    def recall(self, visit: Visit, step: Any, params: dict[str, Any]) -> Outcome | str:
        """Nothing is ever recalled."""
        return "reuse is off"

    def remember(self, visit: Visit, step: Any, params: dict[str, Any], outcome: Outcome) -> None:
        """Nothing is kept."""

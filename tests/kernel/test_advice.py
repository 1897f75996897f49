"""What may be done about a failure is said with it."""

from __future__ import annotations

import pytest

from pflow.kernel.advice import advised
from pflow.model.records import Failure


@pytest.mark.parametrize("kind", ["timeout", "binding", "routing", "model", "rate_limit", "auth", "refused", "doubt"])
def test_every_kind_has_suggestions_of_its_own(kind: str) -> None:
    made = advised(Failure(kind, "x", "the hint"), "n").suggestions
    assert made and "the hint" not in made


def test_otherwise_the_hint_is_the_suggestion() -> None:
    assert advised(Failure("node", "x", "do y"), "n").suggestions == ("do y",)
    assert advised(Failure("timeout", "x"), "n", 5.0).suggestions[0] == 'node "n": timeout: 10 (it is 5 now)'


def test_whoever_knows_better_is_believed() -> None:
    assert advised(Failure("timeout", "x", suggestions=("wait",)), "n").suggestions == ("wait",)

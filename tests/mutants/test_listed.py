"""That no mutant is stale; ``make mutants`` is what looks whether each is noticed."""

from __future__ import annotations

import ast

import pytest

from tests.mutants.listed import MUTANTS, Mutant
from tests.mutants.run import ROOT, stale


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.place)
def test_a_mutant_fits_the_code_as_it_is(mutant: Mutant) -> None:
    assert stale(mutant, ROOT) == "" and mutant.new != mutant.old
    ast.parse((ROOT / "src" / "pflow" / mutant.file).read_text().replace(mutant.old, mutant.new))
    assert mutant.tests and all((ROOT / "tests" / name).exists() for name in mutant.tests.split())
    assert mutant.breaks and not (mutant.once and mutant.explained)


def test_no_mutant_is_listed_twice() -> None:
    assert len({(mutant.file, mutant.old) for mutant in MUTANTS}) == len(MUTANTS)

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.planning.ancestry import Ancestry, cycle


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 200])
def test_one_node_leads_to_another_however_far_away_it_is(length: int) -> None:
    ancestry = Ancestry((f"n{i}", f"n{i + 1}") for i in range(length))
    assert ancestry.leads("n0", f"n{length}")
    assert not ancestry.leads(f"n{length}", "n0")


def test_among_very_many_ancestors_the_right_one_is_found_and_a_stranger_is_not() -> None:
    links = [(f"a{i}", "join") for i in range(100)] + [("join", "end"), ("stranger", "other")]
    ancestry = Ancestry(links)
    assert all(ancestry.leads(f"a{i}", "end") for i in range(100))
    assert not ancestry.leads("stranger", "end") and not ancestry.leads("end", "end")


LINKS = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=150)


@given(LINKS, st.integers(0, 90), st.integers(0, 90))
def test_it_leads_where_a_path_leads(links: list[tuple[int, int]], source: int, target: int) -> None:
    reached: set[int] = set()
    ahead = [source]
    while ahead:
        here = ahead.pop()
        new = {end for start, end in links if start == here} - reached
        reached |= new
        ahead += new
    assert Ancestry((str(a), str(b)) for a, b in links).leads(str(source), str(target)) == (target in reached)


@given(LINKS)
def test_a_cycle_is_found_where_there_is_one_and_each_of_its_steps_is_an_edge(links: list[tuple[int, int]]) -> None:
    edges = [(str(a), str(b)) for a, b in links]
    ids = [str(i) for i in range(91)]
    ring = cycle(ids, edges)
    ancestry = Ancestry(edges)
    if ring:
        assert ring[0] == ring[-1] and all(step in edges for step in pairwise(ring))
    else:
        assert not any(ancestry.leads(node, node) for node in ids)

"""Ids of visits: whatever is put together is taken apart again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pflow.model import visit as visits
from pflow.model.visit import item_prefix, visit_id, workflow_prefix

nodes = st.text(min_size=1, max_size=8).filter(lambda text: visits.names_node(text))
numbers = st.integers(1, 10**6)


@st.composite
def prefixes(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A prefix, and the visits around it, outermost first."""
    prefix, owners = "", []
    for _ in range(draw(st.integers(0, 4))):
        owner = visit_id(prefix, draw(nodes), draw(numbers))
        owners.append(owner)
        k = draw(st.integers(0, 12))
        prefix = draw(st.sampled_from([workflow_prefix(owner, k), item_prefix(owner, k)]))
    return prefix, owners


@given(prefixes(), nodes, numbers)
def test_an_id_tells_its_node_its_number_its_scope_and_what_is_around_it(
    place: tuple[str, list[str]], node: str, n: int
) -> None:
    prefix, owners = place
    made = visit_id(prefix, node, n)
    assert (visits.node_of(made), visits.number_of(made), visits.prefix_of(made)) == (node, n, prefix)
    assert visits.is_nested(made) == bool(owners)
    assert visits.owner_of(prefix) == (owners[-1] if owners else "")
    assert visits.top_of(made) == (owners[0] if owners else made)
    assert all(visits.is_within(made, owner) for owner in [*owners, made])
    assert [part for part, n in visits.parts_of(made) if n] == [visits.node_of(one) for one in [*owners, made]]


@given(prefixes(), nodes, numbers)
def test_whoever_means_an_id_may_write_it_whole_or_leave_out_first_numbers(
    place: tuple[str, list[str]], node: str, n: int
) -> None:
    made = visit_id(place[0], node, n)
    assert visits.meant(made) == made
    if not any(part.isdigit() or part.startswith("~") or part.endswith("#1") for part, _ in visits.parts_of(made)):
        assert visits.meant(visits.terse(made)) == made


def test_people_read_short_names() -> None:
    assert visits.short("a#1") == "a"
    assert visits.short("a#2") == "a#2"
    assert visits.short("s#1/i#2") == "s/i#2"
    assert visits.short("s#1/~1/i#1") == "s/i"
    assert visits.short("f#1/0/i#1") == "f[0]/i"
    assert visits.short("") == ""


def test_one_visit_is_within_another_by_its_whole_name() -> None:
    assert visits.is_within("a#1/b#1", "a#1")
    assert not visits.is_within("a#12", "a#1")
    assert not visits.is_within("a#1", "a#1/b#1")


def test_no_node_is_called_what_takes_ids_apart() -> None:
    assert not any(map(visits.names_node, ["", "a/b", "a#1"]))
    assert visits.names_node("a b.c-d")

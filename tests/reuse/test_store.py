"""What holds wherever outcomes are kept: among a file's own, or in common to all flows."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from pflow.reuse.iterations import Iterations
from pflow.reuse.store import Entry, Store

KEY, OTHER = "k" * 64, "q" * 64
Kept = tuple[Store, Callable[[str], str]]


@pytest.fixture(params=["common", "own"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """A store, and the name in it of a key."""
    if request.param == "common":
        return Store(tmp_path / "cache"), str
    own = Iterations(tmp_path / "cache")
    return own, lambda key: own.name("a#1", key)


def entry(**changes: object) -> Entry:
    made = Entry({"x": [1, {"y": None}]}, {"mood": "calm"}, "left", "run/a#1/1", {"recipe": {"type": "t"}}, {"ms": 1})
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_save_and_load_node_roundtrip(kept: Kept) -> None:
    store, name = kept
    assert store.write(name(KEY), entry())
    assert store.read(name(KEY)) == entry() and store.read(name(OTHER)) is None


ODD = {"bytes": b"\x00\xff", "nan": float("inf"), "big": 2**70, "__type": "blob", "text": "ü"}


def test_what_json_cannot_say_comes_back_as_it_was(kept: Kept) -> None:
    store, name = kept
    odd = entry(outputs=ODD, writes=ODD, parts={"recipe": {"params": ODD}})
    assert store.write(name(KEY), odd) and store.read(name(KEY)) == odd


def test_binary_data_handling(kept: Kept) -> None:
    store, name = kept
    large = entry(outputs={"x": b"\x00\xff", "large": os.urandom(200_000)})
    assert store.write(name(KEY), large) and store.read(name(KEY)) == large
    assert store.path(name(KEY)).stat().st_size < 10_000  # the large one is in a blob
    without = store.read(name(KEY), whole=False)
    assert without is not None and without.parts == large.parts and without.outputs != large.outputs


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff", b'{"outputs": 1}', b'{"outputs": {}, "writes": []}'])
def test_a_damaged_entry_is_a_miss_and_is_written_anew(kept: Kept, damage: bytes) -> None:
    store, name = kept
    store.write(name(KEY), entry())
    store.path(name(KEY)).write_bytes(damage)
    assert store.read(name(KEY)) is None
    assert store.write(name(KEY), entry()) and store.read(name(KEY)) == entry()


@pytest.mark.parametrize("damage", [b"", b"null", None])
def test_an_entry_whose_blob_is_damaged_or_gone_is_a_miss(kept: Kept, damage: bytes | None) -> None:
    store, name = kept
    store.write(name(KEY), entry(outputs={"large": "x" * 200_000}))
    (blob,) = (store.folder / "blobs").iterdir()
    if damage is None:
        blob.unlink()
    else:
        blob.write_bytes(damage)
    assert store.read(name(KEY)) is None


def test_everything_in_it_is_private_whatever_the_umask(kept: Kept) -> None:
    store, name = kept
    before = os.umask(0)
    try:
        store.write(name(KEY), entry(outputs={"large": "x" * 200_000}))
    finally:
        os.umask(before)
    for path in (store.folder, *store.folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_an_entry_that_was_written_again_is_another_version(kept: Kept) -> None:
    store, name = kept
    assert store.version(name(KEY)) is None
    store.write(name(KEY), entry())
    first = store.version(name(KEY))
    store.write(name(KEY), entry())
    assert first is not None and store.version(name(KEY)) not in (None, first)


def test_where_nothing_can_be_written_nothing_is_kept_and_it_says_so(kept: Kept) -> None:
    store, name = kept
    store.folder.write_text("in the way")
    assert not store.write(name(KEY), entry()) and store.lost == store.folder
    assert store.read(name(KEY)) is None


def test_what_a_flow_made_is_dropped_with_the_blobs_that_nobody_else_needs(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    shared, alone = "x" * 200_000, "y" * 200_000
    store.write(KEY, entry(outputs={"shared": shared, "alone": alone}, flow="one"))
    store.write(OTHER, entry(outputs={"shared": shared}, flow="another"))
    assert store.drop("nobody") == 0 and len(list((store.folder / "blobs").iterdir())) == 2
    assert store.drop("one") == 1 and store.drop("one") == 0
    found = store.read(OTHER)
    assert store.read(KEY) is None and found is not None and found.outputs == {"shared": shared}
    assert len(list((store.folder / "blobs").iterdir())) == 1

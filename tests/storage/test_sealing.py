"""Secrets in a journal: never there as themselves, whole again for who goes on, hidden from who looks."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.errors import UsageError
from pflow.model import conversation
from pflow.model.reason import Reason
from pflow.model.records import AnyRecord, Ended, Failure, Opened, Outcome, Replied
from pflow.model.redact import HIDDEN
from pflow.storage.blobs import LIMIT
from pflow.storage.journal import Journal, as_it_stands, read
from pflow.storage.sealing import Seal

SECRETS = {"token": 'pass"word\\\0é', "key": "hush-hush", "longer": "hush-hush-2"}
OPENED = Opened(1.0, "r", "w", "pflow", "d")
pieces = st.sampled_from([*SECRETS.values(), "\0", "\0secret:token\0", "secret:", " ", "a"])
texts = st.lists(pieces, max_size=4).map("".join)
values = st.recursive(
    texts | st.integers(), lambda one: st.lists(one, max_size=2) | st.dictionaries(texts, one), max_leaves=5
)
records: st.SearchStrategy[Any] = st.one_of(
    st.builds(Replied, st.just(2.0), st.just("a#1"), st.just("user"), st.just(1), values),
    st.builds(
        lambda outputs, said: Ended(
            3.0, "b#1", Outcome("failed", outputs, None, Failure("node", said, said), Reason("guard", (said,)))
        ),
        st.dictionaries(texts, values, max_size=2),
        texts,
    ),
)


def written(folder: Path, *wanted: AnyRecord) -> Path:
    """A journal of a run with secrets."""
    path = folder / "trace.jsonl"
    made = Journal.create(path, Seal(SECRETS))
    for record in (OPENED, *wanted):
        made.append(record)
    made.close()
    return path


@given(st.lists(records, max_size=3))
def test_who_goes_on_has_every_secret_again(wanted: list[AnyRecord]) -> None:
    """Law: sealing and opening change nothing, whatever the text, references typed by a user included."""
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), *wanted)
        made, found = Journal.open(path, Seal(SECRETS))
        made.close()
        assert found == [OPENED, *wanted]


def test_a_conversation_beside_a_secret_is_written_whole(tmp_path: Path) -> None:
    """The record is written twice, the second time sealed: what it adds to earlier conversations must not get lost."""
    talk = conversation.new("c", [{"role": "user", "content": "hi"}])
    more = talk.adding([{"role": "assistant", "content": "ho"}])
    ends = [Ended(2.0, "a#1", Outcome("completed", {"context": one, "text": SECRETS["key"]})) for one in (talk, more)]
    made, found = Journal.open(written(tmp_path, *ends), Seal(SECRETS))
    made.close()
    assert found == [OPENED, *ends]


def test_of_two_secrets_that_begin_alike_no_rest_of_the_longer_one_is_left(tmp_path: Path) -> None:
    path = written(tmp_path, Replied(2.0, "a#1", "user", 1, f"<{SECRETS['longer']}>"))
    assert b"-2" not in path.read_bytes()
    assert [record.value for record in read(path) if isinstance(record, Replied)] == [f"<{HIDDEN}>"]


@given(st.lists(records, max_size=3))
def test_no_secret_is_in_the_file_and_none_is_shown(wanted: list[AnyRecord]) -> None:
    """Law: neither the bytes of a journal nor what a reader gets hold a secret."""
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), *wanted)
        assert b"hush-hush" not in path.read_bytes() and b"word\\\\" not in path.read_bytes()
        shown = repr(list(read(path)))
        assert "hush-hush" not in shown and "pass" not in shown


def test_a_secret_in_a_blob_is_sealed(tmp_path: Path) -> None:
    """A value too large for a line is no hiding place."""
    text = "x" * LIMIT + "hush-hush"
    path = written(tmp_path, Replied(2.0, "a#1", "user", 1, text))
    assert not any(b"hush-hush" in blob.read_bytes() for blob in tmp_path.rglob("*") if blob.is_file())
    (_, record) = read(path)
    assert isinstance(record, Replied) and record.value == "x" * LIMIT + HIDDEN


def test_a_copy_stays_sealed(tmp_path: Path) -> None:
    """Records copied as they stand are the same to who opens them."""
    path = written(tmp_path, Replied(2.0, "a#1", "user", 1, "\0 hush-hush"))
    copy = Journal.create(tmp_path / "copy" / "trace.jsonl", None)
    for record in read(path, as_it_stands):
        copy.append(record)
    copy.close()
    assert copy.path.read_bytes() == path.read_bytes()


def test_a_secret_that_nobody_gives_is_named(tmp_path: Path) -> None:
    """A run is not resumed with something else in a secret's place."""
    path = written(tmp_path, Replied(2.0, "a#1", "user", 1, "hush-hush"))
    with pytest.raises(UsageError, match='the secret "key"'):
        Journal.open(path, Seal({}))

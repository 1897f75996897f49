"""The journal: what is written is read, and damage is never taken for data."""

from __future__ import annotations

import errno
import hashlib
import inspect
import math
import os
import tempfile
from pathlib import Path
from typing import Any, get_args
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pflow.app.driver import NoJournal
from pflow.errors import JournalError
from pflow.model.records import (
    TEXTS,
    VALUES,
    AnyRecord,
    Asked,
    Began,
    Cancelled,
    Doubt,
    Ended,
    Failure,
    Finished,
    Loaded,
    Opened,
    Outcome,
    Reopened,
    Replied,
    Shared,
    Stored,
    Tried,
    Used,
)
from pflow.storage import journal as module
from pflow.storage.blobs import LIMIT
from pflow.storage.journal import Journal, read

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
atoms = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text | st.binary(max_size=8)
keys = text | st.sampled_from(["__type", "value", "digest"])
values = st.recursive(
    atoms | st.sampled_from(["blob", "dict", "base64"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(keys, values, max_size=3)
times = st.floats(0, 4e9)
counts = st.integers(0, 1000)
failures = st.builds(Failure, text, text, details=mappings, chain=st.lists(text, max_size=2).map(tuple))
outcomes = st.builds(
    Outcome,
    st.sampled_from(["completed", "failed", "skipped"]),
    mappings,
    failure=st.none() | failures,
    usage=mappings,
)
records: st.SearchStrategy[Any] = st.one_of(
    st.builds(Ended, times, text, outcomes, counts),
    st.builds(Asked, times, text, counts, text, counts, text),
    st.builds(Cancelled, times, text, text),
    st.builds(Reopened, times, text),
    st.builds(Opened, times, text, text, text, text, mappings, options=mappings),
    st.builds(Began, times, text, counts),
    st.builds(Tried, times, text, counts, failures, times),
    st.builds(Replied, times, text, text, counts, values),
    st.builds(Doubt, times, text, counts, st.sampled_from(["retry", "skip", "fail"])),
    st.builds(Shared, times, text, values),
    st.builds(Stored, times, st.sampled_from(["values", "cache", "portals", "session"]), text, values),
    st.builds(Loaded, times, text, text),
    st.builds(Used, times, text, mappings),
    st.builds(Finished, times, text, st.sampled_from(["completed", "failed"]), st.none() | failures),
)


def written(path: Path, *wanted: AnyRecord) -> bytes:
    """Write a journal and return what is in the file."""
    made = Journal.create(path)
    for record in wanted:
        made.append(record)
    made.close()
    return path.read_bytes()


def ended(visit: str, **outputs: Any) -> Ended:
    return Ended(1.0, visit, Outcome("completed", outputs))


def reopened(path: Path) -> list[AnyRecord]:
    made, found = Journal.open(path)
    made.close()
    return found


EXAMPLES: list[AnyRecord] = [
    Opened(1.0, "r", "w", "pflow", "d", {"n": 2**70}),
    Began(2.0, "a#1", 1),
    ended("a#1", text="für\n", data=b"\xff"),
    Finished(3.0, "r", "completed"),
]


@given(st.lists(records, max_size=6))
@settings(max_examples=200, deadline=None)
def test_any_records_are_read_back_equal(wanted: list[AnyRecord]) -> None:
    """What was appended is what a reader and a resuming process get, in order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        written(path, *wanted)
        assert list(read(path)) == wanted
        assert repr(reopened(path)) == repr(wanted)  # 1, 1.0 and true are equal but not the same


@given(st.integers(min_value=0))
@settings(deadline=None)
def test_a_file_cut_at_any_byte_reads_as_a_prefix(place: int) -> None:
    """A crash at any point leaves the records before it, and the journal goes on behind them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        data = written(path, *EXAMPLES)
        cut = data[: place % (len(data) + 1)]
        path.write_bytes(cut)
        expected = EXAMPLES[: cut.count(b"\n")]
        assert list(read(path)) == expected
        assert path.read_bytes() == cut
        made, found = Journal.open(path)
        made.append(EXAMPLES[1])
        made.close()
        assert found == expected
        assert list(read(path)) == [*expected, EXAMPLES[1]]


def outcome_of_reading(path: Path) -> list[AnyRecord] | None:
    try:
        return reopened(path)
    except JournalError:
        return None


@given(st.integers(min_value=0), st.integers(1, 255))
@settings(max_examples=300, deadline=None)
def test_any_changed_byte_is_noticed(place: int, flip: int) -> None:
    """A changed byte is refused, or in the last record cut off: it never becomes data."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        data = bytearray(written(path, *EXAMPLES))
        place %= len(data)
        in_last = data.rfind(b"\n", 0, len(data) - 1) < place
        data[place] ^= flip
        path.write_bytes(data)
        assert outcome_of_reading(path) == (EXAMPLES[:-1] if in_last else None)


def test_damage_before_intact_records_is_refused_with_its_line(tmp_path: Path) -> None:
    """The error names the line and says what to do, and the file is left as it is."""
    path = tmp_path / "trace.jsonl"
    lines = written(path, *EXAMPLES).splitlines(keepends=True)
    damaged = b"".join([lines[0], b"garbage\n", *lines[2:]])
    path.write_bytes(damaged)
    with pytest.raises(JournalError, match=r"trace\.jsonl:2: damaged"):
        list(read(path))
    with pytest.raises(JournalError, match=r"trace\.jsonl:2: damaged") as caught:
        Journal.open(path)
    assert "before line 2" in caught.value.hint
    assert path.read_bytes() == damaged


def test_a_bad_tail_of_several_lines_is_cut(tmp_path: Path) -> None:
    """Whatever has nothing intact behind it is a tail."""
    path = tmp_path / "trace.jsonl"
    data = written(path, *EXAMPLES)
    path.write_bytes(data + b"\0\0\n{}\n\0")
    assert reopened(path) == EXAMPLES
    assert path.read_bytes() == data


def test_a_line_starts_with_checksum_kind_and_time(tmp_path: Path) -> None:
    """People and other programs find the same first fields in every line."""
    line = written(tmp_path / "trace.jsonl", Began(2.5, "a#1", 1))
    assert line.startswith(b'{"c":') and line.endswith(b',"k":"began","t":2.5,"visit":"a#1","attempt":1}\n')


def test_a_nan_survives(tmp_path: Path) -> None:
    """A value that is not equal to itself comes back as what it was."""
    path = tmp_path / "trace.jsonl"
    written(path, Shared(1.0, "k", [math.nan]))
    (record,) = read(path)
    assert isinstance(record, Shared) and math.isnan(record.value[0])


def test_text_that_is_no_unicode_does_not_stop_a_run(tmp_path: Path) -> None:
    """A failure that quotes a badly encoded file name is recorded with a replacement mark."""
    path = tmp_path / "trace.jsonl"
    written(path, Tried(1.0, "a#1", 1, Failure("node", "no file caf\udce9", details={"n": 2**70})))
    (record,) = read(path)
    assert record == Tried(1.0, "a#1", 1, Failure("node", "no file caf?", details={"n": 2**70}))


def test_a_run_that_an_older_version_wrote_in_another_form_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run" / "trace.jsonl"
    opened = written(path, Opened(1.0, "r", "w", "pflow", "d", version="0.1.0"))
    path.write_bytes(opened)
    with pytest.raises(JournalError, match="it is in an older form") as caught:
        list(read(path))
    assert caught.value.hint == "the run was begun by pflow 0.1.0: go on with it there, or start a new run"


def test_every_field_that_may_hold_a_value_or_quote_one_is_in_the_tables() -> None:
    """A field that is neither an id nor a kind nor a number is translated and sealed, or a secret would stand in it."""
    plain = {
        Opened: {"run", "workflow", "dialect", "digest", "documents", "version", "path", "cwd", "forked"},
        Loaded: {"path", "name"},
        Outcome: {"status", "lineage"},
        Failure: {"kind", "error_type", "chain"},
    }
    names = {"visit", "run", "port", "key", "space", "decision", "status"}
    for kind in (*get_args(AnyRecord), Outcome, Failure):
        told = {*VALUES.get(kind, ()), *TEXTS.get(kind, ())}
        for field in msgspec.structs.fields(kind):
            number = field.type in (int, float, bool)
            assert number or field.name in told | plain.get(kind, names), f"{kind.__name__}.{field.name}"


def test_unknown_kinds_name_the_version_that_is_needed(tmp_path: Path) -> None:
    """A record of a later pflow is refused, not passed over."""
    path = tmp_path / "trace.jsonl"
    opened = written(path, Opened(1.0, "r", "w", "pflow", "d", version="9.1.0"))
    rest = b'"k":"teleported","t":1.0}'
    path.write_bytes(opened + b'{"c":%d,%b\n' % (crc32(rest), rest))
    with pytest.raises(JournalError, match="'teleported'") as caught:
        list(read(path))
    assert "pflow 9.1.0 or newer" in caught.value.hint


def test_a_journal_is_created_once_and_opened_only_where_it_is(tmp_path: Path) -> None:
    """A second creation and the opening of nothing are errors."""
    path = tmp_path / "trace.jsonl"
    written(path)
    with pytest.raises(JournalError, match="created"):
        Journal.create(path)
    with pytest.raises(JournalError, match="read"):
        Journal.open(tmp_path / "none.jsonl")


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that takes a few bytes at a time gets them all."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
    path = tmp_path / "trace.jsonl"
    written(path, *EXAMPLES)
    assert list(read(path)) == EXAMPLES


@pytest.mark.parametrize("room", [0, 10])
def test_after_a_failed_write_everything_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """A full disk ends the journal at its last whole record, even when there is space again."""
    path = tmp_path / "trace.jsonl"
    made = Journal.create(path)
    made.append(EXAMPLES[0])
    left = [room]
    write = os.write

    def full(fd: int, data: bytes) -> int:
        taken, left[0] = left[0], 0
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[:taken])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(JournalError, match="No space left"):
        made.append(EXAMPLES[1])
    monkeypatch.undo()
    with pytest.raises(JournalError, match="No space left"):
        made.append(EXAMPLES[1])
    with pytest.raises(JournalError, match="No space left"):
        made.sync()
    assert reopened(path) == EXAMPLES[:1]


def test_a_closed_journal_refuses_records(tmp_path: Path) -> None:
    """Closing is final, and may be done twice."""
    made = Journal.create(tmp_path / "trace.jsonl")
    made.close()
    made.close()
    with pytest.raises(JournalError, match="closed"):
        made.append(EXAMPLES[1])


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is forced to disk, in order."""
    seen: list[str] = []

    def note(fd: int) -> None:
        seen.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(module, "_datasync", note)
    return seen


def test_syncing_costs_one_call_when_needed_and_none_otherwise(tmp_path: Path, synced: list[str]) -> None:
    """The first sync covers the folders, a later one the file alone, and an idle one nothing."""
    made = Journal.create(tmp_path / "run" / "trace.jsonl")
    made.append(EXAMPLES[0])
    made.sync()
    assert synced == ["run", tmp_path.name, "trace.jsonl"]
    made.sync()
    made.append(EXAMPLES[1])
    made.append(EXAMPLES[2])
    made.sync()
    made.close()
    assert synced[3:] == ["trace.jsonl"]


def test_a_reopened_journal_is_synced_although_nothing_was_added(tmp_path: Path, synced: list[str]) -> None:
    """The process that wrote the records may have died before it synced them."""
    path = tmp_path / "trace.jsonl"
    written(path, *EXAMPLES)
    made, _ = Journal.open(path)
    made.sync()
    made.close()
    assert synced == ["trace.jsonl"]


def test_what_records_name_is_synced_before_them(tmp_path: Path, synced: list[str]) -> None:
    """Blobs and required documents reach the disk before the line that names them."""
    made = Journal.create(tmp_path / "run" / "trace.jsonl")
    made.sync()
    synced.clear()
    document = tmp_path / "run" / "workflow.yaml"
    document.write_text("x")
    made.require(document)
    made.append(ended("a#1", big="x" * (LIMIT + 1)))
    made.sync()
    made.close()
    (blob,) = (tmp_path / "run" / "blobs").iterdir()
    assert synced == [blob.name, "blobs", "run", "workflow.yaml", "trace.jsonl"]


BIG: list[Any] = ["ü" * LIMIT, b"\0" * LIMIT, {"__type": "blob", "digest": "x" * LIMIT}, [2**70] * 5000, [0] * LIMIT]


@pytest.mark.parametrize("value", BIG, ids=["text", "bytes", "tagged", "big", "list"])
def test_large_values_go_to_blobs_and_come_back(tmp_path: Path, value: Any) -> None:
    """A value above the limit is one file named by its digest, and the line stays short."""
    path = tmp_path / "trace.jsonl"
    wanted: list[AnyRecord] = [
        ended("a#1", big=value, small=1),
        Ended(1.0, "b#1", Outcome("completed", {"__type": value})),
        Opened(1.0, "r", "w", "pflow", "d", {"i": value}),
        Replied(1.0, "a#1", "user", 1, value),
        Shared(1.0, "k", value),
    ]
    assert len(written(path, *wanted)) < 3000
    (blob,) = (tmp_path / "blobs").iterdir()
    assert blob.name == hashlib.sha256(blob.read_bytes()).hexdigest()
    assert list(read(path)) == wanted
    assert reopened(path) == wanted


def test_many_small_values_stay_in_their_line(tmp_path: Path) -> None:
    """Only a value that is large itself is moved out."""
    path = tmp_path / "trace.jsonl"
    record = ended("a#1", **{f"k{n}": "x" * 100 for n in range(1000)})
    written(path, record)
    assert list(read(path)) == [record]
    assert not (tmp_path / "blobs").exists()


def test_a_missing_or_damaged_blob_is_named(tmp_path: Path) -> None:
    """A run whose blob is lost cannot be read, and the error says which file it is."""
    path = tmp_path / "trace.jsonl"
    written(path, ended("a#1", big="x" * (LIMIT + 1)))
    (blob,) = (tmp_path / "blobs").iterdir()
    blob.write_bytes(b'"y"')
    with pytest.raises(JournalError, match=f"{blob.name} is damaged"):
        list(read(path))
    blob.unlink()
    with pytest.raises(JournalError, match=f"{blob.name} cannot be read"):
        list(read(path))


def test_a_blob_left_damaged_is_written_anew(tmp_path: Path) -> None:
    """A file of the right name is not trusted unless this process wrote or verified it."""
    path = tmp_path / "trace.jsonl"
    record = ended("a#1", big="x" * (LIMIT + 1))
    written(path, record)
    (blob,) = (tmp_path / "blobs").iterdir()
    blob.write_bytes(b"")
    path.unlink()
    written(path, record)
    assert list(read(path)) == [record]


def test_a_failed_blob_ends_the_journal(tmp_path: Path) -> None:
    """No record names a blob that could not be written."""
    path = tmp_path / "trace.jsonl"
    made = Journal.create(path)
    (tmp_path / "blobs").write_text("in the way")
    for _ in range(2):
        with pytest.raises(JournalError, match="cannot be written"):
            made.append(ended("a#1", big="x" * (LIMIT + 1)))
    assert list(read(path)) == []


def test_memory_is_a_journals_twin() -> None:
    """A run without a folder drives the same interface."""
    public = [name for name, _ in inspect.getmembers(NoJournal, inspect.isfunction) if not name.startswith("_")]
    for name in public:
        assert inspect.signature(getattr(NoJournal, name)) == inspect.signature(getattr(Journal, name))
    twin = NoJournal()
    twin.append(EXAMPLES[0])
    twin.sync()
    assert public == ["append", "sync"]

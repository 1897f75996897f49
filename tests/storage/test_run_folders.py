"""Runs on disk: ids, folders, documents, lookup."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pflow.errors import RunError, RunNotFound, UsageError
from pflow.storage import runs
from pflow.storage.runs import RunFolder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own."""
    monkeypatch.setenv("PFLOW_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@given(st.text(max_size=60), st.floats(0, 4e9))
@settings(deadline=None)
def test_ids_are_readable_folder_names(name: str, now: float) -> None:
    """Any workflow name gives an id that is itself a valid one."""
    run_id = runs.new_id(name, now)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}_\d{8}_\d{6}_[0-9a-f]{8}", run_id)
    assert runs.check_id(run_id) == run_id


def test_an_id_tells_what_ran_and_when() -> None:
    """The slug and the UTC time can be read from it, and two ids differ."""
    assert runs.new_id("Release notes!", 1700000000.9).startswith("Release-notes_20231114_221320_")
    assert runs.new_id("…", 0).startswith("workflow_19700101_000000_")
    assert runs.new_id("a", 0) != runs.new_id("a", 0)


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "a\\b", "../x", ".hidden", "a..b", "a\nb", "a\0", "x" * 201])
def test_what_could_leave_the_folder_is_no_id(run_id: str) -> None:
    """An id from outside cannot name anything but a run's folder."""
    with pytest.raises(UsageError, match="not a run id") as caught:
        runs.check_id(run_id)
    assert caught.value.hint


def test_a_run_is_created_once(home: Path) -> None:
    """The folder of another run is never shared."""
    assert runs.create(home / "runs", "r1").path.is_dir()
    with pytest.raises(RunError, match="exists already"):
        runs.create(home / "runs", "r1")


def test_documents_are_kept_apart(home: Path) -> None:
    """The main document is found by its name, others by number, however they were referenced."""
    run = runs.create(home / "runs", "r1")
    assert run.save_document("/x/flow.yaml", b"main", main=True) == "workflow.yaml"
    assert run.save_document("../a/sub flow.yaml", b"one") == "documents/1-sub%20flow.yaml"
    assert run.save_document("../b/sub flow.yaml", b"two") == "documents/2-sub%20flow.yaml"
    assert (run.path / "documents/2-sub%20flow.yaml").read_bytes() == b"two"
    assert run.save_document("a >> b", b"", main=True) == "workflow.txt"


def test_a_folder_knows_its_files(tmp_path: Path) -> None:
    """The names are those that the documentation promises."""
    run = RunFolder(tmp_path / "r1")
    assert (run.id, run.journal.name, run.state.name) == ("r1", "trace.jsonl", "state.json")
    assert run.lease == tmp_path / "r1" / "lease"


def test_a_run_is_found_by_its_id_or_a_unique_start(home: Path) -> None:
    """An exact id wins over ids that it starts."""
    for run_id in ("build_1", "build_12", "deploy_1"):
        runs.create(home / "runs", run_id)
    assert runs.find("build_1") == home / "runs" / "build_1"
    assert runs.find("dep") == home / "runs" / "deploy_1"
    with pytest.raises(UsageError, match="'buil' is the start of 2 run ids") as caught:
        runs.find("buil")
    assert "build_1" in caught.value.hint and "build_12" in caught.value.hint


def test_an_unknown_run_gets_a_hint(home: Path) -> None:
    """The nearest id is suggested."""
    runs.create(home / "runs", "build_1")
    with pytest.raises(RunNotFound, match="no run 'biuld_1'") as caught:
        runs.find("biuld_1")
    assert 'did you mean "build_1"?' in caught.value.hint
    with pytest.raises(UsageError):
        runs.find("../build_1")


def test_a_run_elsewhere_is_found_through_the_index(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session folder given by a relative path is found from anywhere, until it is deleted."""
    monkeypatch.chdir(tmp_path)
    folder = runs.create(Path(".dotrunner/sessions"), "s_1").path
    runs.register("s_1", folder)
    with (home / "index.jsonl").open("ab") as index:
        index.write(b'garbage\n{"run_id":"gone","path":"/nowhere"}\n')
    monkeypatch.chdir("/")
    assert runs.find("s_1") == runs.find("s_") == tmp_path / ".dotrunner/sessions/s_1"
    assert runs.list_runs() == [tmp_path / ".dotrunner/sessions/s_1"]
    shutil.rmtree(tmp_path / ".dotrunner")
    assert runs.list_runs() == []
    with pytest.raises(RunNotFound):
        runs.find("s_1")


def test_runs_are_listed_newest_first(home: Path, tmp_path: Path) -> None:
    """The time in the id counts, for other ids that of the folder."""
    middle = runs.create(tmp_path / "sessions", "mine").path
    os.utime(middle, (1_600_000_000, 1_600_000_000))
    runs.register("mine", middle)
    old, new = (
        runs.create(home / "runs", runs.new_id(n, t)).path for n, t in (("z", 1_500_000_000), ("a", 1_700_000_000))
    )
    (home / "runs" / "notes.txt").write_text("no run")
    (home / "runs" / ".hidden").mkdir()
    assert runs.list_runs() == [new, middle, old]


def test_without_any_run_the_list_is_empty(home: Path) -> None:
    """A fresh home is no error."""
    assert runs.list_runs() == []
    with pytest.raises(RunNotFound) as caught:
        runs.find("x")
    assert "none" in caught.value.hint

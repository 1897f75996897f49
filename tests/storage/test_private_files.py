"""Private files: modes, atomic replacement, names."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pflow.app.views import Views
from pflow.storage import files, inbox, runs
from pflow.storage.files import safe_name
from pflow.storage.journal import Journal
from pflow.storage.lease import Lease


@contextmanager
def umask(mask: int) -> Iterator[None]:
    old = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0, 0o022, 0o777])
def test_everything_in_a_run_is_private_under_any_umask(tmp_path: Path, mask: int) -> None:
    """Folders are 0700 and files 0600, whatever the umask gives or takes."""
    home = tmp_path / "home"
    with umask(mask):
        run = runs.create(home / "runs", "r1")
        Journal.create(run.journal).close()
        Lease.acquire(run.path, "r1").release()
        inbox.post(run.path, {"text": "hello"})
        Views(run.path).write({"nodes/a/output.json": {"x": 1}})
        run.save_document("a.yaml", b"a", main=True)
        run.save_document("b.yaml", b"b")
        runs.register("r1", run.path, home)
    made = [home, *home.rglob("*")]
    assert {mode(path) for path in made if path.is_dir()} == {0o700}
    assert {mode(path) for path in made if path.is_file()} == {0o600}


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    """What the user made is not changed."""
    tmp_path.chmod(0o755)
    files.private_folder(tmp_path / "mine")
    files.private_folder(tmp_path)
    assert mode(tmp_path) == 0o755


def test_a_dangling_link_in_the_way_is_an_error(tmp_path: Path) -> None:
    """A parent that leads nowhere is reported rather than followed for ever."""
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError):
        files.private_folder(tmp_path / "link" / "below")


@pytest.mark.parametrize("sync", [False, True])
def test_an_atomic_write_replaces_the_file_and_leaves_nothing_else(tmp_path: Path, sync: bool) -> None:
    """After a write only the file itself is in its folder, with the new content."""
    path = tmp_path / "new" / "file"
    files.write_atomic(path, b"one", sync)
    files.write_atomic(path, b"two", sync)
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_atomic_write_keeps_the_old_state(tmp_path: Path) -> None:
    """When the rename fails, the temporary file is gone and the target untouched."""
    target = tmp_path / "target"
    (target / "occupied").mkdir(parents=True)
    with pytest.raises(OSError):
        files.write_atomic(target, b"data")
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_json_files_keep_what_json_lacks(tmp_path: Path) -> None:
    """Bytes, big integers and infinities come back as they were."""
    value = {"b": b"\x00\xff", "n": 2**80, "i": -math.inf, "t": {"__type": "mine"}}
    files.write_json(tmp_path / "v.json", value, indent=2)
    assert files.read_json(tmp_path / "v.json") == value


def test_home_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PFLOW_HOME moves the home folder; without it, it is in the user's."""
    monkeypatch.setenv("PFLOW_HOME", str(tmp_path / "here"))
    assert files.home() == tmp_path / "here"
    monkeypatch.delenv("PFLOW_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.home() == tmp_path / ".pflow"


@pytest.mark.parametrize("name", ["fetch-data", "node_1", "a.b", "A", "x..y"])
def test_ordinary_ids_are_their_own_file_names(name: str) -> None:
    """What people usually write stays readable."""
    assert safe_name(name) == name


names = st.text(st.characters(), max_size=300) | st.text("aA%./\\2Emetd-", max_size=230)


@given(names, names)
@settings(deadline=None)
def test_safe_names_are_safe_and_never_collide(left: str, right: str) -> None:
    """Each text is one portable file name, and different texts have different ones."""
    made = safe_name(left)
    assert (made == safe_name(right)) == (left == right)
    assert made and len(made.encode()) <= 200
    assert not made.startswith(".") and "/" not in made and "\0" not in made
    assert made.casefold() not in files.RESERVED


@pytest.mark.parametrize("pair", [("metadata", "%6Detadata"), ("", "%"), ("..", "%2E."), ("x" * 300, "x" * 299)])
def test_awkward_names_stay_apart(pair: tuple[str, str]) -> None:
    """A text that looks like another's encoding gets an encoding of its own."""
    assert safe_name(pair[0]) != safe_name(pair[1])
    assert safe_name(safe_name(pair[0])) != safe_name(pair[0])

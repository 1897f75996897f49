"""The lock: of those who want it one has it, whatever becomes of the file meanwhile."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pflow.storage import lock


def before_the_next_lock(work: Callable[[], Any]) -> None:
    """Do something between the moment a file is open and the moment it is locked, once."""
    waiting = [work]

    def hook(event: str, _: tuple[Any, ...]) -> None:
        if event == "fcntl.flock" and waiting:
            waiting.pop()()

    sys.addaudithook(hook)


def test_it_is_taken_once_until_it_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "x.lock"
    assert not lock.taken(path) and not path.exists()
    held = lock.take(path)
    assert held is not None and lock.taken(path) and lock.take(path) is None
    os.close(held)
    assert not lock.taken(path)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_went_between_our_open_and_our_lock_is_not_what_we_lock(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "x.lock"

    def away() -> None:
        path.unlink()
        if replaced:
            path.touch()

    before_the_next_lock(away)
    held = lock.take(path)
    assert held is not None and lock.is_at(held, path)
    assert lock.take(path) is None
    os.close(held)


def test_who_has_the_lock_of_a_file_that_is_gone_can_tell(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    held = lock.take(path)
    assert held is not None and lock.is_at(held, path)
    path.unlink()
    assert not lock.is_at(held, path)
    again = lock.take(path)
    assert again is not None and not lock.is_at(held, path) and lock.is_at(again, path)
    os.close(held)
    os.close(again)

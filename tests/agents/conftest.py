from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.world import World


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The folder where pflow was started, to put agents into."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return World(folder)

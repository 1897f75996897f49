from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llm.serving import ChatServer


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, no key, and no settings of the package llm."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def server() -> Iterator[ChatServer]:
    made = ChatServer()
    yield made
    made.stop()

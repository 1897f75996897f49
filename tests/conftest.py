from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    deadline=None,  # a test must not depend on the speed of the machine
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sweep", default="sample", choices=["sample", "full"], help="how many points the kill sweep visits"
    )


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pflow home of its own for every test."""
    path = tmp_path / "pflow-home"
    monkeypatch.setenv("PFLOW_HOME", str(path))
    return path

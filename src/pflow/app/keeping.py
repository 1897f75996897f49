"""What the nodes of a graph keep beyond a run: a graph that is started anew finds it again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pflow.kernel.run import Run
from pflow.model.run import Stored
from pflow.nodes.flow import SESSION, STORE
from pflow.storage.files import home as default_home
from pflow.storage.files import read_json, write_json

FOLDER = "stores"


def restore(run: Run, file: str, home: Path | None) -> None:
    """Give a new run of a graph what earlier ones have kept."""
    for key, value in _kept(file, home).items():
        run.note(Stored(run.clock.now(), STORE + key, value))


def save(run: Run, file: str, home: Path | None) -> None:
    """Keep what a run leaves in its store; a session's own choices end with it."""
    stored = {key.removeprefix(STORE): value for key, value in run.memory.stored.items() if key.startswith(STORE)}
    stored = {key: value for key, value in stored.items() if value is not None and key != SESSION}
    if stored != _kept(file, home):
        write_json(_path(file, home), {"file": file, "values": stored})


def _kept(file: str, home: Path | None) -> dict[str, Any]:
    try:
        found = read_json(_path(file, home))
    except (OSError, ValueError):
        return {}
    values = found.get("values") if isinstance(found, dict) else None
    return values if isinstance(values, dict) else {}


def _path(file: str, home: Path | None) -> Path:
    name = hashlib.sha256(file.encode()).hexdigest()[:16]
    return (home or default_home()) / FOLDER / f"{name}.json"

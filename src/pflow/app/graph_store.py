"""What the nodes of a graph keep beyond a run: a graph that is started anew finds it again."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pflow.kernel.run import Run
from pflow.model.records import Space, Stored
from pflow.storage.files import home as default_home
from pflow.storage.files import read_object, write_json

FOLDER = "stores"
KEPT: tuple[Space, ...] = ("values", "cache", "portals")


def restore(run: Run, file: str, home: Path | None) -> None:
    """Give a new run of a graph what earlier ones have kept."""
    for space, values in _kept(file, home).items():
        for key, value in values.items():
            run.note(Stored(run.clock.now(), space, key, value))


def save(run: Run, file: str, home: Path | None) -> None:
    """Keep what a run leaves in its store; a session's own choices end with it."""
    stored = {space: values for space, values in run.memory.stored.items() if space in KEPT and values}
    if stored != _kept(file, home):
        write_json(_path(file, home), {"file": file, **stored})


def _kept(file: str, home: Path | None) -> dict[Space, dict[str, Any]]:
    spaces = read_object(_path(file, home))
    return {space: values for space in KEPT if isinstance(values := spaces.get(space), dict)}


def _path(file: str, home: Path | None) -> Path:
    name = hashlib.sha256(file.encode()).hexdigest()[:16]
    return (home or default_home()) / FOLDER / f"{name}.json"

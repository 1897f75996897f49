"""Saved workflows: documents that are run by name, from ``<home>/workflows``."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from pflow.app.documents import load
from pflow.errors import UsageError, suggest
from pflow.model.workflow import Workflow
from pflow.storage.files import home as default_home
from pflow.storage.files import private_folder, write_atomic

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
SUFFIXES = (".json", ".yaml", ".yml")


class Saved(msgspec.Struct, frozen=True):
    """A saved workflow."""

    name: str
    path: Path
    dialect: str = ""
    description: str = ""
    inputs: tuple[str, ...] = ()
    nodes: int = 0
    problem: str = ""  # why it cannot be read


def save(source: Path, name: str, home: Path | None = None, replace: bool = False) -> Path:
    """Keep a workflow file under a name; it must be one that can be read."""
    if not _NAME.fullmatch(name):
        raise UsageError(f'"{name[:40]}" cannot be the name of a workflow', "letters, digits, . _ and -")
    workflow = load(source)
    existing = _paths(home).get(name)
    if existing is not None and not replace:
        raise UsageError(f'there is a workflow "{name}" already', "choose another name, or delete it first")
    suffix = source.suffix if source.suffix in SUFFIXES else ".yaml"
    if existing is not None:
        existing.unlink()
    path = private_folder(_folder(home)) / f"{name}{suffix}"
    write_atomic(path, workflow.text.encode(), sync=True)
    return path


def find(name: str, home: Path | None = None) -> Path | None:
    """The file of a saved workflow."""
    return _paths(home).get(name)


def names(home: Path | None = None) -> list[str]:
    """The names of all saved workflows."""
    return list(_paths(home))


def get(name: str, home: Path | None = None) -> Path:
    """The file of a saved workflow, or ``UsageError`` with the nearest names."""
    found = find(name, home)
    if found is None:
        raise UsageError(f'there is no saved workflow "{name}"', suggest(name, _paths(home), "saved workflows"))
    return found


def saved(home: Path | None = None) -> list[Saved]:
    """All saved workflows, by name."""
    return [describe(name, home)[0] for name in sorted(_paths(home))]


def describe(name: str, home: Path | None = None) -> tuple[Saved, Workflow | None]:
    """A saved workflow, and what it means if it can be read."""
    from pflow.errors import WorkflowError

    path = get(name, home)
    try:
        flow = load(path)
    except WorkflowError as error:
        return Saved(name, path, problem=error.problems[0].message), None
    inputs = tuple(item.name for item in flow.inputs)
    return Saved(name, path, flow.dialect, flow.description, inputs, len(flow.nodes)), flow


def delete(name: str, home: Path | None = None) -> None:
    """Forget a saved workflow."""
    get(name, home).unlink()


def _folder(home: Path | None) -> Path:
    return (home or default_home()) / "workflows"


def _paths(home: Path | None) -> dict[str, Path]:
    folder = _folder(home)
    if not folder.is_dir():
        return {}
    return {path.stem: path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES and path.name[0] != "."}

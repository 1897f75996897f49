"""Saved workflows: documents that are run by name, from ``<home>/workflows``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePath

import msgspec

from pflow.app.documents import load
from pflow.errors import Problem, UsageError, WorkflowError, suggest
from pflow.model.workflow import Node, Workflow
from pflow.storage.files import home as default_home
from pflow.storage.files import private_folder, write_atomic

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
SUFFIXES = (".json", ".yaml", ".yml")
_PROMPTS = ("prompt_file", "promptFile")


class Saved(msgspec.Struct, frozen=True):
    """A saved workflow."""

    name: str
    path: Path
    dialect: str = ""
    description: str = ""
    inputs: tuple[str, ...] = ()
    nodes: int = 0
    problem: str = ""  # why it cannot be read


def save(workflow: Workflow, name: str, home: Path | None = None, replace: bool = False) -> Path:
    """Keep a workflow's document under a name; it must be one that needs no file beside it."""
    if not _NAME.fullmatch(name):
        raise UsageError(f'"{name[:40]}" cannot be the name of a workflow', "letters, digits, . _ and -")
    problems = list(_tied(workflow, _folder(home)))
    if problems:
        raise WorkflowError(problems)
    existing = _paths(home).get(name)
    if existing is not None and not replace:
        raise UsageError(f'there is a workflow "{name}" already', "choose another name, or delete it first")
    if existing is not None:
        existing.unlink()
    path = private_folder(_folder(home)) / f"{name}{_suffix(workflow)}"
    write_atomic(path, workflow.text.encode(), sync=True)
    return path


def _suffix(workflow: Workflow) -> str:
    own = PurePath(workflow.file).suffix
    if own in SUFFIXES:
        return own
    return ".json" if not workflow.file and workflow.text.lstrip().startswith("{") else ".yaml"


def _tied(workflow: Workflow, folder: Path) -> Iterator[Problem]:
    """What a workflow would not find any more from where it is saved: files that stand beside it."""
    by_path = workflow.dialect == "dotrunner"
    for node in workflow.nodes:
        for key, name in _beside(node):
            if key in _PROMPTS:
                hint = f"write the text itself into the node, instead of {key}"
            elif (folder / name).is_file():
                continue
            else:
                own = PurePath(name)
                call = f"workflow: {own.stem}{own.suffix}" if by_path else f'"workflow_name": "{own.stem}"'
                hint = f"save that first (pflow workflow save {name} --name {own.stem}), and call it so: {call}"
            text = f'node "{node.id}" names {name}, a file beside this one: a saved workflow would not find it'
            yield Problem(text, node.places.get(f"params.{key}", node.place), hint, "saved", node.id)


def _beside(node: Node) -> Iterator[tuple[str, str]]:
    """The relative paths in a node that start from its workflow's folder, each with the key it stands under."""
    tasks = node.params.get("tasks")
    own = [(key, node.params.get(key)) for key in ("workflow_ref", *_PROMPTS)]
    own += [("tasks", one.get("workflow")) for one in tasks if isinstance(one, dict)] if isinstance(tasks, list) else []
    for key, name in own:
        if isinstance(name, str) and name and "{" not in name and not PurePath(name).is_absolute():
            yield key, name


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

"""Drift: how the documents of a run differ now from the copies that it keeps and goes on with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pflow.app.documents import parse
from pflow.errors import PflowError
from pflow.model.records import AnyRecord, Finished, Loaded, Opened
from pflow.model.workflow import Workflow, meaning


class Drift(msgspec.Struct, frozen=True):
    """A document that is not what it was when its run was opened."""

    file: str
    kept: str = ""  # the run's copy
    gone: bool = False
    broken: str = ""  # why it is no workflow any more
    added: tuple[str, ...] = ()  # nodes
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()  # what else changed of the workflow: inputs, outputs, …

    def __str__(self) -> str:
        if self.gone:
            return f"{self.file}: the file is gone"
        if self.broken:
            return f"{self.file} was edited, and is no valid workflow now: {self.broken}"
        kinds = {"added": self.added, "removed": self.removed, "changed": self.changed}
        told = [f"{word}: {', '.join(names)}" for word, names in kinds.items() if names]
        told += [f"its {', '.join(self.parts)} changed"] if self.parts else []
        return f"{self.file} was edited ({'; '.join(told)})"


def drift(folder: Path, found: Sequence[AnyRecord]) -> list[Drift]:
    """What changed of a run's documents in their meaning; nothing for a run that is complete."""
    if isinstance(found[-1], Finished) and found[-1].status == "completed":
        return []
    pairs = ((file, folder / name) for file, name in _documents(found))
    return [
        msgspec.structs.replace(one, kept=str(kept))
        for file, kept in pairs
        if (one := _compared(file, kept)) is not None
    ]


def _documents(found: Iterable[AnyRecord]) -> Iterable[tuple[str, str]]:
    """Each document's own path, and the name of the run's copy."""
    for record in found:
        if isinstance(record, Opened):
            if record.path:
                yield from ((record.path, name) for name in list(record.documents.values())[:1])
        elif isinstance(record, Loaded):
            yield record.path, record.name


def _compared(file: str, kept: Path) -> Drift | None:
    if kept.suffix == ".ir":  # made in Python: the file is not where it came from
        return None
    try:
        now = Path(file).read_bytes()
    except FileNotFoundError:
        return Drift(file, gone=True)
    except OSError as error:
        return Drift(file, broken=f"it cannot be read: {error.strerror}")
    was = kept.read_bytes()
    if now == was:
        return None
    try:
        after = parse(now, file)
    except PflowError as error:
        return Drift(file, broken=error.message)
    return difference(file, parse(was, file), after)


def difference(file: str, before: Workflow, after: Workflow) -> Drift | None:
    """What changed between two versions of a workflow; None where they mean the same."""
    old, new = meaning(before), meaning(after)
    mine, others = _by_node(old), _by_node(new)
    made = Drift(
        file,
        added=tuple(name for name in others if name not in mine),
        removed=tuple(name for name in mine if name not in others),
        changed=tuple(name for name in mine if name in others and mine[name] != others[name]),
        parts=tuple(key for key in {**old, **new} if key not in ("nodes", "edges") and old.get(key) != new.get(key)),
    )
    if not (made.added or made.removed or made.changed or made.parts):
        return Drift(file, parts=("order of nodes",)) if old != new else None
    return made


def _by_node(made: dict[str, Any]) -> dict[str, Any]:
    """Each node with the edges that leave it."""
    leaving: dict[str, list[Any]] = {}
    for edge in made.get("edges", ()):
        leaving.setdefault(edge["source"], []).append(edge)
    return {node["id"]: (node, leaving.get(node["id"])) for node in made["nodes"]}

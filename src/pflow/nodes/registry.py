"""The registry: finds node types by name, wherever they come from.

Sources, first wins: types handed in by the caller, ``.pflow/nodes/*.py`` from the workflow's folder upwards and from
the current folder upwards, ``<home>/nodes/*.py``, then installed packages (entry point group ``pflow.nodes``), the
built-in types among them; names with a prefix of their own may be offered by others, as the tools of MCP servers are.
Names match without regard to case, ``-`` and ``_``; ``ns/name@1.2`` pins a version.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from pflow.errors import Place as At
from pflow.errors import Problem, UsageError, WorkflowError, suggest
from pflow.nodes.purity import Standings
from pflow.nodes.type import MARK, NodeType, describe_type

GROUP = "pflow.nodes"
_OWN = ("pflow.builtins.", "pflow.agents.")


def normal(name: str) -> str:
    """A type's name as it is compared."""
    return name.lower().replace("-", "").replace("_", "")


class Offer(Protocol):
    """A source of types whose names all begin the same; asked when such a name is looked for."""

    prefix: str

    def types(self) -> Iterable[NodeType]:
        """The types that it has."""

    def hint(self, name: str) -> str:
        """What to do about a name that it does not have."""


class Registry:
    """Node types by name."""

    def __init__(
        self,
        types: Iterable[Any] = (),
        folders: Iterable[Path] = (),
        installed: bool = True,
        standings: Standings | None = None,
        offers: Iterable[Offer] = (),
    ) -> None:
        self.standings = standings
        self._offers = tuple(offers)
        self._untaken = list(self._offers)
        self._types: dict[str, dict[str, NodeType]] = {}  # normal name → version → type
        for target in types:
            self.add(target if isinstance(target, NodeType) else describe_type(target))
        # Modules of installed packages are imported when a name is looked for that is not known yet.
        offered = entry_points() if installed else []
        self._waiting = [module for _, module in offered]
        self.packs = {name for name, _ in offered} | {module.partition(".")[0] for _, module in offered}
        for folder in folders:
            self._add_folder(folder)

    def add(self, kind: NodeType) -> None:
        """Add a type; one of the same name and version that was added earlier stays."""
        if self.standings is not None and not kind.trusted and (known := self.standings.of(kind)) is not None:
            kind.standing = known.standing
        for name in (kind.name, *kind.declared.names):
            self._types.setdefault(normal(name), {}).setdefault(kind.version, kind)

    def find(self, name: str) -> NodeType | None:
        """The type of this name (``ns/name@version`` pins one), or None."""
        base, _, version = name.partition("@")
        key = normal(base)
        self._take(key)
        while key not in self._types and self._waiting:
            self._import_next()
        versions = self._types.get(key)
        if not versions:
            return None
        return versions.get(version) if version else next(iter(versions.values()))

    def get(self, name: str) -> NodeType:
        """The type of this name, or ``UsageError`` with the nearest ones."""
        found = self.find(name)
        if found is None:
            raise UsageError(f'unknown node type "{name}"', self.hint(name))
        return found

    def hint(self, name: str) -> str:
        """What exists instead of an unknown name."""
        base, _, version = name.partition("@")
        versions = self._types.get(normal(base))
        if versions and version:
            return f"versions of {base}: {', '.join(sorted(v or 'unversioned' for v in versions))}"
        for offer in self._offers:
            if normal(base).startswith(offer.prefix):
                return offer.hint(base)
        return suggest(base, self.names(), "known types")

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({kind.name for kind in self.types()})

    def types(self) -> list[NodeType]:
        """Every type once, by name."""
        while self._waiting:
            self._import_next()
        self._take()
        kinds = {id(kind): kind for versions in self._types.values() for kind in versions.values()}
        return sorted(kinds.values(), key=lambda kind: (kind.name, kind.version))

    def _take(self, key: str | None = None) -> None:
        """Take the types of the offers that a name may be among, or of all offers."""
        for offer in [one for one in self._untaken if key is None or key.startswith(one.prefix)]:
            self._untaken.remove(offer)
            for kind in offer.types():
                self.add(kind)

    def _import_next(self) -> None:
        module = self._waiting.pop(0)
        self._add_module(importlib.import_module(module), module.startswith(_OWN), module)

    def _add_folder(self, folder: Path) -> None:
        for path in sorted(folder.glob("*.py")):
            if not path.name.startswith("_"):
                self.packs.add(path.stem)
                self._add_module(load_file(path), False, str(path))

    def _add_module(self, module: ModuleType, trusted: bool, origin: str) -> None:
        for target in vars(module).values():
            if getattr(target, MARK, None) is not None and getattr(target, "__module__", None) == module.__name__:
                self.add(describe_type(target, trusted, origin))


def local_folders(*starts: Path, home: Path | None = None) -> list[Path]:
    """The folders of local node types that count here, nearest first."""
    found = [folder / ".pflow" / "nodes" for start in starts for folder in (start, *start.parents)]
    if home is not None:
        found.append(home / "nodes")
    return list(dict.fromkeys(path for path in found if path.is_dir()))


def load_file(path: Path) -> ModuleType:
    """Import a file of node types under a name that says where it is; what is wrong in it becomes a problem."""
    name = module_name(path)
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        # Compiled here and not by import: its cache goes by whole seconds, and would miss an edit made within one.
        exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        del sys.modules[name]
        where = getattr(error, "lineno", None) or _line_in(error, str(path))
        problem = Problem(
            f"{type(error).__name__}: {error}", At(str(path), where), "fix this file of node types", "import"
        )
        raise WorkflowError([problem]) from error
    return module


def module_name(path: Path) -> str:
    """The module name a local file is imported under."""
    return f"pflow_local_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}.{path.stem}".replace(".", "_")


def _line_in(error: BaseException, file: str) -> int:
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def entry_points() -> list[tuple[str, str]]:
    """Modules that installed packages offer as node types, each with the name that it is offered under.

    Read from the packages' metadata files directly: importing ``importlib.metadata`` takes longer than a small run.
    """
    found = [offer for folder in sys.path for offer in _declared_in(folder or ".")]
    return sorted(dict.fromkeys(found), key=lambda offer: _rank(offer[1]))  # nobody shadows a built-in


def _rank(module: str) -> tuple[bool, int, str]:
    """Our own first, and of those the ones that are wanted most and cost least."""
    common = ("core", "control", "shell", "workflow", "files")
    name = module.rpartition(".")[2]
    return (not module.startswith(_OWN), common.index(name) if name in common else len(common), module)


def _declared_in(folder: str) -> Iterator[tuple[str, str]]:
    try:
        entries = sorted(os.listdir(folder))  # noqa: PTH208 - a fifth of what Path.iterdir costs, at every start
    except OSError:
        return
    for entry in entries:
        if entry.endswith((".dist-info", ".egg-info")):
            try:
                text = Path(folder, entry, "entry_points.txt").read_text(encoding="utf-8")
            except OSError:
                continue
            yield from _modules(text)


def _modules(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == GROUP and "=" in line:
            name, _, target = line.partition("=")
            yield name.strip(), target.partition("[")[0].partition(":")[0].strip()

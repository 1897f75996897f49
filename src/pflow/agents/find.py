"""Finds an agent by its name.

Sources, first wins: agents that were registered in Python; ``.pflow/agents`` (Markdown and Python) and
``.claude/agents`` (Markdown) from the workflow's folder upwards, then from the current folder upwards; the home's
``agents``; the coding agents that are on this machine (`presets`). Names match without regard to case, ``-`` and ``_``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from pflow.agents.definition import Definition, load
from pflow.agents.presets import PRESETS, Preset, absent, installed
from pflow.errors import NodeError, WorkflowError, suggest
from pflow.nodes.agent import AgentDefinition
from pflow.nodes.registry import load_file, normal

Agent = Definition | AgentDefinition
_registered: dict[str, AgentDefinition] = {}  # normal name → agent


def register(*agents: AgentDefinition) -> Callable[[], None]:
    """Make agents known to every run in this process; call what is returned to take them out again."""
    own = {normal(agent.name): agent for agent in agents}
    _registered.update(own)

    def unregister() -> None:
        for name, agent in own.items():
            if _registered.get(name) is agent:
                del _registered[name]

    return unregister


def find(name: str, workspace: Path, workflow_folder: Path | None = None, home: Path | None = None) -> Agent:
    """The agent of this name; raises ``NodeError`` with the nearest name and the places that were looked at."""
    wanted = normal(name)
    if wanted in _registered:
        return _registered[wanted]
    places = folders(workspace, workflow_folder, home)
    for folder in places:
        found = _in_folder(folder, wanted)
        if found is not None:
            return found
    if wanted in PRESETS:
        return _preset(PRESETS[wanted])
    raise _unknown(name, places, workspace, home)


def _preset(preset: Preset) -> Definition:
    """A coding agent without instructions of our own."""
    if preset.name not in installed():
        raise absent(preset.name, preset, preset.name)
    return Definition(preset.name, preset.title, backend="command", preset=preset.name, command=(preset.name,))


def folders(workspace: Path, workflow_folder: Path | None = None, home: Path | None = None) -> list[Path]:
    """The folders of agents that exist, nearest first."""
    starts = [start.absolute() for start in (workflow_folder, workspace) if start is not None]
    found = [
        place / owner / "agents"
        for start in starts
        for place in (start, *start.parents)
        for owner in (".pflow", ".claude")
    ]
    if home is not None:
        found += [home / "agents", *([home.parent / ".claude" / "agents"] if home.name == ".pflow" else [])]
    return [path for path in dict.fromkeys(found) if path.is_dir()]


def _in_folder(folder: Path, wanted: str) -> Agent | None:
    """The agent of a folder: by the name in its file, else by its file's name."""
    by_file = None
    for path in _markdown(folder):
        named_so = normal(path.stem) == wanted
        try:
            definition = load(path)
        except NodeError:
            if named_so:
                raise
            continue  # what is wrong in the file of another agent is no concern here
        if normal(definition.name) == wanted:
            return definition
        if named_so:
            by_file = definition
    return by_file or _in_python(folder, wanted)


def _in_python(folder: Path, wanted: str) -> AgentDefinition | None:
    """An agent of the Python files; the one that is named so is imported first, and maybe alone."""
    for path in sorted(_python(folder), key=lambda path: normal(path.stem) != wanted):
        try:
            agents = defined_in(path)
        except WorkflowError as error:
            if normal(path.stem) == wanted:
                raise NodeError(error.message, "correct this file", kind="validation") from error
            continue
        for agent in agents:
            if normal(agent.name) == wanted:
                return agent
    return None


def defined_in(path: Path) -> list[AgentDefinition]:
    """The agents that a Python file defines."""
    return [value for value in vars(load_file(path)).values() if isinstance(value, AgentDefinition)]


def names(places: list[Path]) -> Iterator[str]:
    """The names of all agents that can be read; files of Python stand for what they define."""
    yield from (agent.name for agent in _registered.values())
    for folder in places:
        for path in _markdown(folder):
            try:
                yield load(path).name
            except NodeError:
                yield path.stem
        yield from (path.stem for path in _python(folder))
    yield from installed()


def _markdown(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.md") if not path.name.startswith((".", "_")))


def _python(folder: Path) -> list[Path]:
    if folder.parent.name == ".claude":
        return []
    return [path for path in folder.glob("*.py") if not path.name.startswith((".", "_"))]


def _unknown(name: str, places: list[Path], workspace: Path, home: Path | None) -> NodeError:
    known = sorted(dict.fromkeys(names(places)))
    looked = [str(place) for place in places]
    where = ", ".join(looked) if looked else "no folder .pflow/agents or .claude/agents exists here, above, or at home"
    home_agents = f" or {home / 'agents'}" if home is not None else ""
    hint = f"{suggest(name, known, 'agents')}; looked in: {where}"
    return NodeError(
        f'there is no agent "{name}"',
        hint,
        kind="agent",
        details={
            "reason": "unknown",
            "agent": name,
            "known": known,
            "looked_in": looked,
            "place_for_new": f"{workspace / '.pflow' / 'agents'}{home_agents}",
        },
    )

"""Agents that a workflow names: whether there are such agents, asked before anything is run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pflow.errors import NodeError, Problem
from pflow.planning.plan import Plan, Planned

TYPES = ("agent", "agent.tasks")


def unknown_agents(plan: Plan, workspace: Path, home: Path) -> list[Problem]:
    """A problem for each node that names an agent which is nowhere, with the nearest name and where one looked."""
    asking = [planned for planned in plan.nodes.values() if planned.type.name in TYPES]
    for body in plan.bodies.values():
        asking += [planned for planned in body.nodes.values() if planned.type.name in TYPES]
    if not asking:
        return []
    from pflow.agents.find import find

    file = plan.workflow.file
    folder = Path(file).absolute().parent if file else None
    problems: list[Problem] = []
    for planned in asking:
        for name in dict.fromkeys(_named(planned)):
            try:
                find(name, workspace, folder, home)
            except NodeError as error:
                problems += _problems(planned, error)
    return problems


def _problems(planned: Planned, error: NodeError) -> Iterator[Problem]:
    """Why a node's agent cannot be asked; what is wrong in the agent's own file, one by one."""
    from pflow.agents.definition import Misdescribed

    place = planned.node.places.get("params.agent", planned.node.place)
    given = [(error.message, error.hint)]
    if isinstance(error, Misdescribed):
        given = [(f"{one.place}: {one.message}", one.hint) for one in error.problems]
    for message, hint in given:
        yield Problem(f'node "{planned.id}": {message}', place, hint, "agent", planned.id)


def _named(planned: Planned) -> Iterator[str]:
    """The agents that a node names as they are, not by a template."""
    bound = planned.parts.get("agent")
    own = [bound.value] if bound is not None and bound.constant else []
    tasks = planned.node.params.get("tasks")
    theirs = [one.get("agent") for one in tasks if isinstance(one, dict)] if isinstance(tasks, list) else []
    given: list[Any] = [*own, *theirs]
    yield from (name for name in given if isinstance(name, str) and name and "{" not in name)

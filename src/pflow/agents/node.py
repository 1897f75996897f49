"""The node types that ask agents.

Looking any type up may import this module, so it imports what only a run needs where it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pflow.nodes import StepContext, node

if TYPE_CHECKING:
    from pflow.agents.definition import Definition
    from pflow.agents.find import Agent

WIDTH = 8  # tasks of one node that are under way at once


def _depends(params: Mapping[str, Any], workspace: Path, folder: Path | None) -> dict[str, str]:
    """What an answer goes by beside the params: the agent's definition, the prompt's file, or the default model."""
    from pflow.errors import PflowError
    from pflow.model.value import digest
    from pflow.nodes.models import default_model
    from pflow.storage.files import home

    made: dict[str, str] = {}
    name, file = params.get("agent"), params.get("prompt_file")
    if isinstance(name, str) and name:
        from pflow.agents.find import find

        try:
            found = find(name, workspace, folder, home())
        except PflowError:
            return {"agent": "unknown"}
        made["agent"] = _definition(found, workspace)
    elif not params.get("model"):
        made["model"] = default_model()
    if isinstance(file, str) and (found_file := (folder or workspace) / file).is_file():
        made["prompt_file"] = digest(found_file.read_bytes())
    return made


def _definition(agent: Agent, workspace: Path) -> str:
    """The digest of what an agent is: what its file says and the scripts it runs, or its source in Python."""
    import inspect

    import msgspec

    from pflow.agents.definition import Definition
    from pflow.model.value import digest

    if isinstance(agent, Definition):
        return digest([{**msgspec.to_builtins(agent), "file": ""}, *_scripts(agent, workspace)])
    try:
        return digest([agent.name, Path(inspect.getfile(agent.execute)).read_bytes()])
    except (OSError, TypeError):  # it was typed in, or is no plain function: its name has to do
        return agent.name


def _scripts(agent: Definition, workspace: Path) -> list[str]:
    """The digests of the files that a command names; a program that is found elsewhere is not looked into."""
    import hashlib

    from pflow.agents.command import command_words

    words = command_words(agent, workspace) if agent.command else []
    named = words[1:] if words and os.path.isabs(agent.command[0]) else words
    found = []
    for path in (workspace / word for word in named if "\0" not in word):
        if path.is_file() and os.access(path, os.R_OK):
            with path.open("rb") as file:
                found.append(hashlib.file_digest(file, "sha256").hexdigest())
    return found


@node(
    "agent",
    version="1",
    main_in="prompt",
    main_out="text",
    names=("claude.agent",),
    aliases={"promptFile": "prompt_file", "agent_mode": "mode"},
    volatile=True,
    depends=_depends,
    examples=[
        {"prompt": "Is the earth flat?", "outputs": ["verdict"]},
        {"agent": "reviewer", "mode": "REVIEW", "prompt": "Review src/", "outputs": ["approved", "issues"]},
    ],
)
async def agent(
    step: StepContext,
    prompt: str | None = None,
    agent: str | None = None,
    mode: str | None = None,
    messages: list[Any] | None = None,
    prompt_file: str | None = None,
    inputs: dict[str, Any] | None = None,
    outputs: list[str] | None = None,
    strict_outputs: bool = False,
    model: str | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Ask an agent, or without one a model; ``outputs`` names what is taken from the answer.

    The question is one of ``prompt``, ``messages`` and ``prompt_file``, a file in the workflow's folder whose text is
    taken as it is. Without any, the agent is asked with its mode and what the workflow has found out so far. An output
    that the answer lacks is an empty text, or with ``strict_outputs`` a failure.
    """
    from pflow.agents.advice import advising
    from pflow.agents.ask import ask

    with advising(step):
        return await ask(
            step,
            agent=agent or "",
            mode=mode or "",
            prompt=prompt,
            messages=messages,
            prompt_file=prompt_file,
            inputs=inputs,
            outputs=outputs or [],
            strict=strict_outputs,
            model=model or "",
            timeout=timeout,
        )


@node(
    "agent.tasks",
    version="1",
    composite=True,
    effect="quiet",
    main_in="tasks",
    main_out="results",
    literal=("prompt", "tasks"),
    aliases={"agent_mode": "mode"},
    examples=[{"agent": "checker", "tasks": ["lint", "types"], "outputs": ["all_passed", "failed_checks"]}],
)
async def agent_tasks(
    step: StepContext,
    tasks: Any,
    prompt: str | None = None,
    agent: str | None = None,
    mode: str | None = None,
    inputs: dict[str, Any] | None = None,
    outputs: list[str] | None = None,
    strict_outputs: bool = False,
    model: str | None = None,
    timeout: float | None = None,
    as_: str = "task",
    max_concurrent: int = WIDTH,
) -> dict[str, Any]:
    """Ask an agent once for each task, ``max_concurrent`` at a time; a task that fails does not fail the node.

    Texts of the prompt and of the tasks are templates in which the task has the name ``as``. A task may be a mapping
    with its own ``agent``, ``prompt`` or ``workflow``. Of the outputs, ``all_passed``, ``failed_checks`` and
    ``validation_report`` tell about all tasks; any other is the list of what each task gave. ``results`` has it all.
    """
    from pflow.agents.tasks import Common, run_tasks

    common: dict[str, Any] = {"agent": agent, "mode": mode, "inputs": inputs, "model": model, "timeout": timeout}
    common["strict_outputs"] = strict_outputs or None
    given = {key: value for key, value in common.items() if value is not None}
    return await run_tasks(step, Common(tasks, prompt, given, outputs or [], as_, max_concurrent))

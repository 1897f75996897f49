"""The node types that ask agents.

Looking any type up may import this module, so it imports what only a run needs where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pflow.nodes import StepContext, node

WIDTH = 8  # tasks of one node that are under way at once


def _depends(params: Mapping[str, Any], workspace: Path, folder: Path | None) -> dict[str, str]:
    """What an answer goes by beside the params: the agent's definition, the prompt's file, or the default model."""
    from pflow.errors import PflowError
    from pflow.model.value import digest
    from pflow.nodes.models import run_means
    from pflow.storage.files import home

    made: dict[str, str] = {}
    name, file = params.get("agent"), params.get("prompt_file")
    if isinstance(name, str) and name:
        from pflow.agents.find import find

        try:
            found = find(name, workspace, folder, home())
        except PflowError:
            return {"agent": "unknown"}
        path = getattr(found, "path", None)
        made["agent"] = digest(Path(path).read_text(encoding="utf-8", errors="replace")) if path else name
    elif not params.get("model"):
        made["model"] = run_means().default
    if isinstance(file, str) and (found_file := (folder or workspace) / file).is_file():
        made["prompt_file"] = digest(found_file.read_bytes())
    return made


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
    from pflow.agents.asking import ask

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

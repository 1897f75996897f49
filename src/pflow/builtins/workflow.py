"""A workflow as a node of another one."""

from __future__ import annotations

from typing import Any

from pflow.nodes import NodeError, StepContext, node


@node(
    "workflow",
    version="1",
    composite=True,
    effect="quiet",
    main_in="workflow_ref",
    literal=("workflow_ir",),
    aliases={"param_mapping": "inputs", "output_mapping": "outputs"},
)
async def workflow(
    step: StepContext,
    workflow_ref: str | None = None,
    workflow_name: str | None = None,
    workflow_ir: dict[str, Any] | None = None,
    inputs: dict[str, Any] | None = None,
    outputs: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Run another workflow, isolated from this one; ``outputs`` renames what it returns, ``{its name: our name}``."""
    refs = {"ref": workflow_ref, "name": workflow_name, "ir": workflow_ir}
    given = {kind: ref for kind, ref in refs.items() if ref is not None}
    if len(given) != 1:
        hint = "give one of workflow_ref (a path), workflow_name (a saved one) and workflow_ir (the workflow itself)"
        raise NodeError("which workflow is meant is not clear", hint, kind="validation")
    made = await step.run_workflow(given, inputs or {})
    if outputs is None:
        return made
    missing = [name for name in outputs if name not in made]
    if missing:
        hint = f"its outputs: {', '.join(made) or 'none'}"
        raise NodeError(f'the workflow has no output "{missing[0]}"', hint, kind="validation")
    return {ours: made[theirs] for theirs, ours in outputs.items()}

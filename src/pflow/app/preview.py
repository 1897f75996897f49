"""What a workflow would do, told without running it: whether it can be run, what would run and why, what it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pflow.app import cache
from pflow.app.explain import Row, explain
from pflow.app.options import Options
from pflow.app.runner import check_agents, plan, ready, warnings
from pflow.app.secrets import provided
from pflow.app.session import registry_for
from pflow.app.targets import Target
from pflow.errors import Problem
from pflow.model.workflow import Workflow
from pflow.planning.inputs import effective, start


def check(workflow: Workflow, inputs: Mapping[str, Any] | None = None) -> list[Problem]:
    """What is odd about a workflow; raises every problem of it, and of its inputs where they are given."""
    registry = registry_for(workflow, Options())
    if inputs is None:
        plan(workflow, registry=registry)
    else:
        check_agents(ready(workflow, registry, inputs)[0], Options())
    return warnings(workflow, registry)


def preview(target: Target, inputs: Mapping[str, Any], rerun: tuple[str, ...]) -> list[Row]:
    """The nodes in the order in which one worker would run them; of a file, with what would be reused."""
    workflow, options = target.workflow, Options(rerun=rerun)
    if target.is_file:
        made, prospects = cache.prospects(workflow, inputs, options)
    else:
        made, prospects = ready(workflow, registry_for(workflow, options), inputs)[0], {}
    return explain(made, start(workflow, effective(workflow, provided(workflow, inputs, None))), prospects)


def reads(workflow: Workflow, name: str) -> bool:
    """Whether anything in a workflow refers to an input."""
    made, path = plan(workflow), (*workflow.input_path, name)
    references = [
        one for planned in made.nodes.values() for one in (*planned.params.references, *planned.guard_references)
    ]
    references += [one for bound in made.outputs.values() for one in bound.references]
    return any(one.path[: len(path)] == path or one.path == path[: len(one.path)] for one in references)

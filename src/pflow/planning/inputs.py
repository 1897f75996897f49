"""Inputs: what a caller gives, checked against what a workflow declares."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from typing import Any

from pflow.errors import Place, Problem, WorkflowError, suggest
from pflow.model.typed import TYPES
from pflow.model.value import json_text, plain, type_name
from pflow.model.workflow import Input, Workflow
from pflow.planning.plan import Values

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)


def effective(workflow: Workflow, given: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs a run works with: the given ones, checked, and defaults for the rest."""
    declared = {item.name: item for item in workflow.inputs}
    problems = []
    for name in given:
        if name not in declared and not workflow.open_inputs:
            text = f'the workflow has no input "{name}"'
            problems.append(Problem(text, Place(workflow.file), suggest(name, declared, "inputs"), "input"))
    made: dict[str, Any] = {name: plain(value) for name, value in given.items()}
    for name, item in declared.items():
        if name not in made and item.required:
            text = f'the input "{name}" is missing' + (f" ({item.description})" if item.description else "")
            problems.append(Problem(text, item.place, f"give it: {name}=…", "input"))
        elif name not in made and item.env:
            made[name], missing = _from_environment(item.default)
            for variable in missing:
                text = f'the input "{name}" takes ${{{variable}}} from the environment, where it is not set'
                problems.append(Problem(text, item.place, f"set {variable}, or give it: {name}=…", "input"))
        elif name not in made:
            made[name] = plain(item.default)
        elif not _fits(item, made[name]):
            text = f'the input "{name}" must be {item.type}, not {type_name(made[name])} {json_text(made[name])[:60]}'
            problems.append(Problem(text, item.place, "", "input"))
    if problems:
        raise WorkflowError(problems)
    return made


def _from_environment(text: str) -> tuple[str, list[str]]:
    """A text with the variables in it filled in, and those that are not set."""
    missing = [name for name in _VARIABLE.findall(text) if name not in os.environ]
    return _VARIABLE.sub(lambda match: os.environ.get(match[1], ""), text), missing


def _fits(item: Input, value: Any) -> bool:
    kinds = TYPES.get(item.type)
    if kinds is None or (value is None and not item.required):
        return True
    return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)


def start(workflow: Workflow, inputs: Mapping[str, Any], run_id: str = "", at: float = 0.0) -> Values:
    """The values that the first nodes see."""
    made: Any = dict(inputs)
    if workflow.flat:
        made |= {"_session_id": run_id, "_timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))}
    for name in reversed(workflow.input_path):
        made = {name: made}
    return Values(made)

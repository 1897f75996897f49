"""Secrets: kept by reference in a run's records, and taken out of whatever is shown."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pflow.errors import UsageError
from pflow.model.redact import Redactor, known_secrets
from pflow.model.workflow import Workflow
from pflow.storage import settings

REFERENCE = "secret_input"


def hidden(workflow: Workflow, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as they are recorded: a secret one is a reference to itself."""
    secret = {item.name for item in workflow.inputs if item.secret}
    return {name: {REFERENCE: name} if name in secret else value for name, value in inputs.items()}


def revealed(
    workflow: Workflow, recorded: Mapping[str, Any], given: Mapping[str, Any], home: Path | None
) -> dict[str, Any]:
    """Recorded inputs with their secrets: given now, or in the settings' ``env``, or in the environment."""
    known = settings.load(home).env
    made = dict(recorded)
    for item in workflow.inputs:
        if item.secret and recorded.get(item.name) == {REFERENCE: item.name}:
            sources = (given.get(item.name), known.get(item.name), os.environ.get(item.name), item.default)
            found = next((value for value in sources if value is not None), None)
            if found is None and item.required:
                hint = f"give it again ({item.name}=…), or keep it: pflow settings env {item.name} -"
                raise UsageError(f'the run needs its secret input "{item.name}", which is not kept with it', hint)
            made[item.name] = found
    return made


def redactor(workflow: Workflow | None, inputs: Mapping[str, Any], home: Path | None) -> Redactor:
    """What takes the secrets of this user and of these inputs out of what is shown."""
    given = [inputs.get(item.name) for item in workflow.inputs if item.secret] if workflow is not None else []
    return Redactor(known_secrets(settings.load(home).env, os.environ, given))

"""Secrets: kept by reference in a run's records, and taken out of whatever is shown."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pflow import settings
from pflow.errors import UsageError
from pflow.model.redact import Redactor, known_secrets, looks_secret
from pflow.model.typed import typed
from pflow.model.workflow import Input, Workflow
from pflow.storage.sealing import Seal

REFERENCE = "secret_input"


def is_reference(name: str, value: Any) -> bool:
    """Whether a recorded input is a reference to a secret."""
    return bool(value == {REFERENCE: name})


def hidden(workflow: Workflow, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs as they are recorded: a secret one is a reference to itself."""
    secret = {item.name for item in workflow.inputs if item.secret}
    return {name: {REFERENCE: name} if name in secret else value for name, value in inputs.items()}


def provided(workflow: Workflow, given: Mapping[str, Any], home: Path | None) -> dict[str, Any]:
    """Inputs with the secret ones that were not given, where the settings or the environment have them."""
    wanted = [item for item in workflow.inputs if item.secret and item.name not in given]
    known = settings.load(home).env if wanted else {}
    found = {item.name: _known(item, known) for item in wanted}
    return {**{name: value for name, value in found.items() if value is not None}, **given}


def revealed(
    workflow: Workflow, recorded: Mapping[str, Any], given: Mapping[str, Any], home: Path | None
) -> dict[str, Any]:
    """Recorded inputs with their secrets: given now, or in the settings' ``env``, or in the environment."""
    known = settings.load(home).env
    made = dict(recorded)
    for item in workflow.inputs:
        if item.secret and recorded.get(item.name) == {REFERENCE: item.name}:
            sources = (given.get(item.name), _known(item, known), item.default)
            found = next((value for value in sources if value is not None), None)
            if found is None and item.required:
                hint = f"give it again ({item.name}=…), or keep it: pflow settings env {item.name} -"
                raise UsageError(f'the run needs its secret input "{item.name}", which is not kept with it', hint)
            made[item.name] = found
    return made


def _known(item: Input, kept: Mapping[str, str]) -> Any:
    """A secret of this user, by its name: in the settings, or in the environment."""
    text = kept.get(item.name, os.environ.get(item.name))
    return None if text is None else typed(text, item.type)


def redactor(workflow: Workflow | None, inputs: Mapping[str, Any], home: Path | None) -> Redactor:
    """What takes the secrets of this user and of these inputs out of what is shown."""
    given = [inputs.get(item.name) for item in workflow.inputs if item.secret] if workflow is not None else []
    return Redactor(known_secrets(settings.load(home).env, os.environ, given))


def seal(workflow: Workflow, inputs: Mapping[str, Any], home: Path | None) -> Seal:
    """What keeps the secrets of this user and of these inputs out of a run's records."""
    named = {item.name: inputs.get(item.name) for item in workflow.inputs if item.secret}
    known = {**_credentials(os.environ), **settings.load(home).env, **named}
    return Seal({name: text for name, text in known.items() if isinstance(text, str)})


def _credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold a credential; a path (of a socket, say) or a plain word is none."""
    found = {name: text for name, text in environment.items() if looks_secret(name)}
    return {name: text for name, text in found.items() if not os.path.isabs(text) and not text.isalpha()}

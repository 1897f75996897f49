"""Consent: which workflows a person has let change the world, by their files or their names."""

from __future__ import annotations

import os

from pflow.app.explain import Row, explain
from pflow.app.runner import plan
from pflow.model.workflow import Workflow
from pflow.storage.files import home, read_json, write_json

FILE = "confirmed.json"
_MOST = 10_000


def unconfirmed(workflow: Workflow) -> list[Row]:
    """The nodes that may change the world outside, of a workflow that nobody has consented to."""
    if _name(workflow) in _known():
        return []
    return [row for row in explain(plan(workflow)) if row.effect == "impure"]


def confirm(workflow: Workflow) -> None:
    """Remember that a workflow may be run."""
    known = _known()
    if _name(workflow) not in known:
        write_json(home() / FILE, sorted({*known, _name(workflow)})[-_MOST:])


def _name(workflow: Workflow) -> str:
    return os.path.abspath(workflow.file) if workflow.file else workflow.name


def _known() -> set[str]:
    try:
        found = read_json(home() / FILE)
    except (OSError, ValueError):
        return set()
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()

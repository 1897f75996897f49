"""One node, run as a workflow of its own."""

from __future__ import annotations

import os
from typing import Any

from pflow.model.records import Failure
from pflow.model.workflow import Node
from tests.kernel.driving import Driven, workflow

# What a run starts is found by its visit's key, so tests that run beside each other must not share one.
NODE = f"a{os.getpid()}"
VISIT = f"{NODE}#1"


def driven(kind: str, /, **params: Any) -> Driven:
    return Driven(workflow(Node(NODE, kind, params))).drive()


def outputs(kind: str, /, **params: Any) -> dict[str, Any]:
    """What the node made; it must succeed."""
    run = driven(kind, **params)
    outcome = run.ended[VISIT]
    assert outcome.failure is None, outcome.failure
    return outcome.outputs


def failure(kind: str, /, **params: Any) -> Failure:
    """Why the node failed; it must."""
    outcome = driven(kind, **params).ended[VISIT]
    assert outcome.failure is not None, outcome.outputs
    return outcome.failure

"""pflow runs AI-agent workflows, repeats nothing that it need not repeat, and loses nothing when it is stopped.

    import pflow

    workflow = pflow.load("flow.yaml")
    result = await pflow.run(workflow, inputs={"name": "world"}, on_event=print)
    result = await pflow.resume(result.run_id)

Names are imported when they are first used, so that importing pflow costs next to nothing.
"""

from typing import TYPE_CHECKING, Any

from pflow.version import __version__

if TYPE_CHECKING:
    from pflow.app import Result, fork, load, parse, resume, run, run_sync
    from pflow.errors import (
        BindingError,
        ExpressionError,
        InternalError,
        JournalError,
        NodeError,
        PflowError,
        Place,
        Problem,
        PurityError,
        RunBusy,
        RunError,
        RunNotFound,
        UsageError,
        WorkflowError,
    )
    from pflow.harness import Harness
    from pflow.kernel.events import Hub
    from pflow.model.event import Context, Envelope, Event
    from pflow.model.records import Failure, Outcome
    from pflow.model.workflow import Workflow
    from pflow.nodes import Node
    from pflow.nodes.agent import AgentContext, AgentDefinition
    from pflow.nodes.graph_api.flow import Flow, Inputs
    from pflow.nodes.models import chat_stream
    from pflow.nodes.step import StepContext
    from pflow.nodes.type import Routed, flow_safe, node

__all__ = [
    # running
    "load", "parse", "run", "run_sync", "resume", "fork", "Result", "Workflow", "Harness",
    # node types and agents
    "node", "flow_safe", "Node", "Routed", "StepContext", "AgentDefinition", "AgentContext", "Flow", "Inputs",
    "chat_stream",
    # what comes out
    "Failure", "Outcome", "Envelope", "Event", "Context", "Hub",
    # errors
    "PflowError", "UsageError", "WorkflowError", "Problem", "Place", "BindingError", "ExpressionError", "NodeError",
    "PurityError", "RunError", "RunNotFound", "RunBusy", "JournalError", "InternalError",
    "__version__",
]  # fmt: skip

_HOMES = {
    "pflow.app": ("load", "parse", "run", "run_sync", "resume", "fork", "Result"),
    "pflow.harness": ("Harness",),
    "pflow.kernel.events": ("Hub",),
    "pflow.model.event": ("Context", "Envelope", "Event"),
    "pflow.model.records": ("Failure", "Outcome"),
    "pflow.model.workflow": ("Workflow",),
    "pflow.nodes.agent": ("AgentContext", "AgentDefinition"),
    "pflow.nodes.graph_api.flow": ("Flow", "Inputs"),
    "pflow.nodes.models": ("chat_stream",),
    "pflow.nodes": ("Node",),
    "pflow.nodes.type": ("Routed", "flow_safe", "node"),
    "pflow.nodes.step": ("StepContext",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'pflow' has no attribute {name!r}")
    value = getattr(import_module(_HOME.get(name, "pflow.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

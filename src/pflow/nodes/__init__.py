"""The node door: what a node type is and how one comes in. Built-ins use nothing else."""

from pflow.errors import NodeError, PurityError
from pflow.lang.comparison import truth
from pflow.lang.template import to_text
from pflow.model.value import same, type_name
from pflow.nodes.agent import AgentContext, AgentDefinition
from pflow.nodes.graph_api.flow import Flow, Inputs
from pflow.nodes.step import StepContext
from pflow.nodes.type import UNKNOWN, NodeType, Routed, flow_safe, node
from pflow.nodes.type import NodeBase as Node

__all__ = [
    "AgentContext",
    "AgentDefinition",
    "Flow",
    "Inputs",
    "Node",
    "NodeError",
    "NodeType",
    "PurityError",
    "Routed",
    "StepContext",
    "UNKNOWN",
    "flow_safe",
    "node",
    "same",
    "to_text",
    "truth",
    "type_name",
]

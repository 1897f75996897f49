"""The tools that clients are offered: one table of names, descriptions, schemas and the functions behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pflow.mcp_server import queries, runs

_TEXT = {"type": "string"}
_WORKFLOW = {"type": "string", "description": "A workflow file, a saved workflow's name, or a pipeline: a >> b"}
_FILE = {"type": "string", "description": "A workflow file, from the server's folder"}
_DOCUMENT = {"type": "string", "description": "The workflow itself (JSON or YAML), in place of a file"}
_INPUTS = {"type": "object", "description": "Inputs of the workflow, by name"}
_RUN = {"type": "string", "description": "A run's id, or the start of it"}
_RERUN = {"type": "array", "items": _TEXT, "description": "Nodes to run again, with what is below them"}
_MEANS = {
    "model": {"type": "string", "description": "The model that is asked where the workflow names none"},
    "budget": {"type": "number", "exclusiveMinimum": 0, "description": "USD; the run pauses before it is passed"},
}
_GO_ON = {
    "on_doubt": {
        "enum": ["retry", "skip", "fail"],
        "description": "What to do with a node that was cut off and may have taken effect",
    },
    "secrets": {"type": "object", "description": "Secret inputs, which are not kept with a run"},
    **_MEANS,
}


class Tool(msgspec.Struct, frozen=True):
    """A tool: what a client is told of it, and what does it."""

    name: str
    description: str
    function: Callable[..., Any]
    properties: dict[str, Any] = {}
    required: tuple[str, ...] = ()
    drives: bool = False  # it drives a run
    changes: bool = False  # it changes something

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        made = {"type": "object", "properties": self.properties, "additionalProperties": False}
        return made | ({"required": list(self.required)} if self.required else {})


_OFFERS = (
    Tool(
        "instructions",
        "How to write, run and improve pflow workflows, with examples that work. Read this first.",
        queries.instructions,
    ),
    Tool(
        "node_types",
        "List the node types that workflows can use here; with words, those that mention all of them.",
        queries.node_types,
        {"words": _TEXT},
    ),
    Tool(
        "describe_node_type",
        "A node type's params, outputs, effect and examples.",
        queries.describe_node_type,
        {"type": _TEXT},
        ("type",),
    ),
    Tool(
        "validate",
        "Check a workflow: every problem at once, each with its place and a hint. Runs nothing.",
        queries.validate,
        {"workflow": _WORKFLOW, "document": _DOCUMENT},
    ),
    Tool(
        "plan",
        "What a run would execute and what it would reuse, with the reasons. Runs nothing.",
        queries.plan,
        {
            "workflow": _WORKFLOW,
            "document": _DOCUMENT,
            "inputs": _INPUTS,
            "rerun": _RERUN,
            "params": {"type": "boolean", "description": "Also show each node's params"},
        },
    ),
    Tool(
        "run",
        "Run a workflow and wait for its end. Nodes of a file that did not change since earlier runs are reused. "
        "Large values are cut; `field` fetches one whole. A run that failed, or waits for an answer, can be resumed.",
        runs.run,
        {
            "workflow": _WORKFLOW,
            "document": _DOCUMENT,
            "inputs": _INPUTS,
            "output": {"type": "string", "description": "The output to return: a declared one, NODE or NODE.OUTPUT"},
            "rerun": _RERUN,
            "cache": {"type": "boolean", "description": "false: reuse nothing of earlier runs, and keep nothing"},
            "jobs": {"type": "integer", "minimum": 1, "description": "Nodes at once"},
            **_MEANS,
        },
        drives=True,
        changes=True,
    ),
    Tool(
        "resume",
        "Go on with a run that was stopped, failed or waits; what completed is not repeated.",
        runs.resume,
        {"run": _RUN, "at": {"type": "string", "description": "Go on from this node, as a new run"}, **_GO_ON},
        ("run",),
        drives=True,
        changes=True,
    ),
    Tool(
        "reply",
        "Answer a question that a run asks, and go on with it.",
        runs.reply,
        {"run": _RUN, "text": _TEXT, "node": {"type": "string", "description": "Who asked, if several do"}, **_GO_ON},
        ("run", "text"),
        drives=True,
        changes=True,
    ),
    Tool("cancel", "End a run for good.", queries.cancel, {"run": _RUN}, ("run",), changes=True),
    Tool(
        "runs",
        "The newest runs, and how they stand.",
        queries.runs,
        {"most": {"type": "integer", "minimum": 1, "maximum": 200}},
    ),
    Tool(
        "trace",
        "What happened in a run (the newest, if none is named): timeline, attempts, where and why it failed. "
        "With a node: what it was given and what it made.",
        queries.trace,
        {"run": _RUN, "node": _TEXT},
    ),
    Tool(
        "field",
        "One value of a run, whole: a path such as `fetch.response.items[0]`. A long one comes in stretches.",
        queries.field,
        {
            "run": _RUN,
            "path": _TEXT,
            "start": {"type": "integer", "minimum": 0, "description": "The character to begin at"},
            "most": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "description": "Characters (20000)"},
        },
        ("run", "path"),
    ),
    Tool(
        "cache_status", "What is cached of a workflow file.", queries.cache_status, {"workflow": _FILE}, ("workflow",)
    ),
    Tool(
        "why",
        "Why a node of a workflow file would run again, or not: what changed since it last ran.",
        queries.why,
        {"workflow": _FILE, "node": _TEXT, "inputs": _INPUTS},
        ("workflow", "node"),
    ),
    Tool(
        "save",
        "Save a workflow, to run it by name from anywhere.",
        queries.save,
        {"workflow": _FILE, "document": _DOCUMENT, "name": _TEXT, "replace": {"type": "boolean"}},
        ("name",),
        changes=True,
    ),
    Tool("workflows", "List the saved workflows.", queries.workflows),
)
OFFERS = {offer.name: offer for offer in _OFFERS}

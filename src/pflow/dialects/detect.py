"""Which dialect a document is written in, told by what it says and never by its file's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from pflow.documents.source import Source
from pflow.errors import Problem, WorkflowError, nearest
from pflow.model.value import type_name
from pflow.model.workflow import Workflow

# A dialect → what it is called, and what tells it from the others.
DIALECTS = {
    "flowspec": ("FlowSpec", 'a "flow" mapping'),
    "hifide": ("HiFide", 'nodes with "nodeType" and edges with "source" and "target"'),
    "dotrunner": ("DotRunner", 'nodes with "prompt", "agent" or "workflow"'),
    "pflow": ("pflow", '"ir_version", or nodes with "type" and "params"'),
}

# The keys that each dialect alone would use, to find the nearest one for a document that is none.
_TYPICAL = {
    "flowspec": {"flow", "nodePacks", "input", "config", "when", "policy", "from", "to", "edges"},
    "hifide": {"nodeType", "kind", "position", "label", "expanded", "data", "source", "target", "sourceHandle"},
    "dotrunner": {"workflow", "context", "prompt", "agent", "agent_mode", "outputs", "next", "retry_on_failure"},
    "pflow": {"ir_version", "ir", "params", "purpose", "batch", "exec", "inputs", "start_node", "from", "to", "action"},
}


def detect(source: Source) -> str:
    """The name of the document's dialect; raises ``WorkflowError`` for one that fits none."""
    data = source.data
    if isinstance(data, dict):
        for name, fits in _TESTS:
            if fits(data):
                return name
    raise WorkflowError([_unfit(source)])


def parse(source: Source) -> Workflow:
    """The workflow that a document of any dialect describes."""
    workflow: Workflow = import_module(f"pflow.dialects.{detect(source)}").parse(source)
    return workflow


# Telling.


def _is_flowspec(data: dict[str, Any]) -> bool:
    return isinstance(data.get("flow"), dict)


def _names_pflow(data: dict[str, Any]) -> bool:
    return "ir_version" in data or isinstance(data.get("ir"), dict)


def _has_params(data: dict[str, Any]) -> bool:
    return any("params" in node for node in _nodes(data))


def _is_hifide(data: dict[str, Any]) -> bool:
    typed = any(
        "nodeType" in node or "kind" in node or (isinstance(inner := node.get("data"), dict) and "nodeType" in inner)
        for node in _nodes(data)
    )
    return typed or (any("type" in node for node in _nodes(data)) and any("source" in edge for edge in _edges(data)))


def _is_dotrunner(data: dict[str, Any]) -> bool:
    own = isinstance(data.get("workflow"), dict)
    return own or any(key in node for node in _nodes(data) for key in ("prompt", "agent", "workflow"))


def _is_plain_pflow(data: dict[str, Any]) -> bool:
    """Nodes of a type without params, and nothing that FlowSpec alone would say."""
    foreign = _TYPICAL["flowspec"] - _TYPICAL["pflow"]
    return any("type" in node for node in _nodes(data)) and not any(
        key in foreign for part in (*_nodes(data), *_edges(data)) for key in part
    )


_TESTS: tuple[tuple[str, Callable[[dict[str, Any]], bool]], ...] = (
    ("flowspec", _is_flowspec),
    ("pflow", _names_pflow),
    ("hifide", _is_hifide),
    ("pflow", _has_params),
    ("dotrunner", _is_dotrunner),
    ("pflow", _is_plain_pflow),
)


def _nodes(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return _mappings(data.get("nodes"))


def _edges(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return _mappings(data.get("edges"))


def _mappings(items: Any) -> Iterator[dict[str, Any]]:
    return (item for item in items if isinstance(item, dict)) if isinstance(items, list) else iter(())


# Explaining.


def _unfit(source: Source) -> Problem:
    looked = "; ".join(f"{title}: {sign}" for title, sign in DIALECTS.values())
    if not isinstance(source.data, dict):
        message = f"a workflow is a mapping, not {type_name(source.data)}"
        return Problem(message, source.place(), f"looked for {looked}", "dialect")
    close = _nearest(source.data)
    near = f"nearest is {DIALECTS[close][0]}, which needs {DIALECTS[close][1]}; " if close else ""
    message = "this is no workflow of a known dialect"
    return Problem(message, source.place(), f"{near}looked for {looked}", "dialect")


def _nearest(data: dict[str, Any]) -> str:
    """The dialect whose own words occur most, or nearly occur at the top."""
    words = {key for part in (data, *_nodes(data), *_edges(data)) for key in part}
    top = [nearest(key, ("flow", "workflow", "ir_version")) for key in list(data)[:20]]
    scores = {name: len(words & own) + 3 * len(own.intersection(top)) for name, own in _TYPICAL.items()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] else ""

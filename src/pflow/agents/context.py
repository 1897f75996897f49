"""What an agent's node sees around it: the document it stands in, and the values so far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pflow.errors import NodeError, suggest
from pflow.model.value import plain
from pflow.nodes.step import StepContext

_OWN = ("text", "usage")  # outputs of every agent, beside those that its node declares
LARGEST = 10_000_000  # bytes of a prompt's file


def document_folder(step: StepContext) -> Path | None:
    """The folder of the document that the node stands in; None for a workflow without one."""
    file = step.workflow.file
    return Path(file).absolute().parent if file else None


def context(step: StepContext) -> dict[str, Any]:
    """What has been found out so far, each thing once: inputs and outputs by name, and what is only known by its node.

    Private names (``_session_id``), secret inputs and accounts of usage are left out.
    """
    workflow, values = step.workflow, step.values
    hidden = {item.name for item in workflow.inputs if item.secret}
    nodes = {node.id: node for node in workflow.nodes}
    names = [name for name in values if not name.startswith("_") and name not in hidden]
    seen = {name: values[name] for name in names if name not in nodes and not (workflow.flat and name in _OWN)}
    for name in names:
        if name in nodes and isinstance(values[name], dict):
            extra = _only_here(values[name], seen if workflow.flat else {}, bool(nodes[name].outputs))
            seen |= {name: extra} if extra else {}
    made: dict[str, Any] = plain(seen)
    return made


def _only_here(outputs: dict[str, Any], seen: dict[str, Any], declared: bool) -> dict[str, Any]:
    """Those of a node's outputs that are not seen already; an answer from which outputs were taken is."""
    return {
        name: value
        for name, value in outputs.items()
        if name != "usage" and not (name == "text" and declared) and not (name in seen and seen[name] is value)
    }


def prompt_from(step: StepContext, name: str) -> str:
    """The text of a prompt's file, which is found from the document's folder and stands in its tree."""
    folder = (document_folder(step) or step.workspace).resolve()
    if "\0" in name or not name.strip():
        raise NodeError("prompt_file names no file", "prompt_file: prompts/review.md", "validation")
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise NodeError(
            f"prompt_file {name} leads out of {folder}",
            "a prompt's file stands beside or below its workflow",
            "validation",
        )
    try:
        if path.stat().st_size > LARGEST:
            raise NodeError(f"prompt_file {name} is over {LARGEST:,} bytes", kind="validation")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise NodeError(f"prompt_file {name} is no UTF-8 text", kind="validation") from None
    except OSError as error:
        beside = [one.name for one in path.parent.glob("*") if one.is_file()] if path.parent.is_dir() else []
        raise NodeError(
            f"prompt_file {name} cannot be read: {error.strerror} ({path})",
            suggest(path.name, sorted(beside), "files there"),
            "validation",
        ) from None

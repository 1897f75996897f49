"""What a tool answered, as the outputs of a node: its structured content by name, else its text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pflow.errors import NodeError

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_SHOWN = 4000  # characters of an error


def outputs(answer: CallToolResult, server: str, tool: str) -> dict[str, Any]:
    """``result``, beside it each field of the structured content, and ``content`` where it is more than text."""
    blocks = [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in answer.content]
    text = "\n".join(block["text"] for block in blocks if block.get("type") == "text")
    if answer.is_error:
        raise _failed(answer, text, server, tool)
    made: dict[str, Any] = {}
    structured = answer.structured_content
    if isinstance(structured, dict):
        made.update(structured)
    made.setdefault("result", text if structured is None else structured)
    if any(block.get("type") != "text" for block in blocks):
        made.setdefault("content", blocks)
    return made


def _failed(answer: CallToolResult, text: str, server: str, tool: str) -> NodeError:
    details: dict[str, object] = {"server": server, "tool": tool}
    if isinstance(answer.structured_content, dict):
        details["answer"] = answer.structured_content
    said = text.strip()[:_SHOWN] or "it said no more than that it failed"
    return NodeError(f"{tool} (MCP server {server}): {said}", "", "tool", details)

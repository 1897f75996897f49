"""The MCP server: tools are listed from the table, calls are carried out, errors come back with hints."""

from __future__ import annotations

import asyncio
from typing import Any

from pflow.app.problems import check_arguments, error_view, problems_of
from pflow.app.runs import waiting
from pflow.app.session import Session
from pflow.errors import PflowError, UsageError, suggest
from pflow.mcp_server.bounds import Bounds
from pflow.mcp_server.questions import Asking
from pflow.mcp_server.runs import Caller, answered
from pflow.mcp_server.tools import OFFERS, Tool
from pflow.model.value import json_text
from pflow.version import __version__

INTRODUCTION = (
    "pflow runs workflows of AI agents, repeats nothing that did not change, and loses nothing when it is stopped. "
    "Call `instructions` first. Then: write a workflow file, `validate`, `plan`, `run`; `trace`, `field` and `why` "
    "tell what happened. Results are small: `field` fetches one value whole."
)


class Service:
    """What is served: the tools, inside some folders, and the runs that are under way."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.active: dict[Session, asyncio.Future[Any]] = {}  # runs under way, and when they are left

    def server(self) -> Any:
        """The server, to be given a transport."""
        from mcp.server import Server

        return Server(
            "pflow",
            version=__version__,
            instructions=INTRODUCTION,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(self, context: Any, params: Any) -> Any:
        from mcp import types

        return types.ListToolsResult(tools=[_described(offer) for offer in OFFERS.values()])

    async def _call(self, context: Any, params: Any) -> Any:
        asking = Asking(context, params)
        given = params.arguments or {}
        try:
            offer = _checked(params.name, given)
            if not offer.drives:
                return _result(offer.function(self._bounds, given))
            caller = Caller(context.session, asking, self.active)
            if asking.run_id:
                view = await answered(self._bounds, given, caller, asking.run_id)
            else:
                view = await offer.function(self._bounds, given, caller)
        except PflowError as error:
            return _failed(error)
        questions = waiting(view["run_id"]) if view.get("waiting") else ()
        return asking.wanted(view, questions) or _result(view)


def _described(offer: Tool) -> Any:
    from mcp import types

    hints = types.ToolAnnotations(read_only_hint=not offer.changes, open_world_hint=offer.drives)
    return types.Tool(name=offer.name, description=offer.description, input_schema=offer.schema, annotations=hints)


def _checked(name: str, given: dict[str, Any]) -> Tool:
    offer = OFFERS.get(name)
    if offer is None:
        raise UsageError(f'there is no tool "{name}"', suggest(name, OFFERS, "tools"))
    check_arguments(name, given, offer.schema)
    return offer


def _result(view: dict[str, Any]) -> Any:
    from mcp import types

    alone = view["text"] if list(view) == ["text"] else json_text(view)
    return types.CallToolResult(content=[types.TextContent(text=alone)], structured_content=view)


def _failed(error: PflowError) -> Any:
    """An error as its reader can use it: what, where, and what to do."""
    from mcp import types

    problems = problems_of(error)
    text = "\n".join(f"error: {one}" for one in problems)
    errors = [{key: value for key, value in error_view(one).items() if value} for one in problems]
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content={"errors": errors}, is_error=True
    )

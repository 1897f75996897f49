"""A small real MCP server for the tests, over stdio or (with --http) over HTTP; it can also behave badly."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TEXT = {"type": "string"}
Handler = Callable[[dict[str, Any], Any], Awaitable[Any]]


def says(text: str, structured: Any = None, error: bool = False) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(text=text)]
    return types.CallToolResult(content=content, structured_content=structured, is_error=error)


async def add(given: dict[str, Any], _: Any) -> Any:
    total = given["a"] + given["b"]
    return says(f"{total}", {"sum": total, "even": total % 2 == 0})


async def shout(given: dict[str, Any], _: Any) -> Any:
    return says(given["text"].upper() + "!" * given.get("times", 0))


async def fail(given: dict[str, Any], _: Any) -> Any:
    return says(f"no: {given['why']}", error=True)


async def die(given: dict[str, Any], _: Any) -> Any:
    sys.stderr.write("out of cheese\n")
    sys.stderr.flush()
    os._exit(3)


async def die_once(given: dict[str, Any], context: Any) -> Any:
    mark = Path(given["path"])
    if not mark.exists():
        mark.touch()
        await die(given, context)
    return says("alive")


async def wait(given: dict[str, Any], _: Any) -> Any:
    """Tell that it has begun, and wait for good; being cancelled is told, too."""
    Path(given["begun"]).write_text("begun")
    try:
        await anyio.sleep_forever()
    finally:
        Path(given["cancelled"]).write_text("cancelled")


async def hang(given: dict[str, Any], _: Any) -> Any:
    Path(given["pid"]).write_text(str(os.getpid()))
    time.sleep(600)  # noqa: ASYNC251 - that is its fault


async def pid(given: dict[str, Any], _: Any) -> Any:
    return says(str(os.getpid()))


async def environment(given: dict[str, Any], _: Any) -> Any:
    return says("", {"env": dict(os.environ), "cwd": os.getcwd()})


async def misfit(given: dict[str, Any], _: Any) -> Any:
    return says("", {"count": "many"})


async def big(given: dict[str, Any], _: Any) -> Any:
    return says("x" * given["size"])


async def picture(given: dict[str, Any], _: Any) -> Any:
    image = types.ImageContent(data=PIXEL, mime_type="image/png")
    return types.CallToolResult(content=[types.TextContent(text="a pixel"), image])


async def steps(given: dict[str, Any], context: Any) -> Any:
    for n in range(1, 4):
        await context.session.report_progress(n, 3, f"step {n}")
    return says("done")


def tool(
    handler: Handler, properties: dict[str, Any], required: list[str], out: Any = None, reads: bool = False
) -> Any:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    hints = types.ToolAnnotations(read_only_hint=reads)
    listed = types.Tool(
        name=handler.__name__, description=f"To {handler.__name__}.", input_schema=schema, output_schema=out,
        annotations=hints,
    )  # fmt: skip
    return listed, handler


SUM = {"type": "object", "properties": {"sum": {"type": "integer"}, "even": {"type": "boolean"}}, "required": ["sum"]}
COUNT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
NUMBER = {"type": "integer", "minimum": -1000}
ALL = [
    tool(add, {"a": NUMBER, "b": NUMBER}, ["a", "b"], SUM, reads=True),
    tool(shout, {"text": {**TEXT, "description": "What to shout"}, "times": {"type": "integer"}}, ["text"]),
    tool(fail, {"why": TEXT}, ["why"]),
    tool(die, {}, []),
    tool(die_once, {"path": TEXT}, ["path"], reads=True),
    tool(wait, {"begun": TEXT, "cancelled": TEXT}, ["begun", "cancelled"]),
    tool(hang, {"pid": TEXT}, ["pid"]),
    tool(pid, {}, []),
    tool(environment, {}, []),
    tool(misfit, {}, [], COUNT),
    tool(big, {"size": {"type": "integer"}}, ["size"]),
    tool(picture, {}, []),
    tool(steps, {}, []),
]


def made() -> Any:
    hidden = os.environ.get("HIDE", "").split(",")
    tools = {listed.name: (listed, handler) for listed, handler in ALL if listed.name not in hidden}
    if "shout" in tools and os.environ.get("STRICT"):
        changed = tools["shout"][0].model_copy(deep=True)
        changed.input_schema["required"] = ["text", "times"]
        tools["shout"] = (changed, shout)

    async def list_tools(context: Any, params: Any) -> Any:
        return types.ListToolsResult(tools=[listed for listed, _ in tools.values()])

    async def call_tool(context: Any, params: Any) -> Any:
        return await tools[params.name][1](params.arguments or {}, context)

    return Server("small", version="1.0", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve() -> None:
    server = made()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main() -> None:
    if "--die" in sys.argv:
        sys.stderr.write("first\nno licence found\n")
        sys.exit(1)
    if "--hang" in sys.argv:
        Path(os.environ["MARK"]).touch()
        sys.stdin.buffer.read()
    if "--garbage" in sys.argv:
        sys.stdout.write("Welcome to my server!\n{not json\n")
        sys.stdout.buffer.write(b"\xff\xfe\n")
        sys.stdout.flush()
    if "--only-garbage" in sys.argv:
        sys.stdout.write("Listening…\n")
        sys.stdout.flush()
        Path(os.environ["MARK"]).touch()
        sys.stdin.buffer.read()
    if "--http" in sys.argv:
        import uvicorn

        listening = socket.create_server(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        app = made().streamable_http_app()
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
        return
    anyio.run(serve)


if __name__ == "__main__":
    main()

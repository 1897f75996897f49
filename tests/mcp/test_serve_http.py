"""``pflow mcp serve`` by HTTP, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client

from tests.mcp.test_serve import COMMAND, MODES, PATIENCE, SLOW, call, workflows

__all__ = ["workflows"]


@pytest.fixture
def served(here: Path) -> Any:
    process = subprocess.Popen([*COMMAND, "--http"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = process.stderr.readline().split()[-1]
    token = process.stderr.readline().split()[-1]
    yield url, token, process
    process.kill()
    process.communicate()


@asynccontextmanager
async def web(url: str, token: str) -> AsyncIterator[Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers) as http, streamable_http_client(url, http_client=http) as streams:
        yield streams


@pytest.mark.parametrize("mode", MODES)
def test_it_is_served_by_http_to_who_has_the_token(served: Any, mode: str) -> None:
    url, token, process = served

    async def answer(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"answer": "yes"})

    async def main() -> None:
        async with asyncio.timeout(PATIENCE):
            road: Any = web(url, token)
            async with Client(road, mode=mode, elicitation_callback=answer) as client:
                assert (await call(client, "run", workflow="greeting.yaml"))["result"] == "HELLO, WORLD!"
                assert (await call(client, "run", workflow="question.yaml"))["result"] == "answer: yes"
            for wrong in ("", "x" * len(token)):
                headers = {"Authorization": f"Bearer {wrong}"} if wrong else {}
                async with httpx2.AsyncClient(headers=headers) as http:
                    assert (await http.post(url, json={})).status_code == 401
            foreign = {"Authorization": f"Bearer {token}", "Host": "evil.example"}
            async with httpx2.AsyncClient(headers=foreign) as http:
                assert (await http.post(url, json={})).status_code == 421

    asyncio.run(main())
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 128 + signal.SIGTERM


def test_a_signal_interrupts_the_runs_under_way(here: Path) -> None:
    (here / "slow.yaml").write_text(SLOW)
    os.mkfifo(here / "started")
    process = subprocess.Popen([*COMMAND, "--http"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url, token = process.stderr.readline().split()[-1], process.stderr.readline().split()[-1]

    async def main() -> None:
        async with asyncio.timeout(PATIENCE), httpx2.AsyncClient() as _:
            road: Any = web(url, token)
            async with Client(road, mode="legacy") as client:
                running = asyncio.create_task(client.call_tool("run", {"workflow": "slow.yaml"}))
                await asyncio.to_thread((here / "started").read_text)
                process.terminate()
                assert await asyncio.to_thread(process.wait, PATIENCE) == 128 + signal.SIGTERM
                running.cancel()
                await asyncio.wait({running})

    try:
        asyncio.run(main())
    finally:
        process.kill()
        process.communicate()
    from pflow.app.runs import survey

    assert [glance.status for glance in survey()] == ["interrupted"]


def test_a_signal_ends_a_server_whose_client_is_still_there() -> None:
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(COMMAND, text=True, **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\nno message\n"
        )
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "pflow"
        process.terminate()
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM

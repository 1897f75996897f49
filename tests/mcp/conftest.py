from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import pflow
from pflow.mcp import config
from pflow.mcp.config import Server
from pflow.mcp.sync import Synced, sync
from pflow.model.workflow import Edge, Node, Workflow

SCRIPT = str(Path(__file__).parent / "server.py")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def known(*words: str, name: str = "small", **fields: Any) -> Server:
    """Make the test server known, without asking it for anything."""
    server = Server(command=sys.executable, args=(SCRIPT, *words), **fields)
    config.add({name: server}, replace=True)
    return server


def synced(*words: str, name: str = "small", **fields: Any) -> Synced:
    """Make the test server known, and ask it for its tools."""
    known(*words, name=name, **fields)
    made = asyncio.run(sync(name))
    assert made.problem is None, made.problem
    return made


def flow(*nodes: Node) -> Workflow:
    """Nodes, one after the other."""
    edges = tuple(Edge(one.id, two.id) for one, two in pairwise(nodes))
    return Workflow("w", "test", nodes, edges)


def one(tool: str, params: dict[str, Any] | None = None, **options: Any) -> pflow.Result:
    """Run one tool of the test server by itself."""
    return pflow.run_sync(flow(Node("n", f"mcp-small-{tool}", params or {})), **options)


@pytest.fixture
def http() -> Iterator[Callable[[], str]]:
    """Starts the test server on a port of its own; the URL."""
    started: list[subprocess.Popen[str]] = []

    def start() -> str:
        process = subprocess.Popen([sys.executable, SCRIPT, "--http"], stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        return f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"

    yield start
    for process in started:
        process.kill()
        process.communicate()

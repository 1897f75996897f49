"""A sync node function in a process of its own, so that a timeout or a cancel can end it.

The parent sends one pickled request on stdin and reads one pickled answer from stdout; what the function prints
goes to stderr. Only functions that can be imported by name can be sent.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

from pflow.errors import NodeError
from pflow.nodes.process.run import MARK, begun, close, end_group
from pflow.nodes.type import NodeType

_LIMIT = 2**30


async def call_in_process(kind: NodeType, params: dict[str, Any], mark: str) -> Any:
    """The function's result; cancelling ends the process and everything it started."""
    request = pickle.dumps((*_named(kind), kind.watched, params))
    environment = {**os.environ, MARK: mark, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process, _ = await begun(_start(environment), mark)
    try:
        answer, _ = await process.communicate(request)
    except BaseException:
        await asyncio.shield(end_group(process, mark))
        raise
    finally:
        close(process)
    if not answer:
        raise NodeError(f"the node's process ended with code {process.returncode} and no result")
    good, value = pickle.loads(answer)
    if good:
        return value
    raise value


async def _start(environment: dict[str, str]) -> tuple[Process, None]:
    words = (sys.executable, "-m", "pflow.nodes.process.worker")
    process = await asyncio.create_subprocess_exec(
        *words, stdin=PIPE, stdout=PIPE, start_new_session=True, env=environment, limit=_LIMIT
    )
    return process, None


def _named(kind: NodeType) -> tuple[str, str, str]:
    """File, module and name that lead to the function from another process."""
    target = kind.target
    module, name = target.__module__, target.__qualname__
    if "<locals>" in name or module == "__main__":
        raise NodeError(
            f'"{kind.name}" is a sync function inside another one or in a script, so it cannot be stopped by a timeout',
            "define it at the top level of a module, or make it async",
        )
    file = getattr(sys.modules.get(module), "__file__", "") or ""
    return (file if module.startswith("pflow_local_") else "", module, name)


def main() -> None:
    """Serve one request."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a function that prints must not disturb the answer
    answers.write(pickle.dumps(_answer(*pickle.load(sys.stdin.buffer))))
    answers.close()


def _answer(file: str, module: str, name: str, watched: bool, params: dict[str, Any]) -> tuple[bool, Any]:
    from pflow.nodes.purity import watch
    from pflow.nodes.registry import load_file
    from pflow.nodes.type import describe_type

    try:
        target: Any = load_file(Path(file)) if file else importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
        kind = describe_type(target)
        return True, watch(kind.call, **params) if watched else kind.call(**params)
    except Exception as error:  # noqa: BLE001 - node code: whatever it raises is its answer
        return _failed(error)


def _failed(error: Exception) -> tuple[bool, Any]:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - an exception of a stranger's class may not survive the way back
        return False, NodeError(f"{type(error).__name__}: {error}")
    return False, error


if __name__ == "__main__":
    main()

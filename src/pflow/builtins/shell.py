"""Commands, run by ``sh -c`` in a process group of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

from pflow.nodes import NodeError, StepContext, node, to_text
from pflow.nodes.process import MARK, close, end_group

LINGER = 0.25  # seconds to go on reading when the command is done but a background child holds its output open
_CHUNK = 1 << 16


@node(
    "shell",
    version="1",
    main_in="command",
    main_out="stdout",
    outputs=("stdout", "stderr", "exit_code", "stdout_file", "stderr_file"),
    examples=[{"command": "echo hello"}],
)
async def shell(
    step: StepContext,
    command: str,
    stdin: Any = None,
    cwd: str | None = None,
    env: dict[str, Any] | None = None,
    timeout: float | None = 30,
    ignore_errors: bool = False,
    strip_newline: bool = True,
) -> dict[str, Any]:
    """Run a command; a dict or list on ``stdin`` is sent as JSON, and an exit code other than 0 is a failure."""
    if not command.strip():
        raise NodeError("the command is empty", "give a command", kind="validation")
    if "\0" in command:
        raise NodeError("the command contains a NUL character", kind="validation")
    folder = step.workspace / cwd if cwd else step.workspace
    if not folder.is_dir():
        raise NodeError(f"there is no folder {folder}", "cwd starts from where pflow was started", kind="validation")
    environment = {
        **os.environ,
        **{key: to_text(value) for key, value in (env or {}).items()},
        MARK: step.idempotency_key,
    }
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=folder, env=environment, start_new_session=True,
    )  # fmt: skip
    out, err = _Stream(step), _Stream(step)
    try:
        async with asyncio.timeout(timeout):
            await _talk(process, b"" if stdin is None else _as_bytes(stdin), out, err)
    except TimeoutError:
        await asyncio.shield(end_group(process, step.idempotency_key))
        raise NodeError(f"timed out after {timeout:g} s", "raise its timeout", "timeout", _shown(out, err)) from None
    except BaseException:
        await asyncio.shield(end_group(process, step.idempotency_key))
        raise
    finally:
        out.close()
        err.close()
        close(process)
    code = process.returncode
    made = {**out.result("stdout", strip_newline), **err.result("stderr", strip_newline), "exit_code": code}
    if code and not ignore_errors:
        said = (made["stderr"] or made["stdout"]).strip().rsplit("\n", 1)[-1][:200]
        raise NodeError(
            f"exit code {code}" + (f": {said}" if said else ""), details={**_shown(out, err), "exit_code": code}
        )
    return made


async def _talk(process: Process, data: bytes, out: _Stream, err: _Stream) -> None:
    """Feed the command and read all it says, at once, until it is done."""
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    reading = asyncio.gather(out.read(process.stdout), err.read(process.stderr))
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(data)
            await process.stdin.drain()
        process.stdin.close()
        await process.wait()
        await _read_out(process.pid, reading, out, err)
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading


async def _read_out(group: int, reading: asyncio.Future[Any], out: _Stream, err: _Stream) -> None:
    """Read what a finished command left; a background child that keeps its output open is not waited for."""
    while not reading.done():
        before = out.size + err.size
        await asyncio.wait({reading}, timeout=LINGER if _alive(group) else None)
        if not reading.done() and out.size + err.size == before:
            return


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


class _Stream:
    """One output of a command: in memory up to the limit, in a file beyond it."""

    def __init__(self, step: StepContext) -> None:
        self._limit = step.output_limit
        self._step = step
        self._head = bytearray()
        self._file: Any = None
        self.path = ""
        self.size = 0

    async def read(self, pipe: asyncio.StreamReader) -> None:
        while chunk := await pipe.read(_CHUNK):
            self.size += len(chunk)
            if self._file is None and self.size > self._limit:
                self._spill()
            if self._file is None:
                self._head += chunk
            else:
                self._file.write(chunk)

    def _spill(self) -> None:
        fd, self.path = tempfile.mkstemp(prefix="output-", dir=self._step.scratch)  # made with mode 0600
        self._file = os.fdopen(fd, "wb")
        self._file.write(self._head)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def text(self) -> str:
        return self._head.decode("utf-8", "replace")

    def result(self, name: str, strip: bool) -> dict[str, Any]:
        """The text, or its beginning and the file that has all of it."""
        text = self.text()
        if self.path:
            return {name: text, f"{name}_file": str(Path(self.path))}
        return {name: text[:-1] if strip and text.endswith("\n") else text}


def _as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else to_text(value).encode()


def _shown(out: _Stream, err: _Stream) -> dict[str, object]:
    """The ends of both outputs, for whoever has to find out what went wrong."""
    return {"stdout": out.text()[-2000:], "stderr": err.text()[-2000:]}

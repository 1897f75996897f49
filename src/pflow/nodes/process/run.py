"""Processes of node code: run in a group of their own, and ended for real, with everything they started.

A child that left its group is found by the mark that every child carries in its environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pflow.errors import NodeError
from pflow.nodes.step import StepContext

GRACE = 0.5  # seconds between asking a group to end and killing it
LINGER = 0.25  # seconds to go on reading when a process is done but a background child holds its output open
_PAUSE = 0.01
_ROUNDS = 30
_CHUNK = 1 << 16
MARK = "PFLOW_IDEMPOTENCY_KEY"
T = TypeVar("T")


class Captured:
    """One output of a process: in memory up to the limit, in a file beyond it."""

    def __init__(self, step: StepContext) -> None:
        self._limit = step.output_limit
        self._step = step
        self._head = bytearray()
        self._file: Any = None
        self.path = ""
        self.size = 0

    def take(self, chunk: bytes) -> None:
        """Keep what was read."""
        self.size += len(chunk)
        if self._file is None and self.size > self._limit:
            self._spill()
        if self._file is None:
            self._head += chunk
        else:
            self._file.write(chunk)

    def _spill(self) -> None:
        import tempfile  # rarely needed, and every start would pay for it

        fd, self.path = tempfile.mkstemp(prefix="output-", dir=self._step.scratch)  # made with mode 0600
        self._file = os.fdopen(fd, "wb")
        self._file.write(self._head)

    def close(self) -> None:
        """Nothing more will come."""
        if self._file is not None:
            self._file.close()

    def text(self) -> str:
        """What is in memory, as text."""
        return self._head.decode("utf-8", "replace")

    def result(self, name: str, strip: bool) -> dict[str, Any]:
        """The text, or its beginning and the file that has all of it."""
        text = self.text()
        if self.path:
            return {name: text, f"{name}_file": str(Path(self.path))}
        return {name: text[:-1] if strip and text.endswith("\n") else text}


class SidePipe:
    """What a process says on a pipe of its own, apart from its outputs; refused above the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.data = bytearray()

    @property
    def size(self) -> int:
        """Bytes so far."""
        return len(self.data)

    def take(self, chunk: bytes) -> None:
        """Keep what was read."""
        if self.size + len(chunk) > self._limit:
            raise NodeError(
                f"the result is over {self._limit:,} bytes", "write it to a file, and return the file's name"
            )
        self.data += chunk


class Exit(NamedTuple):
    """A process that came to its end by itself: its exit code (negative: a signal), and what it said."""

    code: int
    out: Captured
    err: Captured

    def shown(self) -> dict[str, object]:
        """The ends of both outputs, for whoever has to find out what went wrong."""
        return _shown(self.out, self.err)


async def run_process(
    step: StepContext,
    command: Sequence[str],
    *,
    data: bytes = b"",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    answer: SidePipe | None = None,
    bare: bool = False,
    out: Captured | None = None,
    err: Captured | None = None,
) -> Exit:
    """Run a command to its end; a timeout, an error or a cancel ends it with everything it started.

    For an ``answer``, the number of the descriptor to write it to is appended to the command. A ``bare`` environment
    holds nothing but ``env``. ``out`` and ``err`` take what the process says, where its text is not all that is wanted.
    """
    environment = {**({} if bare else os.environ), **(env or {}), MARK: step.idempotency_key}
    out, err = out or Captured(step), err or Captured(step)
    async with _side_pipe(answer is not None) as (side, fds):
        starting = _start([*command, *map(str, fds)], cwd or step.workspace, environment, fds)
        process, exited = await begun(starting, step.idempotency_key)
        for fd in fds:
            os.close(fd)
        fds.clear()
        assert process.stdout is not None and process.stderr is not None
        sources: list[_Source] = [(process.stdout, out), (process.stderr, err)]
        if answer is not None:
            sources.append((side, answer))
        try:
            async with asyncio.timeout(timeout):
                await _talk(process, exited, data, sources)
        except TimeoutError:
            await asyncio.shield(end_group(process, step.idempotency_key))
            raise NodeError(
                f"timed out after {timeout:g} s", "raise its timeout", "timeout", _shown(out, err)
            ) from None
        except BaseException:
            await asyncio.shield(end_group(process, step.idempotency_key))
            raise
        finally:
            out.close()
            err.close()
            close(process)
    assert process.returncode is not None
    return Exit(process.returncode, out, err)


async def begun(starting: Coroutine[Any, Any, tuple[Process, T]], mark: str) -> tuple[Process, T]:
    """A process that was started; one whose start is cancelled half-way may have children, and is ended with them."""
    task = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        process, _ = await task
        await end_group(process, mark)
        close(process)
        raise


_Source = tuple[asyncio.StreamReader, Captured | SidePipe]


@contextlib.asynccontextmanager
async def _side_pipe(wanted: bool) -> AsyncIterator[tuple[asyncio.StreamReader, list[int]]]:
    """A pipe beside the standard ones: our end, and the descriptors to pass on, which the user closes and clears."""
    reader = asyncio.StreamReader()
    if not wanted:
        yield reader, []
        return
    reading, writing = os.pipe()
    fds = [writing]
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", 0)
    )
    try:
        yield reader, fds
    finally:
        transport.close()
        for fd in fds:
            os.close(fd)


class _Protocol(SubprocessStreamProtocol):
    """Tells when the process itself is done; ``Process.wait`` also waits for whoever holds its pipes open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(_CHUNK, loop)
        self.exited: asyncio.Future[None] = loop.create_future()

    def process_exited(self) -> None:
        super().process_exited()
        if not self.exited.done():
            self.exited.set_result(None)


async def _start(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], fds: Sequence[int]
) -> tuple[Process, asyncio.Future[None]]:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(
        lambda: _Protocol(loop), *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=cwd, env=env,
        start_new_session=True, pass_fds=fds,
    )  # fmt: skip
    return Process(transport, protocol, loop), protocol.exited


async def _talk(process: Process, ended: asyncio.Future[None], data: bytes, sources: list[_Source]) -> None:
    """Feed a process and read all it says, at once, until it is done."""
    tasks = [asyncio.ensure_future(_read(*source)) for source in sources]
    tasks.append(asyncio.ensure_future(_feed(process, data)))
    pending: set[asyncio.Future[Any]] = {ended, *tasks}
    try:
        while not ended.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        await _read_out(process.pid, pending, sources)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            task.cancelled() or task.exception()


async def _read_out(group: int, pending: set[asyncio.Future[Any]], sources: list[_Source]) -> None:
    """Read what a finished process left; a background child that keeps its output open is not waited for."""
    while pending:
        before = sum(sink.size for _, sink in sources)
        done, pending = await asyncio.wait(pending, timeout=LINGER if _alive(group) else None)
        for task in done:
            task.result()
        if sum(sink.size for _, sink in sources) == before:
            return


async def _read(pipe: asyncio.StreamReader, sink: Captured | SidePipe) -> None:
    while chunk := await pipe.read(_CHUNK):
        sink.take(chunk)


async def _feed(process: Process, data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


def _shown(out: Captured, err: Captured) -> dict[str, object]:
    return {"stdout": out.text()[-2000:], "stderr": err.text()[-2000:]}


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def end_group(process: Process, mark: str) -> None:
    """End a process that leads its own group, its descendants, and strays that carry ``mark``."""
    _signal_all(process.pid, mark, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE)
    for _ in range(_ROUNDS):  # a child may have been started while its parent was being ended
        if not _signal_all(process.pid, mark, signal.SIGKILL):
            break
        await asyncio.sleep(_PAUSE)
    while process.returncode is None:  # noqa: ASYNC110 - wait() would wait for whoever holds the pipes, too
        await asyncio.sleep(_PAUSE)


def close(process: Process) -> None:
    """Close our ends of a process's pipes, which a child that lives on may keep open at its own."""
    process._transport.close()  # type: ignore[attr-defined]


def _signal_all(leader: int, mark: str, number: int) -> bool:
    """Signal everything that belongs to the group or carries the mark; whether there was anything."""
    found = _signal(os.killpg, leader, number)
    for pid in _marked(mark):
        found |= _signal(os.kill, pid, number)
    return found


def _signal(send: Callable[[int, int], None], target: int, number: int) -> bool:
    try:
        send(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _marked(mark: str) -> list[int]:
    """Processes whose environment carries the mark; none where the system does not show environments."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    with contextlib.suppress(OSError):
        for entry in os.listdir("/proc"):  # noqa: PTH208 - names only, read while processes come and go
            if entry.isdigit() and int(entry) != os.getpid():
                with contextlib.suppress(OSError):
                    if wanted in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                        found.append(int(entry))
    return found

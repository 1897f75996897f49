"""Agents that are programs: the question as JSON on stdin, the answer on stdout, remarks on stderr.

A program runs in a process group of its own, with an environment of its own and under its limits, and is ended as a
whole, with everything that it started.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pflow.agents.definition import Definition, Limits
from pflow.agents.question import Question
from pflow.errors import NodeError
from pflow.nodes.agent import Voice
from pflow.nodes.process.run import Captured, Exit, run_process
from pflow.nodes.step import StepContext

PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR")  # of our environment; and whatever begins with PFLOW_
_LINE = 4000  # characters of a remark
_REMARKS = 10_000  # remarks of one answer that are published
_TAIL = 1 << 16  # bytes of stderr that are kept
_EXCERPT = 4000  # characters of it that a failure shows
_NO_PROGRAM = 127  # the exit code of a shell that did not find its program
# The soft limit of CPU time comes first, so that its signal tells what happened.
_ULIMIT = {
    "memory_mb": "ulimit -v {n} || exit 125",
    "cpu_seconds": "ulimit -S -t {n} || exit 125; ulimit -H -t {more} || exit 125",
    "open_files": "ulimit -n {n} || exit 125",
}


async def ask(
    step: StepContext, voice: Voice, definition: Definition, question: Question, timeout: float | None
) -> str:
    """The program's answer."""
    words = command_words(definition, step.workspace)
    said = _Said(step, definition.name)
    data, env = msgspec.json.encode(question.data()), environment(definition.env)
    ended = await run(step, voice, definition, words, data, env, said, timeout)
    check(definition.name, words, ended, definition)
    return said.text()


async def run(
    step: StepContext,
    voice: Voice,
    definition: Definition,
    words: list[str],
    data: bytes,
    env: Mapping[str, str],
    out: Captured,
    timeout: float | None,
) -> Exit:
    """Run a program to its end, under its agent's limits; its remarks are published as they come."""
    name = definition.name
    heard = _Heard(step, voice)
    try:
        return await run_process(
            step,
            limited(words, definition.limits),
            data=data,
            env=env,
            timeout=timeout,
            bare=True,
            out=out,
            err=heard,
        )
    except NodeError as error:
        if error.kind != "timeout":
            raise
        raise NodeError(
            f'agent "{name}" {error.message}; it was ended, with everything it started',
            "raise its timeout, or find out what it waits for",
            "timeout",
            {"reason": "timeout", "agent": name, "timeout": timeout, **error.details},
        ) from None
    except OSError as error:
        raise _not_started(name, words, str(error.strerror)) from None
    finally:
        heard.flush()


class _Said(Captured):
    """The answer, in memory; more than the limit is no answer."""

    def __init__(self, step: StepContext, agent: str) -> None:
        super().__init__(step)
        self._agent = agent

    def take(self, chunk: bytes) -> None:
        if self.size + len(chunk) > self._limit:
            raise flooded(self._agent, self._limit, self.text())
        super().take(chunk)


def flooded(agent: str, limit: int, text: str) -> NodeError:
    """More was printed than an answer may have."""
    return NodeError(
        f'agent "{agent}" printed more than {limit:,} bytes, and was stopped',
        "have it write to a file and answer with the file's name, or raise the setting shell.output_limit",
        "agent",
        {"reason": "flood", "agent": agent, "limit": limit, "stdout": text[:_EXCERPT]},
    )


class _Heard(Captured):
    """Remarks: each line is published as it comes, and the last of them are kept."""

    def __init__(self, step: StepContext, voice: Voice) -> None:
        super().__init__(step)
        self._voice = voice
        self._rest = b""
        self._told = 0

    def take(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._head = (self._head + chunk)[-_TAIL:]
        *lines, self._rest = (self._rest + chunk).replace(b"\r", b"\n").split(b"\n")
        if len(self._rest) > _LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._tell(line)

    def flush(self) -> None:
        """Publish a last line that does not end."""
        line, self._rest = self._rest, b""
        self._tell(line)

    def _tell(self, line: bytes) -> None:
        text = line[: 4 * _LINE].decode("utf-8", "replace").rstrip()[:_LINE]
        if not text or self._told > _REMARKS:
            return
        self._told += 1
        if self._told > _REMARKS:
            text = f"(more than {_REMARKS:,} lines: the rest is not shown)"
        self._voice.emit("agent:text", text=f"{text}\n", stream="stderr")


def command_words(definition: Definition, workspace: Path) -> list[str]:
    """The command; a file that it names is also found beside the definition, and at the root of its project."""
    first, *rest = definition.command
    if first in ("python", "python3") and shutil.which(first) is None:
        first = sys.executable
    own = Path(definition.file).parent
    project = own.parent.parent  # <project>/.pflow/agents/<file>
    return [_located(word, workspace, (project, own)) for word in (first, *rest)]


def _located(word: str, workspace: Path, places: tuple[Path, ...]) -> str:
    if "/" not in word and "." not in word:
        return word
    if word.startswith("-") or "\0" in word or (workspace / word).exists():
        return word
    return next((str(place / word) for place in places if (place / word).is_file()), word)


def environment(listed: Mapping[str, str | None]) -> dict[str, str]:
    """What a program gets to know of our environment: little, and what its definition asks for."""
    own = {name: text for name, text in os.environ.items() if name in PASSED_ON or name.startswith("PFLOW_")}
    if not listed:
        return own
    from pflow import settings

    known = {**settings.load().env, **os.environ}
    given = {name: known.get(name) if text is None else text for name, text in listed.items()}
    return own | {name: text for name, text in given.items() if text is not None}


def limited(words: list[str], limits: Limits) -> list[str]:
    """The command under its limits, which a shell sets before it becomes the command."""
    asked = {name: number for name in Limits.__struct_fields__ if (number := getattr(limits, name))}
    if not asked:
        return words
    sets = [
        _ULIMIT[name].format(n=lowest, more=lowest + 1)
        for name, number in asked.items()
        if (lowest := _under_ours(name, number))
    ]
    return ["sh", "-c", "; ".join([*sets, 'exec "$@"']), "sh", *words]


def _under_ours(name: str, number: int) -> int:
    """A limit in the units of ``ulimit``; none where ours is lower already, since nobody can raise it."""
    import resource

    kinds = {"memory_mb": resource.RLIMIT_AS, "cpu_seconds": resource.RLIMIT_CPU, "open_files": resource.RLIMIT_NOFILE}
    hard = resource.getrlimit(kinds[name])[1]
    number, unit = (number * 1024, 1024) if name == "memory_mb" else (number, 1)
    return 0 if hard != resource.RLIM_INFINITY and hard < number * unit else number


def _not_started(name: str, words: list[str], why: str) -> NodeError:
    return NodeError(
        f'agent "{name}" cannot be started: {words[0]}: {why}',
        f"is {words[0]} installed, and may it be executed?",
        "validation",
        {"reason": "start", "agent": name, "command": words},
    )


def check(name: str, words: list[str], ended: Exit, definition: Definition) -> None:
    """Raise what went wrong, if anything did."""
    if ended.code == _NO_PROGRAM and words != limited(words, definition.limits):
        raise _not_started(name, words, "not found")
    remarks = ended.err.text()[-_EXCERPT:]
    details: dict[str, object] = {"agent": name, "command": words, "exit_code": ended.code, "stderr": remarks}
    if definition.preset:
        details["stdin"] = "Say hello"
    last = last_line(remarks) or last_line(ended.out.text()[-_EXCERPT:])
    tail = f": {last}" if last else ""
    if ended.code:
        how, reason, hint = _how(ended.code, definition.limits, last)
        details |= {"reason": reason, "stdout": ended.out.text()[-_EXCERPT:]}
        raise NodeError(f'agent "{name}" ended with {how}{tail}', hint, "agent", details)
    if not ended.out.text().strip():
        raise NodeError(
            f'agent "{name}" printed nothing{tail}',
            "its answer goes to stdout, its remarks to stderr",
            "agent",
            details | {"reason": "silent"},
        )


def _how(code: int, limits: Limits, last: str) -> tuple[str, str, str]:
    """An exit code in words, why it may be so, and what to do."""
    number = -code if code < 0 else code - 128  # a shell adds 128 to the signal that ended its program
    ended_by = signal.Signals(number) if number in list(signal.Signals) else None
    how = f"signal {ended_by.name}" if ended_by and code < 0 else f"exit code {code}"
    if limits.cpu_seconds and ended_by in (signal.SIGXCPU, signal.SIGKILL):
        return f"{how}, its CPU time used up", "cpu", f"raise limits.cpu_seconds ({limits.cpu_seconds})"
    if limits.memory_mb and (ended_by or "memory" in last.lower()):
        return how, "memory", f"is limits.memory_mb ({limits.memory_mb}) enough?"
    if code < 0:
        return how, "signal", "it crashed, or somebody ended it"
    return how, "exit", "what it said on stderr is in the error's context"


def last_line(text: str) -> str:
    """The last line that says something: rules and brackets do not."""
    for line in reversed(text.splitlines()):
        if sum(character.isalnum() for character in line) > 1:
            return line.strip()[:300]
    return ""

"""Advice: what a person can do about an agent that failed, in the words of its workflow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pflow.errors import NodeError
from pflow.nodes.step import StepContext

Context = Mapping[str, Any]


@contextmanager
def advising(step: StepContext) -> Iterator[None]:
    """Give every failure of an agent the steps that may help, the likeliest first."""
    try:
        yield
    except NodeError as error:
        error.suggestions = error.suggestions or suggestions(error, step.node_id)
        raise


def suggestions(error: NodeError, node_id: str) -> tuple[str, ...]:
    """What may help against a failure that says why it happened; for the others nothing is known here."""
    advice = _BY_REASON.get(str(error.details.get("reason", "")))
    return tuple(advice({**error.details, "node": f'node "{node_id}"'})) if advice is not None else ()


def _by_hand(context: Context) -> list[str]:
    command = context.get("command")
    if not isinstance(command, list):
        return []
    import shlex

    asked = context.get("stdin") or '{"prompt": "…", "inputs": {}, "outputs": []}'
    return [f"try it by hand: echo '{asked}' | {shlex.join(map(str, command))}"]


def _unknown(context: Context) -> list[str]:
    from pflow.errors import nearest

    name = context.get("agent", "")
    close = nearest(str(name), context.get("known") or [])
    return [
        *([f'{context["node"]}: write agent: "{close}"'] if close else []),
        f"define it: {name}.md in {context.get('place_for_new', '.pflow/agents')}",
    ]


def _start(context: Context) -> list[str]:
    command = context.get("command") or [""]
    return [
        f'install {command[0]}, or correct the command in the definition of agent "{context.get("agent", "")}"',
        "a relative path is looked for where pflow was started, at the project's root, and beside the definition",
    ]


def _absent(context: Context) -> list[str]:
    others = context.get("installed") or []
    return [
        f"install it: {context.get('install', '')}",
        f"name the program in the definition: command: [/where/it/is/{context.get('program', '')}]",
        *([f"ask another one: {', '.join(map(str, others))}"] if others else []),
    ]


def _login(context: Context) -> list[str]:
    return [str(context.get("login", ""))]


def _exit(context: Context) -> list[str]:
    return [
        "read what it said on stderr: it is in the error's context",
        *_by_hand(context),
        f"{context['node']}: add retry_on_failure where another try may help, or on_error to go elsewhere",
    ]


def _silent(context: Context) -> list[str]:
    return [
        f'have agent "{context.get("agent", "")}" answer on stdout; what it prints on stderr is only shown',
        *_by_hand(context),
    ]


def _flood(context: Context) -> list[str]:
    return [
        f'have agent "{context.get("agent", "")}" write its result to a file and answer with the file\'s name',
        f"allow more: pflow settings shell output_limit {2 * int(context.get('limit') or 0)}",
    ]


def _memory(context: Context) -> list[str]:
    return [f'raise limits.memory_mb in the definition of agent "{context.get("agent", "")}"', *_by_hand(context)]


def _cpu(context: Context) -> list[str]:
    return [f'raise limits.cpu_seconds in the definition of agent "{context.get("agent", "")}"', *_by_hand(context)]


def _outputs(context: Context) -> list[str]:
    missing = [str(name) for name in context.get("missing") or []]
    keys = ", ".join(f'"{name}": …' for name in missing)
    return [
        f"ask for it in the prompt: End your answer with {{{keys}}}",
        f"{context['node']}: take {', '.join(missing)} from outputs if nothing needs it",
        f"{context['node']}: without strict_outputs an empty text stands in for what is missing",
    ]


def _steps(context: Context) -> list[str]:
    return [
        f'raise max_steps ({context.get("steps", "")}) in the definition of agent "{context.get("agent", "")}"',
        f"split {context['node']} into smaller ones",
    ]


def _timeout(context: Context) -> list[str]:
    seconds = float(context["timeout"])
    more = f"timeout: {2 * seconds:g} (it is {seconds:g} now)"
    return [
        f"{context['node']}: {more}",
        f"{context['node']}: retry: {{timeout: {{retries: 2}}}} where it is only slow at times",
        *_by_hand(context),
    ]


_BY_REASON: dict[str, Callable[[Context], list[str]]] = {
    "unknown": _unknown,
    "start": _start,
    "absent": _absent,
    "login": _login,
    "exit": _exit,
    "signal": _exit,
    "silent": _silent,
    "flood": _flood,
    "memory": _memory,
    "cpu": _cpu,
    "outputs": _outputs,
    "steps": _steps,
    "timeout": _timeout,
}

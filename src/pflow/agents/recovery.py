"""What a person can do about a failure, in the words of its workflow.

``suggestions_for`` reads a failure as it is recorded: its kind, and the context that agents give with theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pflow.model.run import Failure

Context = Mapping[str, Any]


def suggestions_for(failure: Failure, node_id: str = "", timeout: float | None = None) -> tuple[str, ...]:
    """Steps that may help, the likeliest first; ``timeout`` is what the node allows an attempt."""
    node = f'node "{node_id}"' if node_id else "the node"
    context: dict[str, Any] = {**failure.context, "node": node}
    if timeout is not None:
        context.setdefault("timeout", timeout)
    by_reason = _BY_REASON.get(str(context.get("reason", "")))
    made = by_reason(context) if by_reason else []
    by_kind = _BY_KIND.get(failure.kind)
    if not made and by_kind:
        made = by_kind(context)
    hint = [failure.hint] if failure.hint and not made else []
    return tuple(dict.fromkeys([*made, *hint]))


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
    seconds = context.get("timeout")
    more = f"timeout: {2 * float(seconds):g} (it is {float(seconds):g} now)" if seconds else "a longer timeout"
    return [
        f"{context['node']}: {more}",
        f"{context['node']}: retry: {{timeout: {{retries: 2}}}} where it is only slow at times",
        *_by_hand(context),
    ]


def _binding(context: Context) -> list[str]:
    return [
        f"correct the name in {context['node']}, or put the node that makes it on every way that leads there",
        "give it when the run is started: NAME=value, or a default in the workflow's context",
    ]


def _routing(context: Context) -> list[str]:
    return [f"{context['node']}: add a default route", f"{context['node']}: ask for exactly one of the routes' names"]


def _model(context: Context) -> list[str]:
    return ["choose another model: pflow settings model default NAME", "try again: the server may have been at fault"]


def _rate_limit(context: Context) -> list[str]:
    return [
        f"{context['node']}: retry: {{rate_limit: {{retries: 5, delay: 30}}}}",
        "run fewer nodes at once: --jobs 1",
    ]


def _auth(context: Context) -> list[str]:
    return ["set the key of the model's provider: pflow settings env NAME VALUE"]


def _doubt(context: Context) -> list[str]:
    return [f"look whether {context['node']} did its work, then decide: pflow resume RUN --on-doubt retry|skip"]


def _refused(context: Context) -> list[str]:
    return [f"put the prompt of {context['node']} differently", "ask another model"]


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
_BY_KIND: dict[str, Callable[[Context], list[str]]] = {
    "timeout": _timeout,
    "binding": _binding,
    "routing": _routing,
    "model": _model,
    "rate_limit": _rate_limit,
    "auth": _auth,
    "refused": _refused,
    "doubt": _doubt,
}

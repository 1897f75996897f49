"""Advice: what a person can do about a failure, by its kind; a node that knows better has said so itself."""

from __future__ import annotations

import msgspec

from pflow.model.records import Failure

_ADVICE: dict[str, tuple[str, ...]] = {
    "binding": (
        "correct the name in {node}, or put the node that makes it on every way that leads there",
        "give it when the run is started: NAME=value, or a default in the workflow's context",
    ),
    "routing": ("{node}: add a default route", "{node}: ask for exactly one of the routes' names"),
    "model": (
        "choose another model: pflow settings model default NAME",
        "try again: the server may have been at fault",
    ),
    "rate_limit": (
        "{node}: retry: {{rate_limit: {{retries: 5, delay: 30}}}}",
        "run fewer nodes at once: --jobs 1",
    ),
    "auth": ("set the key of the model's provider: pflow settings env NAME VALUE",),
    "refused": ("put the prompt of {node} differently", "ask another model"),
    "doubt": ("look whether {node} did its work, then decide: pflow resume RUN --on-doubt retry|skip",),
    "timeout": ("{node}: {longer}", "{node}: retry: {{timeout: {{retries: 2}}}} where it is only slow at times"),
}  # fmt: skip


def advised(failure: Failure, node_id: str, timeout: float | None = None) -> Failure:
    """A failure with steps that may help, the likeliest first; ``timeout`` is what the node allows an attempt."""
    if failure.suggestions:
        return failure
    longer = f"timeout: {2 * timeout:g} (it is {timeout:g} now)" if timeout else "a longer timeout"
    made = tuple(text.format(node=f'node "{node_id}"', longer=longer) for text in _ADVICE.get(failure.kind, ()))
    return msgspec.structs.replace(failure, suggestions=made or ((failure.hint,) if failure.hint else ()))

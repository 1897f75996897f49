"""The arrow of a pipeline, which an unquoted shell takes as a redirection."""

from __future__ import annotations

import os
import shlex
import sys

ARROW = ">>"


def joined(words: list[str]) -> str:
    """Words of a pipeline as one text, in which only the arrows stand bare."""
    return " ".join(word if word == ARROW else shlex.quote(word) for word in words)


def eaten() -> str:
    """A warning, when what the shell appends our output to is named like a node type."""
    try:
        import fcntl

        fd = sys.stdout.fileno()
        if not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_APPEND:
            return ""
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
    except (ImportError, OSError, ValueError, AttributeError):
        return ""
    from pflow.app import types

    if types.known().find(name) is None:
        return ""
    return (
        f"warning: the shell took {ARROW} as a redirection: this output is appended to the file {name!r}\n"
        f"  hint: quote the pipeline: pflow 'a {ARROW} {name}'"
    )

"""The command line's entry: words in, exit code out. Nothing heavy is imported before it is known to be needed."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING, NoReturn

from pflow.version import __version__

if TYPE_CHECKING:
    from pflow.cli.line import Line


def main(argv: list[str] | None = None) -> int:
    """Carry out a command line and return its exit code; without ``argv``, the process's own, and end the process."""
    if argv is not None:
        return _carried_out(argv)
    _fill_streams()
    gc.disable()  # until a run begins: starting makes many objects and no garbage
    code = _carried_out(sys.argv[1:])
    return code if sys.gettrace() or sys.getprofile() else _leave(code)


def _fill_streams() -> None:
    """Put nothing where a standard stream is closed, so that no file of a run ends up in its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for as long as the process lives


def _carried_out(words: list[str]) -> int:
    line = None
    try:
        from pflow.cli.line import parse

        line = parse(words)
        return _call(line)
    except KeyboardInterrupt:
        from pflow.cli.screen import Screen

        Screen().say("interrupted before anything was run")
        return 130
    except Exception as error:  # noqa: BLE001 - the outermost border: no user sees a traceback unasked
        from pflow.cli.errors import complain

        return complain(error, words, line)


def _call(line: Line) -> int:
    if line.has("version"):
        from pflow.cli.screen import result

        result(f"pflow {__version__}")
        return 0
    from importlib import import_module

    module, _, name = line.command.function.partition(":")
    code: int = getattr(import_module(module), name)(line)
    return code


def _leave(code: int) -> NoReturn:
    """End the process without taking Python apart.

    That would take a tenth of a short run, and wait for threads of node code whose work nobody wants any more.
    """
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    os._exit(code)

"""Help pages, made from the tables of commands and options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pflow.cli.commands import COMMANDS, EVERYWHERE, EXIT_CODES, GROUPS, Command
from pflow.cli.options import OPTIONS

if TYPE_CHECKING:
    from pflow.cli.line import Line

_HEAD = """\
pflow runs workflows of AI agents, repeats nothing that it need not repeat, and loses nothing when it is stopped.

Usage: pflow FILE [key=value …] [options]
       pflow COMMAND …

A first workflow, hello.yaml:

  flow: {name: hello, input: {name: world}}
  nodes:
    - id: greet
      type: echo
      input: {text: "Hello, {{flow.input.name}}!"}
    - id: count
      type: shell
      input: {command: wc -c, stdin: "{{greet.text}}"}
  edges:
    - {from: greet, to: count}
"""

_TRY = (
    ("pflow hello.yaml", "run it"),
    ("pflow hello.yaml name=Ada", "with an input"),
    ("pflow plan hello.yaml", "what would run, and why"),
    ("pflow validate hello.yaml", "every problem at once"),
    ("pflow trace", "what happened in the last run"),
    ("pflow resume RUN", "go on after Ctrl-C, a crash or a failure"),
    ("pflow registry list", "the node types there are"),
)


def help_command(line: Line) -> int:
    """``pflow help [COMMAND]``."""
    from pflow.cli.screen import result

    result(page(" ".join(line.words)))
    return 0


def instructions(line: Line) -> int:
    """``pflow instructions``: the page for coding agents."""
    from pflow.app.instructions import instructions as whole
    from pflow.cli.screen import result

    result(whole())
    return 0


def page(name: str = "") -> str:
    """The page of a command, of a group of commands, or of everything."""
    if not name:
        return _everything()
    if name in GROUPS:
        return _group(name)
    if name not in COMMANDS:
        from pflow.errors import UsageError, suggest

        raise UsageError(f"there is no command {name!r}", suggest(name, COMMANDS, "commands"))
    return _of_command(COMMANDS[name])


def _everything() -> str:
    now = [(command.name, command.summary) for command in COMMANDS.values() if not command.later]
    later = [name for name, command in COMMANDS.items() if command.later]
    return "\n".join(
        [
            _HEAD,
            _table("Try:", _TRY),
            _table("Commands (`pflow help COMMAND` explains one):", now),
            f"Later: {', '.join(later)}.\n",
            _options("Run options, before or after FILE:", COMMANDS["run"]),
            _table("Exit codes:", [(str(code), text) for code, text in EXIT_CODES]),
        ]
    )


def _group(name: str) -> str:
    members = [(command.usage, command.summary) for known, command in COMMANDS.items() if known.startswith(f"{name} ")]
    return "\n".join([_table(f"`pflow {name}` can:", members), f"`pflow help {name} ACTION` explains one.\n"])


def _of_command(command: Command) -> str:
    parts = [f"Usage: {command.usage}\n", f"{command.summary[0].upper()}{command.summary[1:]}.\n"]
    if command.later:
        parts.append(f"Not yet: {command.later}.\n")
    if command.notes:
        parts.append(f"{command.notes}\n")
    if command.options:
        parts.append(_options("Options:", command))
    if command.examples:
        parts.append(_table("Examples:", command.examples))
    return "\n".join(parts)


def _options(title: str, command: Command) -> str:
    known = [OPTIONS[name] for name in (*command.options, *EVERYWHERE)]
    return _table(title, [(str(option), option.text) for option in known])


def _table(title: str, rows: Iterable[tuple[str, str]]) -> str:
    """Two columns; what is too wide for the first puts the second below it."""
    kept = list(rows)
    wide = min(34, max(len(left) for left, _ in kept))
    lines = [title]
    for left, right in kept:
        if len(left) > wide and right:
            lines += [f"  {left}", f"  {'':{wide}}  {right}"]
        else:
            lines.append(f"  {left:{wide}}  {right}".rstrip())
    return "\n".join(lines) + "\n"

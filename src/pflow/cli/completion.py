"""Completion scripts for shells, made from the tables of commands and options."""

from __future__ import annotations

from pflow.cli.commands import COMMANDS, FIRST, GROUPS
from pflow.cli.line import Line, wrong
from pflow.cli.options import OPTIONS
from pflow.cli.screen import result

_TAKE_RUN = " ".join(name for name, command in COMMANDS.items() if " RUN" in command.usage or "[RUN]" in command.usage)
_RUNS = 'ls "${PFLOW_HOME:-$HOME/.pflow}/runs" 2>/dev/null'


def completion(line: Line) -> int:
    """``pflow completion SHELL``."""
    scripts = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    shell = line.words[0]
    if shell not in scripts:
        from pflow.errors import suggest

        raise wrong(f"no completion for {shell!r}", suggest(shell, scripts, "shells"))
    result(scripts[shell]())
    return 0


def _cases() -> str:
    """What may follow each command, as cases of a shell's ``case``."""
    lines = []
    for first in FIRST:
        actions = [name.partition(" ")[2] for name in COMMANDS if name.startswith(f"{first} ")]
        own = [f"--{option}" for name in COMMANDS if name.partition(" ")[0] == first for option in _options(name)]
        lines.append(f"    {first}) offer='{' '.join([*actions, *dict.fromkeys(own)])}' ;;")
    default = [*FIRST, *(f"--{option}" for option in _options("run"))]
    lines.append(f"    *) offer='{' '.join(default)}' ;;")
    return "\n".join(lines)


def _options(name: str) -> list[str]:
    return [*COMMANDS[name].options, "help"]


def _values() -> str:
    """The values of options that take one of several, as cases."""
    return "\n".join(
        f"    --{option.name}) offer='{' '.join(option.choices)}' ;;" for option in OPTIONS.values() if option.choices
    )


def _bash() -> str:
    return f"""\
_pflow() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} offer=
  case $prev in
{_values()}
    completion) offer='bash zsh fish' ;;
  esac
  if [ -z "$offer" ]; then
    case ${{COMP_WORDS[1]}} in
{_cases()}
    esac
    case " {_TAKE_RUN} " in *" ${{COMP_WORDS[1]}} "*) offer="$offer $({_RUNS})" ;; esac
  fi
  COMPREPLY=($(compgen -W "$offer" -- "$cur"))
}}
complete -o default -F _pflow pflow
"""


def _zsh() -> str:
    return f"""\
#compdef pflow
_pflow() {{
  local offer= prev=${{(Q)words[CURRENT-1]}} first=${{(Q)words[2]}}
  case $prev in
{_values()}
    completion) offer='bash zsh fish' ;;
  esac
  if [ -z "$offer" ]; then
    case $first in
{_cases()}
    esac
    case " {_TAKE_RUN} " in *" $first "*) offer="$offer $({_RUNS} | tr '\\n' ' ')" ;; esac
  fi
  compadd -- ${{=offer}}
  _files
}}
compdef _pflow pflow
"""


def _fish() -> str:
    lines = ["complete -c pflow -n '__fish_use_subcommand' -a '" + " ".join(FIRST) + "'"]
    for group in GROUPS:
        actions = " ".join(name.partition(" ")[2] for name in COMMANDS if name.startswith(f"{group} "))
        lines.append(f"complete -c pflow -f -n '__fish_seen_subcommand_from {group}' -a '{actions}'")
    for option in OPTIONS.values():
        takes = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.metavar else ""
        short = f" -s {option.short}" if option.short else ""
        text = option.text.replace("'", "")
        lines.append(f"complete -c pflow -l {option.name}{short}{takes} -d '{text}'")
    lines.append(f"complete -c pflow -f -n '__fish_seen_subcommand_from {_TAKE_RUN}' -a '({_fish_runs()})'")
    lines.append("complete -c pflow -f -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'")
    return "\n".join(lines)


def _fish_runs() -> str:
    return "set -q PFLOW_HOME; or set -l PFLOW_HOME ~/.pflow; ls $PFLOW_HOME/runs 2>/dev/null"

"""Words to a command line: which command, its words, its inputs, its options. Options may stand anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pflow.cli.commands import COMMANDS, EVERYWHERE, GROUPS, Command
from pflow.cli.options import OPTIONS, SHORT, Option
from pflow.cli.redirection import ARROW, joined

if TYPE_CHECKING:
    from pflow.errors import UsageError


class Line:
    """A command line, understood."""

    __slots__ = ("command", "inputs", "options", "words")

    def __init__(self, command: Command, words: list[str], inputs: list[str], options: dict[str, list[str]]) -> None:
        self.command = command
        self.words = words
        self.inputs = inputs  # "key=value", from words and --input alike, in order
        self.options = options  # by name; a switch has an empty text for each time it was given

    def has(self, name: str) -> bool:
        """Whether an option was given."""
        return name in self.options

    def value(self, name: str) -> str | None:
        """What an option was given, the last time if it was given twice."""
        return self.options[name][-1] if name in self.options else None

    def count(self, name: str) -> int | None:
        """The number, from 1, that an option was given."""
        text = self.value(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
            raise wrong(f"--{name} takes a whole number from 1, not {text!r}")
        return int(text)

    def number(self, name: str) -> float | None:
        """The number above 0 that an option was given."""
        text = self.value(name)
        if text is None:
            return None
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 < number < 1e9:
            raise wrong(f"--{name} takes a number above 0, not {text!r}", "for example 90, or 0.5")
        return number

    @property
    def json(self) -> bool:
        """Whether stdout is to be JSON."""
        return self.has("json") or self.value("output-format") == "json"

    @property
    def level(self) -> int:
        """How much to say: 0 errors only, 1 what happens, 2 everything."""
        return 0 if self.has("quiet") or self.has("print") else 2 if self.has("verbose") else 1


def parse(words: list[str]) -> Line:
    """Understand a command line; raises ``UsageError``."""
    if not words:
        return Line(COMMANDS["help"], [], [], {})
    rest, options = _split(words)
    if "help" in options:
        return Line(COMMANDS["help"], _topic(rest), [], {})
    command, rest = _command(rest)
    inputs = options.get("input", [])
    if command.inputs:
        inputs = [word for word in rest[1:] if _is_input(word)] + inputs
        rest = rest[:1] + [word for word in rest[1:] if not _is_input(word)]
    line = Line(command, rest, inputs, options)
    _check(line)
    return line


def wants_json(words: list[str]) -> bool:
    """Whether a command line that could not be understood asks for JSON."""
    joined = " ".join(words)
    return "--json" in words or "--output-format json" in joined or "--output-format=json" in joined


def wrong(message: str, hint: str = "") -> UsageError:
    """A complaint about the words; its class is imported when there is something to complain about."""
    from pflow.errors import UsageError

    return UsageError(message, hint)


# Options and other words.


def _split(words: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The words that are no options, and the options by name."""
    rest: list[str] = []
    options: dict[str, list[str]] = {}
    queue = list(reversed(words))
    while queue:
        word = queue.pop()
        if word == "--":
            rest += reversed(queue)
            break
        if ARROW in queue and not word.startswith("-") and word != "run":  # the first node of a pipeline
            return [*rest, joined([word, *reversed(queue)])], options
        if word.startswith("--"):
            _long(word, queue, options)
        elif word.startswith("-") and len(word) > 1 and not _is_number(word):
            _short(word, queue, options)
        else:
            if not rest and (word in COMMANDS or word in GROUPS) and _ends_options(word):
                rest += [word, *reversed(queue)]
                if {"--help", "-h"} & set(queue):
                    options["help"] = [""]
                break
            rest.append(word)
    return rest, options


def _ends_options(word: str) -> bool:
    """Whether what follows a command is not for us to read: it will have options of its own, later."""
    return word in COMMANDS and bool(COMMANDS[word].later)


def _long(word: str, queue: list[str], options: dict[str, list[str]]) -> None:
    name, equals, value = word[2:].partition("=")
    option = OPTIONS.get(name)
    if option is None:
        raise _unknown(f"--{name}", rest=queue)
    if not option.metavar and equals:
        raise wrong(f"--{name} takes no value")
    if option.metavar and not equals:
        value = _taken(option, queue)
    _put(option, value, options)


def _short(word: str, queue: list[str], options: dict[str, list[str]]) -> None:
    """``-o KEY``, ``-oKEY``, and switches together: ``-pv``."""
    for at, letter in enumerate(word[1:], 2):
        option = SHORT.get(letter)
        if option is None:
            raise _unknown(f"-{letter}", rest=queue)
        if option.metavar:
            _put(option, word[at:] or _taken(option, queue), options)
            return
        _put(option, "", options)


def _taken(option: Option, queue: list[str]) -> str:
    if not queue:
        raise wrong(f"--{option.name} needs a value", f"--{option.name} {option.metavar}: {option.text}")
    return queue.pop()


def _put(option: Option, value: str, options: dict[str, list[str]]) -> None:
    if option.choices and value not in option.choices:
        from pflow.errors import suggest

        raise wrong(f"--{option.name} is one of {option.metavar}, not {value!r}", suggest(value, option.choices))
    if option.metavar and not option.repeats and option.name in options:
        raise wrong(f"--{option.name} is given twice")
    options.setdefault(option.name, []).append(value)


def _is_number(word: str) -> bool:
    return word[1:2].isdigit()


def _is_input(word: str) -> bool:
    return word.find("=") > 0


def _unknown(given: str, rest: list[str], command: Command | None = None) -> UsageError:
    from pflow.errors import nearest

    known = [f"--{name}" for name in (OPTIONS if command is None else (*command.options, *EVERYWHERE))]
    close = nearest(given, known) if len(given) > 2 else ""
    where = "pflow" if command is None else f"`pflow {command.name}`"
    page = "pflow --help" if command is None else f"pflow help {command.name}"
    hint = f"did you mean {close}? " if close else ""
    return wrong(f"{where} has no option {given}", f"{hint}`{page}` lists them")


# Commands.


def _topic(rest: list[str]) -> list[str]:
    """The command whose page is meant by ``--help``."""
    if rest[:1] == ["help"] and rest[1:]:
        return rest[1:]
    for length in (2, 1):
        name = " ".join(rest[:length])
        if name in COMMANDS or name in GROUPS:
            return [name]
    return []


def _command(rest: list[str]) -> tuple[Command, list[str]]:
    """The command that is meant, and the words that are left for it."""
    first = rest[0] if rest else ""
    if first in GROUPS:
        return _of_group(first, rest)
    if first in COMMANDS:
        return COMMANDS[first], rest[1:]
    return COMMANDS["run"], rest


def _of_group(group: str, rest: list[str]) -> tuple[Command, list[str]]:
    name = " ".join(rest[:2])
    if name in COMMANDS:
        return COMMANDS[name], rest[2:]
    actions = [known.partition(" ")[2] for known in COMMANDS if known.startswith(f"{group} ")]
    if len(rest) < 2:
        raise wrong(f"`pflow {group}` needs to know what to do", f"one of: {', '.join(actions)}")
    from pflow.errors import suggest

    raise wrong(f"`pflow {group}` has no {rest[1]!r}", suggest(rest[1], actions, "it has"))


def _check(line: Line) -> None:
    command = line.command
    if command.later:
        raise wrong(f"`pflow {command.name}`: {command.later}")
    for name in line.options:
        if name not in command.options and name not in EVERYWHERE:
            raise _unknown(f"--{name}", [], command)
    if line.has("quiet") and line.has("verbose"):
        raise wrong("--quiet and --verbose exclude each other")
    fewest, most = command.words
    if len(line.words) < fewest and not line.has("version"):
        raise wrong(f"`pflow {command.name}` needs more words than that", f"usage: {command.usage}")
    if len(line.words) > most:
        extra = line.words[most]
        hint = "inputs are given as key=value" if command.inputs else f"usage: {command.usage}"
        raise wrong(f"unexpected word {extra!r}", hint)

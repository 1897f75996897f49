"""The options of the command line.

An option means the same wherever it stands, so that it can be read before its command is known.
"""

from __future__ import annotations

SOMETIME = "it comes in a later version of pflow"


class Option:
    """An option: its name without dashes, and what it takes (nothing, for a switch)."""

    __slots__ = ("choices", "metavar", "name", "repeats", "short", "text")

    def __init__(
        self,
        name: str,
        text: str,
        metavar: str = "",
        short: str = "",
        choices: tuple[str, ...] = (),
        repeats: bool = False,
    ) -> None:
        self.name = name
        self.text = text
        self.metavar = metavar or "|".join(choices)
        self.short = short
        self.choices = choices
        self.repeats = repeats

    def __str__(self) -> str:
        dashed = f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"
        return f"{dashed} {self.metavar}".rstrip()


_OPTIONS = (
    Option("jobs", "run up to N nodes at once (default: as the workflow says)", "N"),
    Option("input", "an input of the workflow, the same as the word k=v", "K=V", repeats=True),
    Option("context", "inputs as one JSON object; key=value goes before it", "JSON"),
    Option("output", "print this output only: a declared one, a node, or node.output", "KEY", "o"),
    Option("output-format", "text (default): the result; json: one object with everything", choices=("text", "json")),
    Option("print", "print nothing but the result, and ask nothing", short="p"),
    Option("events", "write every event as a line of JSON; - is stdout", "PATH"),
    Option("validate-only", "check workflow and inputs, run nothing"),
    Option(
        "on-doubt",
        "what to do with a node that was cut off and may have taken effect",
        choices=("retry", "skip", "fail"),
    ),
    Option("timeout", "cancel the run after so many seconds", "S"),
    Option("yes", "answer yes-or-no questions with yes"),
    Option("verbose", "say more: starts, logs, tracebacks", short="v"),
    Option("quiet", "say nothing but errors", short="q"),
    Option("use-cache", "reuse results of pure nodes by their inputs, from any run"),
    Option("reset-cache", "forget those results of this workflow first"),
    Option("no-cache", "reuse nothing of earlier runs of this file, and keep nothing"),
    Option("rerun", "run this node and what is below it, even if nothing changed", "NODE", repeats=True),
    Option("budget", "pause before calls of models cost more than this", "USD"),
    Option("model", "the model that is asked where the workflow names none", "M"),
    Option("json", "print JSON (for a run: the same as --output-format json)"),
    Option("all", "everything, not only the newest"),
    Option("at", "go on from this node (or its n-th visit) in a new run", "NODE[#n]"),
    Option("node", "the node that asked, where several do", "NODE"),
    Option("name", "the name to save it under", "N"),
    Option("unset", "give the default back"),
    Option(
        "env", "a variable that the server gets; K alone refers to the secret K of your settings", "K[=V]", repeats=True
    ),
    Option("header", "a header that is sent to the server, 'Name: value'; ${K} refers to a secret", "H", repeats=True),
    Option("http", "serve HTTP on this machine only, with a token, instead of stdin and stdout"),
    Option("port", "the port for HTTP (default: a free one)", "N"),
    Option("allow", "a further folder whose workflows and runs may be reached", "DIR", repeats=True),
    Option("help", "show this page", short="h"),
    Option("version", "print the version"),
)
OPTIONS = {option.name: option for option in _OPTIONS}
SHORT = {option.short: option for option in _OPTIONS if option.short}

"""The commands of the command line: one table for the parser, the help pages and the completion of shells."""

from __future__ import annotations

from pflow.cli.notes import CANCELLING, REPLYING, RESULT, RESUMING, RUN_ID, SERVERS, SERVING, SETTINGS
from pflow.cli.options import SOMETIME

ANY = 10_000  # words


class Command:
    """A command: what it is given, what it does, and the function that does it."""

    __slots__ = ("examples", "function", "inputs", "later", "name", "notes", "options", "summary", "usage", "words")

    def __init__(
        self,
        name: str,
        usage: str,
        summary: str,
        function: str = "",
        *,
        options: tuple[str, ...] = (),
        words: tuple[int, int] = (0, 0),
        inputs: bool = False,
        notes: str = "",
        examples: tuple[tuple[str, str], ...] = (),
        later: str = "",
    ) -> None:
        self.name = name
        self.usage = usage
        self.summary = summary
        self.function = function  # "module:name", imported when it is called
        self.options = options
        self.words = words  # the fewest and the most that may follow, inputs not counted
        self.inputs = inputs  # whether key=value words are inputs
        self.notes = notes
        self.examples = examples
        self.later = later


_TALK = ("verbose", "quiet")
_SHOW = ("output", "output-format", "json", "print", "events", "timeout", "yes", *_TALK)
_RUN = (
    "jobs", "input", "context", *_SHOW, "validate-only", "on-doubt",
    "use-cache", "reset-cache", "no-cache", "rerun", "budget", "model",
)  # fmt: skip
_GO_ON = ("on-doubt", "input", "budget", "model", *_SHOW)
_LOOK = ("json", *_TALK)

_COMMANDS = (
    Command(
        "run",
        "pflow [run] FILE|NAME|PIPELINE [key=value …] [options]",
        "run a workflow file, a saved workflow, or a pipeline of nodes",
        "pflow.cli.run:run",
        options=_RUN,
        words=(1, 1),
        inputs=True,
        notes=RESULT,
        examples=(
            ("pflow flow.yaml", "run it"),
            ("pflow flow.yaml city=Lisbon days=3", "with inputs"),
            ("pflow flow.yaml --jobs 4", "up to four nodes at once"),
            ("pflow flow.yaml --output-format json | jq .outputs", "for programs"),
            ("pflow flow.yaml -p -o report > report.txt", "one output, and not a word more"),
            ("cat notes.txt | pflow summary.yaml", "input from a pipe"),
            ("pflow flow.json --rerun fetch", "fetch again, and what depends on it"),
            ("pflow 'fetch_url --url https://example.com >> summarize'", "a pipeline of nodes"),
            ("pflow my-saved-workflow", "a saved one, by name"),
        ),
    ),
    Command(
        "validate",
        "pflow validate FILE [--json]",
        "check a workflow: every problem at once, with place and hint",
        "pflow.cli.plan:validate",
        options=_LOOK,
        words=(1, 1),
        notes="Exit code 0 for a valid workflow, 2 for one with problems. With --json, stdout gets {valid, problems}.",
        examples=(("pflow validate flow.yaml", "what is wrong with it?"),),
    ),
    Command(
        "plan",
        "pflow plan FILE [key=value …] [--json]",
        "show what would run, in which order and why; runs nothing",
        "pflow.cli.plan:plan",
        options=("jobs", "input", "context", "rerun", *_LOOK),
        words=(1, 1),
        inputs=True,
        notes="""\
Effects: a pure node is a function of its inputs; a quiet one touches nothing outside, but may answer differently each
time; an impure one may change the world, so it is never repeated without being asked about.""",
        examples=(("pflow plan flow.yaml city=Lisbon", "what would it do?"),),
    ),
    Command(
        "trace",
        "pflow trace [RUN] [--json]",
        "show what happened in the last run, or in RUN",
        "pflow.cli.trace:trace",
        options=_LOOK,
        words=(0, 1),
        notes=RUN_ID,
        examples=(("pflow trace", "the last run: timeline, attempts, where it failed"),),
    ),
    Command(
        "runs",
        "pflow runs [--all] [--json]",
        "list the newest runs",
        "pflow.cli.runs:runs",
        options=("all", *_LOOK),
        notes="The newest 20, or all of them with --all; the same goes for --json.",
        examples=(("pflow runs --all --json | jq '.[].run_id'", "every run's id"),),
    ),
    Command(
        "status",
        "pflow status RUN [--json]",
        "show how a run stands: its steps, questions and doubts",
        "pflow.cli.runs:status",
        options=_LOOK,
        words=(1, 1),
        notes=RUN_ID,
        examples=(("pflow status hello_2026", "the start of an id will do"),),
    ),
    Command(
        "resume",
        "pflow resume RUN [--at NODE[#n]] [--on-doubt retry|skip|fail] [key=value …] [options]",
        "go on with a run that was stopped, failed or waits",
        "pflow.cli.resume:resume",
        options=("at", *_GO_ON),
        words=(1, 1),
        inputs=True,
        notes=RESUMING + RUN_ID,
        examples=(
            ("pflow resume RUN", "go on where it stopped"),
            ("pflow resume RUN --on-doubt retry", "and repeat what was cut off"),
            ("pflow resume RUN --at report", "again from the node report on, as a new run"),
        ),
    ),
    Command(
        "reply",
        "pflow reply RUN [--node NODE] TEXT",
        "answer a question of a run, and go on with it",
        "pflow.cli.resume:reply",
        options=("node", *_GO_ON),
        words=(2, ANY),
        notes=REPLYING + RUN_ID,
        examples=(
            ("pflow reply RUN yes", ""),
            ("pflow reply RUN --node approve -- -1", "a text that looks like an option"),
        ),
    ),
    Command(
        "cancel",
        "pflow cancel RUN",
        "end a run for good",
        "pflow.cli.runs:cancel",
        options=_TALK,
        words=(1, 1),
        notes=CANCELLING + RUN_ID,
    ),
    Command(
        "registry list",
        "pflow registry list [--json]",
        "list the node types that can be used here",
        "pflow.cli.registry:list_types",
        options=_LOOK,
    ),
    Command(
        "registry search",
        "pflow registry search WORDS [--json]",
        "find node types by name and description",
        "pflow.cli.registry:search",
        options=_LOOK,
        words=(1, ANY),
        examples=(("pflow registry search run command", ""),),
    ),
    Command(
        "registry describe",
        "pflow registry describe TYPE [--json]",
        "a node type's params, outputs and effect",
        "pflow.cli.registry:describe",
        options=_LOOK,
        words=(1, 1),
        examples=(("pflow registry describe shell", ""),),
    ),
    Command(
        "registry run",
        "pflow registry run TYPE key=value … [options]",
        "run one node by itself",
        "pflow.cli.registry:run",
        options=("input", *_SHOW),
        words=(1, 1),
        inputs=True,
        notes=RESULT,
        examples=(("pflow registry run shell command='date -u'", "try it out"),),
    ),
    Command(
        "registry verify",
        "pflow registry verify TYPE [--json]",
        "check a node type's promise to be safe",
        "pflow.cli.registry:verify",
        options=_LOOK,
        words=(1, 1),
        notes="Runs it twice on its examples, watched: it must answer the same and touch nothing outside.",
        examples=(("pflow registry verify text/word-count", ""),),
    ),
    Command(
        "registry accept",
        "pflow registry accept TYPE",
        "take an impure node type as quiet: you have inspected it",
        "pflow.cli.registry:accept",
        options=_TALK,
        words=(1, 1),
        notes="It may then be retried and restarted without being asked about. An edit of its source ends that.",
    ),
    Command(
        "settings",
        "pflow settings [show | SECTION [show | KEY [VALUE | --unset]]] [--json]",
        "show and change settings",
        "pflow.cli.settings:settings",
        options=("unset", *_LOOK),
        words=(0, 3),
        notes=SETTINGS,
        examples=(
            ("pflow settings show", "all of them, and what they mean"),
            ("pflow settings cache ttl 48h", "change one"),
            ("pflow settings cache ttl --unset", "back to its default"),
            ("pflow settings env TOKEN - < token.txt", "keep a secret"),
        ),
    ),
    Command(
        "completion",
        "pflow completion bash|zsh|fish",
        "print a completion script for your shell",
        "pflow.cli.completion:completion",
        words=(1, 1),
        examples=(
            ('eval "$(pflow completion bash)"', "in ~/.bashrc"),
            ('eval "$(pflow completion zsh)"', "in ~/.zshrc, after compinit"),
            ("pflow completion fish > ~/.config/fish/completions/pflow.fish", "for fish"),
        ),
    ),
    Command(
        "help", "pflow help [COMMAND]", "this page, or a command's own", "pflow.cli.pages:help_command", words=(0, 2)
    ),
    Command(
        "cache status",
        "pflow cache status FILE [--json]",
        "what is cached of a workflow file",
        "pflow.cli.cache:status",
        options=_LOOK,
        words=(1, 1),
    ),
    Command(
        "cache clear",
        "pflow cache clear FILE | --all",
        "forget what is cached",
        "pflow.cli.cache:clear",
        options=("all", *_TALK),
        words=(0, 1),
    ),
    Command(
        "cache why",
        "pflow cache why FILE NODE [key=value …] [--json]",
        "why a node would run again, or not, field by field",
        "pflow.cli.cache:why",
        options=("input", "context", *_LOOK),
        words=(2, 2),
        inputs=True,
    ),
    Command(
        "workflow save",
        "pflow workflow save FILE --name N",
        "save a workflow to run it by name",
        "pflow.cli.library:save",
        options=("name", "yes", *_TALK),
        words=(1, 1),
        notes="With --yes an existing one of that name is replaced.",
    ),
    Command(
        "workflow list",
        "pflow workflow list [--json]",
        "list saved workflows",
        "pflow.cli.library:list_saved",
        options=_LOOK,
    ),
    Command(
        "workflow describe",
        "pflow workflow describe N [--json]",
        "a saved workflow's inputs, outputs and nodes",
        "pflow.cli.library:describe",
        options=_LOOK,
        words=(1, 1),
    ),
    Command(
        "workflow delete",
        "pflow workflow delete N",
        "forget a saved workflow",
        "pflow.cli.library:delete",
        options=_TALK,
        words=(1, 1),
    ),
    Command(
        "mcp add",
        "pflow mcp add NAME [--env K[=V]] -- COMMAND …  |  pflow mcp add NAME URL [--header H]",
        "make the tools of an MCP server node types",
        "pflow.cli.mcp:add",
        options=("env", "header", "yes", *_TALK),
        words=(2, ANY),
        notes=SERVERS,
        examples=(
            ("pflow mcp add time -- uvx mcp-server-time", "a server that is started by a command"),
            ("pflow mcp add issues https://example.com/mcp --header 'Authorization: Bearer ${TOKEN}'", "one at a URL"),
        ),
    ),
    Command(
        "mcp import",
        "pflow mcp import FILE",
        "add the servers of an mcpServers file, as other programs have them",
        "pflow.cli.mcp:import_file",
        options=("yes", *_TALK),
        words=(1, 1),
        notes="With --yes, servers of the same name are replaced. Secrets in plain text are moved to your settings.",
        examples=(("pflow mcp import .mcp.json", ""),),
    ),
    Command(
        "mcp sync",
        "pflow mcp sync [NAME …]",
        "ask servers for their tools, and keep the descriptions",
        "pflow.cli.mcp:sync",
        options=_LOOK,
        words=(0, ANY),
        notes="Each tool becomes the node type mcp-NAME-TOOL. Exit code 1 where a server could not be asked.",
    ),
    Command("mcp list", "pflow mcp list [--json]", "list MCP servers", "pflow.cli.mcp:list_servers", options=_LOOK),
    Command(
        "mcp remove", "pflow mcp remove NAME", "forget a server", "pflow.cli.mcp:remove", options=_TALK, words=(1, 1)
    ),
    Command(
        "mcp serve",
        "pflow mcp serve [--http [--port N]] [--allow DIR]",
        "be an MCP server: agents write, run and inspect workflows through it",
        "pflow.cli.mcp:serve",
        options=("http", "port", "allow", *_TALK),
        notes=SERVING,
    ),
    Command(
        "instructions",
        "pflow instructions",
        "a page that lets a coding agent build workflows",
        "pflow.cli.pages:instructions",
    ),
    Command("ui", "pflow ui [FILE]", "runs in the browser", words=(0, 1), later=SOMETIME),
)
COMMANDS = {command.name: command for command in _COMMANDS}
GROUPS = tuple(dict.fromkeys(name.partition(" ")[0] for name in COMMANDS if " " in name))
FIRST = tuple(dict.fromkeys(name.partition(" ")[0] for name in COMMANDS))
EVERYWHERE = ("help", "version")

EXIT_CODES = (
    (0, "done"),
    (1, "the run failed"),
    (2, "bad usage or an invalid workflow; nothing was run"),
    (3, "paused, waiting for an answer or a decision"),
    (130, "interrupted; `pflow resume` goes on"),
)

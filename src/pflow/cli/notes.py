"""Notes of the help pages: what a command does, in a few sentences."""

from __future__ import annotations

RESULT = """\
Running a file again reuses every node that did not change, and nothing before it did: `pflow plan FILE` says what
would run and why, `pflow cache why FILE NODE` compares. A saved workflow or a pipeline is always run whole.

The result goes to stdout, everything else to stderr. In text it is the workflow's declared output (all of them as
one JSON object where it declares several), or, where it declares none, the main output of the last node that ran.
With --output-format json it is one object: success, status, run_id, result (the first declared output, or as above),
outputs, duration_ms, total_cost_usd, nodes_executed, execution, errors, trace. With --events - stdout holds lines of
JSON and nothing else: the events, and that object last if it was asked for.

Values after = are typed: true, 10, 3.14 and JSON are what they look like, anything else is text; a declared input's
own type goes first. What is piped in goes to the input marked `stdin: true`, else to the input named stdin, if the
workflow refers to one."""

RESUMING = """\
What completed is not repeated; a complete run is left as it is. A node that was cut off and may have taken effect is
asked about, or decided by --on-doubt. With --at the run itself stays as it is, and a new one goes on from just before
that node. A run keeps its inputs; only those marked secret are not kept, and may have to be given again.

"""

REPLYING = """\
The answer is kept with the run. Whoever drives the run takes it; where nobody does, this command goes on with the run
as `pflow resume` would.

"""

CANCELLING = """\
A live run is told, one that nobody drives is ended here. `pflow resume` would still take it up again.

"""

SETTINGS = """\
Settings are kept in settings.json in the pflow home (~/.pflow, moved by PFLOW_HOME). Secrets in the section env are
never shown; with - as its value, one is read from stdin and stays out of your shell's history."""

SERVERS = """\
A server is started at its first use in a run, where pflow was started, with PATH, HOME and the like and the variables
that --env declares; it is ended with the run. `pflow mcp sync NAME` then asks it for its tools."""

SERVING = """\
Workflows and runs are reached only in the folder it is started in, and in those that --allow names. What a workflow
does is up to the workflow. With --http, the token is that of PFLOW_MCP_TOKEN (from the environment or your settings);
without one, a new one is made and shown."""

RUN_ID = "RUN is a run's id, the start of it, or the path of its folder; `pflow runs` lists them."

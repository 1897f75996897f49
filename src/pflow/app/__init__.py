"""Load → plan → run: what every front end calls, and nothing below it.

workflow = load("flow.yaml")            any dialect; WorkflowError tells every problem at once
result = await run(workflow, inputs)    a new run, in a folder of its own
result = await resume(run_id)           goes on where a run stopped; a no-op when it is complete
"""

from pflow.app.documents import load, parse
from pflow.app.history import cancel, fork, inspect, reply
from pflow.app.options import Options, Result
from pflow.app.running import plan, registry_for, resume, run, run_sync, warnings

__all__ = [
    "Options",
    "Result",
    "cancel",
    "fork",
    "inspect",
    "load",
    "parse",
    "plan",
    "registry_for",
    "reply",
    "resume",
    "run",
    "run_sync",
    "warnings",
]

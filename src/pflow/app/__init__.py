"""Load → plan → run: what every front end calls, and nothing below it.

workflow = load("flow.yaml")            any dialect; WorkflowError tells every problem at once
result = await run(workflow, inputs)    a new run, in a folder of its own
result = await resume(run_id)           goes on where a run stopped; a no-op when it is complete
"""

from pflow.app.documents import load, parse
from pflow.app.forking import fork
from pflow.app.options import Options, Result
from pflow.app.registry import registry_for
from pflow.app.running import plan, resume, run, run_sync, warnings
from pflow.app.runs import cancel, inspect, reply
from pflow.app.session import Session

__all__ = [
    "Options",
    "Result",
    "Session",
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

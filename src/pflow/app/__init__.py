"""Load → plan → run: what every front end calls, and nothing below it.

workflow = load("flow.yaml")            any dialect; WorkflowError tells every problem at once
result = await run(workflow, inputs)    a new run, in a folder of its own
result = await resume(run_id)           goes on where a run stopped; a no-op when it is complete

Names are imported when they are first used: a front end that only tells an error, or a setting, loads no engine.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pflow.app.documents import load, parse
    from pflow.app.forks import fork
    from pflow.app.options import Options, Result
    from pflow.app.runner import plan, run, run_sync, warnings
    from pflow.app.runs import cancel, inspect, reply
    from pflow.app.session import Session, registry_for
    from pflow.app.stopped import resume
else:
    _HOMES = {
        "documents": ("load", "parse"),
        "forks": ("fork",),
        "options": ("Options", "Result"),
        "session": ("Session", "registry_for"),
        "runner": ("plan", "run", "run_sync", "warnings"),
        "runs": ("cancel", "inspect", "reply"),
        "stopped": ("resume",),
    }

    def __getattr__(name):
        from importlib import import_module

        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
        return globals()[name]


__all__ = [
    "load", "parse", "plan", "run", "run_sync", "resume", "fork", "cancel", "reply", "inspect",
    "registry_for", "warnings", "Options", "Result", "Session",
]  # fmt: skip

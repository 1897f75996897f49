"""Load → plan → run: what every front end calls, and nothing below it.

workflow = load("flow.yaml")            any dialect; WorkflowError tells every problem at once
result = await run(workflow, inputs)    a new run, in a folder of its own
result = await resume(run_id)           goes on where a run stopped; a no-op when it is complete

Names are imported when they are first used: a front end that only tells an error, or a setting, loads no engine.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pflow.app.documents import load, parse
    from pflow.app.history import cancel, fork, inspect, reply
    from pflow.app.options import Options, Result
    from pflow.app.running import plan, registry_for, resume, run, run_sync, warnings
else:
    _HOMES = {
        "documents": ("load", "parse"),
        "history": ("cancel", "fork", "inspect", "reply"),
        "options": ("Options", "Result"),
        "running": ("plan", "registry_for", "resume", "run", "run_sync", "warnings"),
    }

    def __getattr__(name):
        from importlib import import_module

        home = next((home for home, names in _HOMES.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
        return globals()[name]


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

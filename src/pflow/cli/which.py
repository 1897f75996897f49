"""Which workflow, and which run, a word on the command line means."""

from __future__ import annotations

from pathlib import Path

from pflow import app
from pflow.app.history import find
from pflow.cli.commands import FIRST
from pflow.cli.options import PIPELINES, PLAIN_WORDS, SAVED
from pflow.errors import UsageError, nearest
from pflow.model.workflow import Workflow

_SUFFIXES = (".yaml", ".yml", ".json")


def workflow_for(target: str) -> Workflow:
    """The workflow that a word on the command line means."""
    if ">>" in target:
        raise UsageError(PIPELINES, "put the nodes into a workflow file")
    path = Path(target)
    if path.suffix.lower() in _SUFFIXES or "/" in target or path.exists():
        return app.load(path)
    if len(target.split()) > 1:
        raise UsageError(PLAIN_WORDS, "write the workflow into a file: `pflow --help` shows one")
    close = nearest(target, FIRST)
    hint = f"did you mean `pflow {close}`? " if close else ""
    raise UsageError(f"there is no file {target!r}, and {SAVED}", f"{hint}`pflow --help` lists the commands")


def folder_of(word: str) -> Path:
    """The folder of the run that a word means: an id, its start, or a path."""
    path = Path(word)
    return path if "/" in word and path.is_dir() else find(word).path

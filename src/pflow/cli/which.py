"""Which workflow, and which run, a word on the command line means."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pflow import app
from pflow.app import library
from pflow.app.runs import find
from pflow.cli.arrow import ARROW
from pflow.cli.commands import FIRST
from pflow.cli.options import PLAIN_WORDS
from pflow.errors import UsageError, nearest
from pflow.model.workflow import Workflow

SUFFIXES = (".yaml", ".yml", ".json")


class Target(NamedTuple):
    """What is to be run."""

    workflow: Workflow
    is_file: bool  # files are iterated on; saved workflows and pipelines are run whole


def workflow_for(target: str) -> Target:
    """What a word on the command line means: a file, a saved workflow, or a pipeline of nodes."""
    path = Path(target)
    if path.suffix.lower() in SUFFIXES or path.is_file():
        return Target(app.load(path), True)
    words = target.split()
    registry = app.registry_for(Workflow("", "", ()), app.Options()) if ARROW in target or len(words) > 1 else None
    flags = any(word.startswith("--") for word in words[1:2])
    if registry is not None and (ARROW in target or flags or registry.find(words[0]) is not None):
        from pflow.dialects import pipeline

        return Target(pipeline.parse([target], registry), False)
    saved = library.find(target)
    if saved is not None:
        return Target(app.load(saved), False)
    if "/" in target or path.is_dir():
        return Target(app.load(path), True)
    if len(words) > 1:
        raise UsageError(PLAIN_WORDS, "write the workflow into a file: `pflow --help` shows one")
    close = nearest(target, [*FIRST, *library.names()])
    hint = f"did you mean `pflow {close}`? " if close else ""
    raise UsageError(f"there is no file and no saved workflow {target!r}", f"{hint}`pflow --help` lists the commands")


def folder_of(word: str) -> Path:
    """The folder of the run that a word means: an id, its start, or a path."""
    path = Path(word)
    return path if "/" in word and path.is_dir() else find(word)

"""Which workflow, and which run, a word on a command line or in a call means."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pflow.app import library
from pflow.app.documents import load
from pflow.errors import UsageError, nearest
from pflow.model.workflow import Workflow

SUFFIXES = (".yaml", ".yml", ".json")
PLAIN_WORDS = "workflows in plain words come in a later version of pflow"


class Target(NamedTuple):
    """What is to be run."""

    workflow: Workflow
    is_file: bool  # files are iterated on; saved workflows and pipelines are run whole


def workflow_for(target: str, commands: Iterable[str] = ()) -> Target:
    """What a word means: a file, a saved workflow, or a pipeline of nodes; ``commands`` are what else was meant."""
    path = Path(target)
    if path.suffix.lower() in SUFFIXES or path.is_file():
        return Target(load(path), True)
    words = target.split()
    pipeline = _pipeline(target, words)
    if pipeline is not None:
        return Target(pipeline, False)
    saved = library.find(target)
    if saved is not None:
        return Target(load(saved), False)
    if "/" in target or path.is_dir():
        return Target(load(path), True)
    if len(words) > 1:
        raise UsageError(PLAIN_WORDS, "write the workflow into a file: `pflow --help` shows one")
    close = nearest(target, [*commands, *library.names()])
    hint = f"did you mean `pflow {close}`? " if close else ""
    raise UsageError(f"there is no file and no saved workflow {target!r}", f"{hint}`pflow --help` lists the commands")


def _pipeline(text: str, words: list[str]) -> Workflow | None:
    """A pipeline: what has an arrow, or several words of which the first is a node type or the second an option."""
    from pflow.dialects.pipeline import ARROW, parse

    if ARROW not in text and len(words) < 2:
        return None
    from pflow.app.types import known

    registry = known()
    option = any(word.startswith("--") for word in words[1:2])
    return parse([text], registry) if ARROW in text or option or registry.find(words[0]) is not None else None


def names_file(word: str, folder: Path) -> bool:
    """Whether a word is written as a file is, or is one, seen from a folder."""
    from pflow.dialects.pipeline import ARROW

    path = Path(word)
    return ARROW not in word and (path.suffix.lower() in SUFFIXES or "/" in word or (folder / word).is_file())

"""Documents: from a file, or from a run's own copy, to a workflow."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pflow.errors import Place, Problem, UsageError, WorkflowError, suggest
from pflow.model.records import Opened
from pflow.model.workflow import Workflow
from pflow.storage.runs import RunFolder


def load(source: str | Path) -> Workflow:
    """Read a workflow document of any dialect; raises ``WorkflowError`` with every problem."""
    path = Path(source)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}", _beside(path)) from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder", "name a workflow file in it") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    return parse(data, str(path))


def parse(data: bytes | str, file: str = "") -> Workflow:
    """A workflow from the text of a document."""
    from pflow.dialects import detect
    from pflow.documents.source import load as load_source

    return detect.parse(load_source(data, file))


def dialect_title(workflow: Workflow) -> str:
    """What a workflow's dialect is called."""
    from pflow.dialects.detect import DIALECTS

    return DIALECTS.get(workflow.dialect, (workflow.dialect,))[0]


def _beside(path: Path) -> str:
    """What could have been meant instead of a file that is not there."""
    folder = path.parent
    names = (
        sorted(p.name for p in folder.iterdir() if p.suffix in (".json", ".yaml", ".yml")) if folder.is_dir() else []
    )
    return suggest(path.name, names, f"workflows in {folder}/")


def kept_workflow(folder: RunFolder, opened: Opened) -> Workflow:
    """The workflow of a run, as it was when the run was opened."""
    file, name = next(iter(opened.documents.items()), ("", ""))
    try:
        data = (folder.path / name).read_bytes()
    except OSError as error:
        text = f"the run's own copy of its workflow cannot be read: {error.strerror}"
        raise WorkflowError([Problem(text, Place(str(folder.path / name)), "start a new run")]) from None
    if name.endswith(".ir"):
        return msgspec.json.decode(data, type=Workflow)
    return parse(data, opened.path or file)

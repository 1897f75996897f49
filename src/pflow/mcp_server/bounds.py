"""The folders that a client may reach: workflows and runs elsewhere are refused."""

from __future__ import annotations

from pathlib import Path

from pflow import app
from pflow.app.runs import find, opening_of
from pflow.app.targets import Target, names_file, workflow_for
from pflow.errors import RunError, UsageError


class Bounds:
    """The folder that the server was started in, and those that it was told to allow."""

    def __init__(self, root: Path, *others: Path) -> None:
        self.root = root.resolve()
        self._folders = (self.root, *(folder.resolve() for folder in others))

    def holds(self, path: Path) -> bool:
        """Whether a path leads to a place inside, links followed."""
        real = (self.root / path).resolve()
        return any(real.is_relative_to(folder) for folder in self._folders)

    def path(self, word: str) -> Path:
        """A path inside, as it was given; raises ``UsageError`` for any other."""
        if "\0" in word or not word:
            raise UsageError("that is no path", "a path of a workflow file, from the server's folder")
        path = self.root / word
        if not self.holds(path):
            folders = ", ".join(map(str, self._folders))
            hint = f"inside is: {folders}; `pflow mcp serve --allow DIR` adds a folder"
            raise UsageError(f"{word} is outside of what this server may reach", hint)
        return path

    def target(self, word: str | None, document: str | None) -> Target:
        """What is to be run: a file inside, a saved workflow, a pipeline, or a document that was given as text."""
        if (word is None) == (document is None):
            raise UsageError("give either `workflow` or `document`", "workflow: a path, a saved name or a pipeline")
        if document is not None:
            return Target(app.parse(document), False)
        assert word is not None
        if names_file(word, self.root):
            return Target(app.load(self.path(word)), True)
        found = workflow_for(word)
        if found.is_file:
            self.path(found.workflow.file)
        return found

    def run(self, run_id: str) -> Path:
        """A run that was started inside; raises for any other."""
        if "/" in run_id:
            raise UsageError("a run is named by its id", "`runs` lists them")
        folder = find(run_id)
        if not self.owns(folder):
            hint = "`pflow mcp serve --allow DIR` adds a folder"
            raise UsageError(f"run {folder.name} was not started in a folder that this server may reach", hint)
        return folder

    def owns(self, folder: Path) -> bool:
        """Whether a run was started inside."""
        try:
            return self.holds(Path(opening_of(folder).cwd))
        except RunError:
            return False

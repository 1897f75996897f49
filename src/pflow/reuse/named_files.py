"""Files that a visit names: in its params, and in the words of a command, other than where output is redirected to."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pflow.nodes.type import NodeType

ABSENT = "absent"
_MOST = 200  # names looked at in one visit
_LONGEST = 4096
_REDIRECTION = re.compile(r"^(?:\d+|&)?>{1,2}\|?&?")


class Files:
    """Digests of files, remembered for as long as a file looks the same from outside."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self._known: dict[tuple[str, int, int, int], str] = {}

    def named(self, kind: NodeType, params: dict[str, Any]) -> list[str]:
        """The absolute paths that may be files of this visit, existing or not."""
        folder = self.workspace
        if isinstance(cwd := params.get("cwd"), str):
            folder = folder / cwd
        found: dict[str, None] = {}
        for key, value in params.items():
            words = _words(value) if key == kind.declared.command and isinstance(value, str) else _texts(value)
            for word in words:
                if len(found) < _MOST and (path := _as_path(folder, word)):
                    found[path] = None
        return list(found)

    def digest(self, path: str) -> str:
        """The digest of a regular file, or a word for anything else."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return ABSENT
        if not stat.S_ISREG(status.st_mode):
            return ABSENT
        key = (path, status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._known.get(key)
        if known is None:
            known = _digest(Path(path))
            self._known[key] = known
        return known

    def read(self, kind: NodeType, params: dict[str, Any]) -> dict[str, str]:
        """The digests of the files that a type says it reads, by their names as given."""
        named = [params[name] for name in kind.declared.reads if isinstance(params.get(name), str)]
        return {name: _digest(self.workspace / name) for name in named}

    def gone(self, kind: NodeType, params: dict[str, Any]) -> str:
        """The name as given of a file that a type says it makes, and that is not there."""
        written = ((name, path) for name in kind.declared.writes for path in self.named(kind, {name: params.get(name)}))
        return next((str(params[name]) for name, path in written if self.digest(path) == ABSENT), "")


def _digest(path: Path) -> str:
    """The digest of a file's content; of a folder or of nothing, a word."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except IsADirectoryError:
        return "folder"
    except (OSError, ValueError):
        return ABSENT


def _as_path(folder: Path, word: str) -> str:
    """An absolute path, for a word that could be one."""
    if not word or len(word) > _LONGEST or "\n" in word or "\0" in word or word.startswith("-"):
        return ""
    return os.path.normpath(os.path.join(folder, os.path.expanduser(word)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _words(command: str) -> Iterator[str]:
    """The words of a command line, without the targets of redirections."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    target = False
    try:
        for word in lexer:
            if target:
                target = False
                continue
            arrow = _REDIRECTION.match(word)
            if arrow:
                target = arrow.end() == len(word)
                continue
            yield word
    except ValueError:
        return  # an open quote: the shell will complain

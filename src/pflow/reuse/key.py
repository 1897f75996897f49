"""Keys: what an outcome depends on, part by part, so that a difference can be named."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pflow.model.value import digest
from pflow.nodes.spec import NodeType


def type_parts(kind: NodeType) -> dict[str, str]:
    """A node type as it is now: name, version, and for a stranger's the digest of its source."""
    parts = {"type": kind.name, "version": kind.version}
    if not kind.trusted:
        parts["source"] = kind.source
    return parts


def file_digest(path: Path) -> str:
    """The digest of a file's content; of a folder or of nothing, a word."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except IsADirectoryError:
        return "folder"
    except (OSError, ValueError):
        return "absent"


def read_files(kind: NodeType, params: dict[str, Any], workspace: Path) -> dict[str, str]:
    """The digests of the files that a type says it reads."""
    named = [params[name] for name in kind.declared.reads if isinstance(params.get(name), str)]
    return {name: file_digest(workspace / name) for name in named}


def key_of(parts: dict[str, Any]) -> str:
    """One name for all parts."""
    return digest(parts)

"""Views: files that show a run's state to people and scripts; the journal is the truth behind them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pflow.model.visit import parts_of
from pflow.storage.files import encode_json, safe_name, write_atomic


class Views:
    """The views in one run's folder, written when they differ from what this process wrote last."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, bytes] = {}

    def write(self, views: Mapping[str, Any]) -> int:
        """Write each value to the file it is named for, such as ``nodes/a/output.json``; tell how many changed.

        Ids within a name have been through ``safe_name``.
        """
        return sum(self._write(name, encode_json(value, indent=2)) for name, value in views.items())

    def _write(self, name: str, data: bytes) -> bool:
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if self._digests.get(name) == digest:
            return False
        write_atomic(self._folder / name, data)
        self._digests[name] = digest
        return True


def node_folder(visit: str) -> str:
    """The folder of a visit's views: ``nodes/a`` for ``a#1``, ``nodes/a#2`` for its second, nested ones inside."""
    path = PurePosixPath()
    for part, n in parts_of(visit):
        name = safe_name(part) + (f"#{n}" if n > 1 else "")
        path = path / "nodes" / name if n else path / name
    return str(path)

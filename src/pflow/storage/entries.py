"""Cache entries: one JSON file each, written whole or not at all; a damaged one is as good as none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pflow.errors import JournalError
from pflow.model.value import portable, restore
from pflow.storage.blobs import Blobs
from pflow.storage.files import read_json, write_atomic, write_json


def read(path: Path) -> dict[str, Any] | None:
    """An entry, or None when there is none that can be read."""
    try:
        found = read_json(path)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, dict) else None


def write(path: Path, entry: dict[str, Any]) -> bool:
    """Keep an entry; False when the folder does not let us."""
    try:
        write_json(path, entry)
    except OSError:
        return False
    return True


def read_with_blobs(path: Path, blobs: Blobs) -> dict[str, Any] | None:
    """An entry whose large outputs are in blobs."""
    try:
        data = path.read_bytes()
        found: dict[str, Any] = msgspec.json.decode(data)
        if b'"__type"' not in data:  # nothing in it needs a second look
            return found if isinstance(found["outputs"], dict) else None
        outputs = blobs.get_all(found.pop("outputs"))
        return {**restore(found), "outputs": outputs}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, JournalError):
        return None


def write_with_blobs(path: Path, entry: dict[str, Any], blobs: Blobs) -> bool:
    """Keep an entry, with its large outputs in blobs."""
    rest = {key: portable(value) for key, value in entry.items() if key != "outputs"}
    try:
        write_atomic(path, msgspec.json.encode({**rest, "outputs": blobs.put_all(entry["outputs"])}))
    except OSError:
        return False
    return True


def remove(path: Path) -> bool:
    """Drop an entry; False when it was not there."""
    try:
        path.unlink()
    except OSError:
        return False
    return True

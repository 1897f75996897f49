"""The inbox: messages from other processes to a run, kept until the run has journalled them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from pflow.storage.files import private_folder, read_object, sync_path, write_json

FOLDER = "inbox"


def post(folder: Path, message: dict[str, Any]) -> str:
    """Leave a message for the run, durably, and return its name."""
    inbox = folder / FOLDER
    if not inbox.is_dir():
        private_folder(inbox)
        sync_path(folder)
    name = f"{time.time_ns():020d}-{os.urandom(4).hex()}.json"
    write_json(inbox / name, message, sync=True)
    return name


def drain(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """All messages with their names, oldest first; they stay until they are removed."""
    read = ((name, read_object(folder / FOLDER / name)) for name in sorted(_names(folder)))
    return [(name, message) for name, message in read if message]


def remove(folder: Path, name: str) -> None:
    """Drop a message whose record is in the journal."""
    (folder / FOLDER / name).unlink(missing_ok=True)


def pending(folder: Path) -> bool:
    """Whether a message waits; costs one look at the folder."""
    return bool(_names(folder))


def _names(folder: Path) -> list[str]:
    try:
        names = os.listdir(folder / FOLDER)  # noqa: PTH208 - half the price of iterdir, and asked often
    except FileNotFoundError:
        return []
    return [name for name in names if name.endswith(".json") and not name.startswith(".")]

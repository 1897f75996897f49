"""What a server says on stderr: its last words are kept, for whoever has to find out why it ended."""

from __future__ import annotations

import asyncio
import os
from typing import TextIO

KEPT = 8000  # bytes
_LINES = 12


class LastWords:
    """A pipe for a process to write to; reading never blocks, and only the end is kept."""

    def __init__(self) -> None:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        self.stream: TextIO = os.fdopen(write, "w")
        self._kept = b""
        self._open = True
        asyncio.get_running_loop().add_reader(self._read, self._drain)

    def text(self) -> str:
        """The last lines."""
        self._drain()
        lines = self._kept.decode("utf-8", "replace").strip().splitlines()
        return "\n".join(lines[-_LINES:])

    def close(self) -> None:
        """Nothing more is wanted."""
        if self._open:
            self._drain()
            self._shut()
            self.stream.close()

    def _drain(self) -> None:
        while self._open:
            try:
                data = os.read(self._read, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                self._shut()
            self._kept = (self._kept + data)[-KEPT:]

    def _shut(self) -> None:
        asyncio.get_running_loop().remove_reader(self._read)
        os.close(self._read)
        self._open = False

"""Real processes, with and without a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "pflow")
PATIENCE = 60.0  # seconds before something that never comes fails a test instead of hanging it

# A node that tells its process id through a pipe, and then takes forever.
SLOW = """\
flow: {name: slow}
nodes:
  - {id: before, type: shell, input: {command: "echo before >> log; echo done"}}
  - id: slow
    type: shell
    input: {command: "test -e hurry && exit; echo $$ > started; exec sleep 600", timeout: 900}
  - {id: after, type: echo, input: {text: "after"}}
edges:
  - {from: before, to: slow}
  - {from: slow, to: after}
"""


def slow_workflow(here: Path) -> None:
    (here / "slow.yaml").write_text(SLOW)
    os.mkfifo(here / "started")


def started(here: Path) -> int:
    """Wait until the slow node is at work; its process id."""
    with (here / "started").open() as pipe:
        return int(pipe.read())


@contextmanager
def process(here: Path, *words: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """The command line in a process of its own, without a terminal; ended when the test ends."""
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    made = subprocess.Popen([*COMMAND, *words], cwd=here, text=True, **(pipes | options))
    try:
        yield made
    finally:
        made.kill()
        made.communicate()


class Terminal:
    """The command line at a terminal: what is typed goes in, what is seen comes out."""

    def __init__(self, here: Path, *words: str, size: tuple[int, int] = (24, 80), known: bool = True) -> None:
        if known:  # as if the workflow had been run and confirmed before
            home = Path(os.environ["PFLOW_HOME"])
            home.mkdir(parents=True, exist_ok=True)
            (home / "confirmed.json").write_text(json.dumps([str(here / word) for word in words]))
        self._master, slave = pty.openpty()
        self._resize(slave, size)
        self.seen = ""
        self._looked = 0  # up to where the test has seen it
        self.process = subprocess.Popen(
            [*COMMAND, *words], cwd=here, stdin=slave, stdout=subprocess.PIPE, stderr=slave, text=True
        )
        os.close(slave)

    @staticmethod
    def _resize(fd: int, size: tuple[int, int]) -> None:
        import fcntl
        import struct
        import termios

        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))

    def see(self, text: str) -> None:
        """Wait until a text has appeared behind the one that was seen last."""
        while (at := self.seen.find(text, self._looked)) < 0:
            assert self._read(), f"{text!r} never appeared in {self.seen[self._looked :]!r}"
        self._looked = at + len(text)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> tuple[int, str, str]:
        """Wait for the end: the exit code, the result, and everything that was seen."""
        while self._read():
            pass
        out, _ = self.process.communicate(timeout=PATIENCE)
        os.close(self._master)
        return self.process.returncode, out, self.seen

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE)
        if not ready:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # the other end is closed
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)

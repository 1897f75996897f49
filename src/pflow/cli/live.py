"""The feed on a terminal: the lines as ever, and below them what is at work right now.

The view appears when a run takes longer than a moment; a short one never pays for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from pflow.cli.progress import NORMAL, Progress, Working
from pflow.cli.screen import Screen, lasted
from pflow.model.event import Envelope

MOMENT = 0.25  # seconds before the view appears
BEAT = 0.1  # seconds between frames
_DOTS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_BAR = 12  # characters


class LiveProgress(Progress):
    """Lines, with a view of the nodes at work below them."""

    def __init__(self, screen: Screen, level: int) -> None:
        super().__init__(screen, level)
        self._began = monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self._view: Any = None  # rich's, once there is something to see
        self._console: Any = None
        self._printed = Printed(self)

    def __call__(self, envelope: Envelope) -> None:
        """Take in an event."""
        if self._timer is None and envelope.event.type == "phase:start":
            self._timer = asyncio.get_running_loop().call_later(MOMENT, self._appear)
        super().__call__(envelope)

    def say(self, text: str, level: int = NORMAL) -> None:
        """Say a line above the view."""
        if level <= self.level:
            self.print(self.screen.dressed(text))

    def print(self, text: str) -> None:
        """Write a line above the view, as it is."""
        if self._view is None:
            self.screen.put(f"{text}\n")
            return
        from rich.text import Text

        self._console.print(Text.from_ansi(text), soft_wrap=True)

    def aside(self) -> Any:
        """A stream for what node code prints: each line goes above the view."""
        return self._printed

    def close(self) -> None:
        """Take the view away."""
        if self._timer is not None:
            self._timer.cancel()
        self._printed.finish()
        if self._view is not None:
            self._view.stop()
            self._view = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to somebody else for a while."""
        self.close()
        try:
            yield
        finally:
            self._timer = asyncio.get_running_loop().call_later(BEAT, self._appear)

    def _appear(self) -> None:
        try:
            from rich.console import Console
            from rich.live import Live as View
        except ImportError:  # rich is optional: the lines are there without it
            return
        self._console = Console(file=self.screen.stream, no_color=not self.screen.colours, highlight=False)
        self._view = View(
            get_renderable=self._frame,
            console=self._console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._view.start()
        self._refresh()

    def _refresh(self) -> None:
        self._view.refresh()
        self._timer = asyncio.get_running_loop().call_later(BEAT, self._refresh)

    def _frame(self) -> Any:
        from rich.text import Text

        room = max(1, self._console.size.height - 4)
        shown = list(self.working.values())
        rows = [self._row(one) for one in shown[:room]]
        if len(shown) > room:
            rows.append(f"  … and {len(shown) - room} more")
        return Text("\n".join([*rows, self._sum()]), no_wrap=True, overflow="ellipsis")

    def _row(self, one: Working) -> str:
        now = monotonic()
        dot = _DOTS[int(now / BEAT) % len(_DOTS)]
        parts = [f"{dot} {one.name}", lasted((now - one.since) * 1000)]
        if one.limit > 1:
            parts.append(f"attempt {one.attempt}/{one.limit}")
        if one.done is not None:
            parts.append(progress(one.done, one.total))
        return "  ".join(parts)

    def _sum(self) -> str:
        total = self.session.nodes_total if self.session is not None else 0
        parts = [f"{self.ended}/{total} nodes", lasted((monotonic() - self._began) * 1000)]
        if self.cost:
            parts.append(f"${self.cost:.4f}")
        return "  " + " · ".join(parts)


class Printed:
    """Stands in for a standard stream while the view is there; in everything but writing it is stderr."""

    def __init__(self, live: LiveProgress) -> None:
        self._live = live
        self._rest = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._live.screen.stream, name)

    def write(self, text: str) -> int:
        """Write whole lines, and keep the rest until it is one."""
        *whole, self._rest = (self._rest + text).split("\n")
        for line in whole:
            self._live.print(line)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back but the beginning of a line."""

    def finish(self) -> None:
        """Write a line that was never ended."""
        if self._rest:
            self.write("\n")


def progress(done: float, total: float | None) -> str:
    """How far some work has come, as a bar where its end is known."""
    if not isinstance(total, (int, float)) or total <= 0:
        return f"{done:g} done"
    filled = round(_BAR * min(1.0, max(0.0, done / total)))
    return f"{'━' * filled}{'─' * (_BAR - filled)} {done:g}/{total:g}"

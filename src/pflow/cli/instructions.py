"""``pflow instructions``: a page for coding agents."""

from __future__ import annotations

from pathlib import Path

from pflow.cli.screen import result
from pflow.cli.words import Line


def instructions(line: Line) -> int:
    """``pflow instructions``."""
    result(text())
    return 0


def text() -> str:
    """The page."""
    return (Path(__file__).parent / "instructions.md").read_text(encoding="utf-8")

"""The rooms of the source and their sizes; the core must stay small enough to be read in a day."""

from __future__ import annotations

import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "pflow"
CORE = ("model", "lang", "storage", "planning", "schedulers", "reuse", "kernel")
MOST = 8200  # lines of the core


def lines(files: list[Path]) -> int:
    """How many lines some files have together."""
    return sum(len(file.read_bytes().splitlines()) for file in files)


def main() -> int:
    """Print every room, and fail where the core has outgrown its border."""
    rooms = {folder.name: lines(list(folder.rglob("*.py"))) for folder in sorted(SOURCE.iterdir()) if folder.is_dir()}
    rooms = {name: size for name, size in rooms.items() if size}
    core = sum(rooms[name] for name in CORE)
    others = [name for name in rooms if name not in CORE]
    print("core     ", "  ".join(f"{name} {rooms[name]:,}" for name in CORE), f"= {core:,} of {MOST:,} lines")
    print("around it", "  ".join(f"{name} {rooms[name]:,}" for name in others))
    if core > MOST:
        print(f"the core is {core - MOST:,} lines too large: what is in it that a run could do without?")
    return int(core > MOST)


if __name__ == "__main__":
    sys.exit(main())

"""Checks of the documentation: links lead somewhere, named files exist, the tour of the packages is complete."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[[^\]]+\]\(([^)#\s]+)(?:#[^)]*)?\)")
NAMED = re.compile(r"`((?:src/pflow|docs|examples|tests|bench)/[\w./-]+)`")


def problems(path: Path) -> list[str]:
    """What is wrong with one page."""
    text = path.read_text(encoding="utf-8")
    found = []
    for target in LINK.findall(text):
        if not target.startswith(("http:", "https:", "mailto:")) and not (path.parent / target).exists():
            found.append(f"{path.relative_to(ROOT)}: link to {target}, which does not exist")
    for name in NAMED.findall(text):
        if not (ROOT / name).exists():
            found.append(f"{path.relative_to(ROOT)}: names {name}, which does not exist")
    return found


def undocumented() -> list[str]:
    """Packages that the tour in the design leaves out."""
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    packages = sorted(path.parent.name for path in (ROOT / "src" / "pflow").glob("*/__init__.py"))
    return [f"docs/design.md does not mention the package {name}" for name in packages if f"`{name}/`" not in design]


def main() -> int:
    """Print every problem; the exit code tells whether there was one."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    found = [problem for page in sorted(pages) for problem in problems(page)] + undocumented()
    for problem in found:
        sys.stdout.write(problem + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

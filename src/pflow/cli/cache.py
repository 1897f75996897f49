"""``pflow cache``: what the iteration cache holds of a workflow file, and why a node would run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from pflow import app
from pflow.app import cache
from pflow.app.wording import told
from pflow.cli.errors import print_json
from pflow.cli.inputs import gather
from pflow.cli.line import Line
from pflow.cli.screen import Screen, result
from pflow.errors import UsageError

_MARKS = {"cached": "✓", "failed": "✗", "none": "·"}


def status(line: Line) -> int:
    """``pflow cache status FILE``."""
    found = cache.status(Path(line.words[0]))
    if line.json:
        print_json(msgspec.to_builtins(found, enc_hook=str))
        return 0
    rows = [f"Workflow: {found.workflow}", f"Cache: {found.folder}", f"Size: {_size(found.size)}", "", "Nodes:"]
    wide = max((len(one.node) for one in found.nodes), default=0)
    for one in found.nodes:
        words = {"cached": f"cached ({one.note})", "failed": f"not cached (failed: {one.note})", "none": one.note}
        rows.append(f"  {_MARKS[one.status]} {one.node:{wide}}  {words[one.status]}")
    result("\n".join(rows))
    return 0


def clear(line: Line) -> int:
    """``pflow cache clear FILE`` or ``--all``."""
    screen = Screen()
    if line.has("all"):
        if line.words:
            raise UsageError("a file or --all, not both", "pflow cache clear --all")
        count = cache.clear_all()
        screen.say(f"✓ Cleared the cache of {count} workflow{'' if count == 1 else 's'}")
        return 0
    if not line.words:
        raise UsageError("which workflow?", "pflow cache clear FILE, or --all")
    cleared = cache.clear(Path(line.words[0]))
    screen.say(f"✓ Cleared the cache of {line.words[0]}" if cleared else f"ℹ Nothing was cached of {line.words[0]}")
    return 0


def why(line: Line) -> int:
    """``pflow cache why FILE NODE [key=value …]``."""
    path, node = Path(line.words[0]), line.words[1]
    inputs: dict[str, Any] = gather(line, app.load(path), Screen())
    found = cache.why(path, node, inputs, app.Options())
    if line.json:
        prospect = {"node": node, "would": found.prospect.would, **told({"reason": found.prospect.reason})}
        print_json({"prospect": prospect, "fields": found.fields})
        return 0
    rows = [f"{node} would {found.prospect.would}: {found.prospect}", ""]
    for name, then, now in found.fields:
        same = then == now
        rows.append(f"  {'=' if same else '≠'} {name}: {then}" + ("" if same else f"  →  {now}"))
    result("\n".join(rows))
    return 0


def _size(number: int) -> str:
    for unit, size in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"

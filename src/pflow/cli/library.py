"""``pflow workflow``: workflows that are saved and run by name."""

from __future__ import annotations

import msgspec

from pflow.app import library
from pflow.app.documents import load
from pflow.app.wording import one_line
from pflow.cli.errors import print_json
from pflow.cli.line import Line
from pflow.cli.screen import Screen, result
from pflow.errors import UsageError
from pflow.model.workflow import Input


def save(line: Line) -> int:
    """``pflow workflow save FILE --name N``."""
    name = line.value("name")
    if name is None:
        raise UsageError("under which name?", f"pflow workflow save {line.words[0]} --name NAME")
    path = library.save(load(line.words[0]), name, replace=line.has("yes"))
    Screen().say(f"✓ Saved as {name!r}: run it with `pflow {name}`\n  {path}")
    return 0


def list_saved(line: Line) -> int:
    """``pflow workflow list``."""
    found = library.saved()
    if line.json:
        print_json([msgspec.to_builtins(one, enc_hook=str) for one in found])
    elif found:
        wide = max(len(one.name) for one in found)
        result("\n".join(f"{one.name:{wide}}  {one.dialect or 'broken':9}  {_says(one)}" for one in found))
    else:
        Screen().say("no workflows are saved; `pflow workflow save FILE --name NAME` saves one")
    return 0


def _says(one: library.Saved) -> str:
    return one_line(one.problem or one.description or f"{one.nodes} nodes", 100)


def describe(line: Line) -> int:
    """``pflow workflow describe N``."""
    one, flow = library.describe(line.words[0])
    if line.json:
        print_json(msgspec.to_builtins(one, enc_hook=str))
        return 0
    rows = [f"{one.name}  ({one.dialect or 'cannot be read'})", "", one.problem or one.description or "no description"]
    if flow is not None:
        rows += ["", "Inputs:", *(_input_row(item) for item in flow.inputs)]
        if flow.outputs:
            rows += ["", "Outputs:", *(f"  {output.name}: {output.type}" for output in flow.outputs)]
        rows += ["", f"Nodes: {', '.join(node.id for node in flow.nodes)}"]
    result("\n".join([*rows, "", str(one.path)]))
    return 0


def _input_row(item: Input) -> str:
    given = "required" if item.required else f"= {item.default}"
    return f"  {item.name}: {item.type}  {given}" + (f"  {one_line(item.description, 80)}" if item.description else "")


def delete(line: Line) -> int:
    """``pflow workflow delete N``."""
    library.delete(line.words[0])
    Screen().say(f"✓ Deleted {line.words[0]!r}")
    return 0

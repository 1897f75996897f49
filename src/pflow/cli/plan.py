"""Commands that look at a workflow and run nothing: validate, plan."""

from __future__ import annotations

from typing import Any

import msgspec

from pflow.app.documents import dialect_title, load
from pflow.app.explain import Row
from pflow.app.preview import check, preview
from pflow.app.problems import problem_view
from pflow.app.targets import workflow_for
from pflow.app.wording import one_line
from pflow.cli.commands import FIRST
from pflow.cli.errors import described, print_json
from pflow.cli.inputs import gather
from pflow.cli.line import Line
from pflow.cli.screen import Screen, result
from pflow.model.value import json_text
from pflow.model.workflow import Workflow

_GAP = "  "


def validate(line: Line) -> int:
    """``pflow validate FILE``; problems are raised, and told by whoever catches them."""
    return check_only(line, load(line.words[0]))


def check_only(line: Line, workflow: Workflow, inputs: dict[str, Any] | None = None) -> int:
    """``pflow FILE --validate-only``: the workflow with its inputs."""
    warnings = check(workflow, inputs)
    for warning in warnings:
        Screen().say(described(warning))
    if line.json:
        print_json({"valid": True, "problems": [problem_view(warning) for warning in warnings]})
    elif line.level:
        result(f"{workflow.file} is valid: {dialect_title(workflow)}, {_count(len(workflow.nodes), 'node')}")
    return 0


def plan(line: Line) -> int:
    """``pflow plan FILE``."""
    target = workflow_for(line.words[0], FIRST)
    workflow = target.workflow
    rows = preview(target, gather(line, workflow, Screen()), tuple(line.options.get("rerun", ())))
    width = line.count("jobs") or workflow.width
    if line.json:
        nodes = [msgspec.to_builtins(row) for row in rows]
        print_json({"nodes": nodes, "problems": [], "workflow": workflow.name, "width": width})
    else:
        result(_table(workflow, rows, width))
    return 0


def _table(workflow: Workflow, rows: list[Row], width: int) -> str:
    at_once = "one at a time" if width == 1 else f"up to {width} at once"
    if workflow.scheduler == "reactive":
        at_once = "as values are pushed and pulled"
    lines = [f"{workflow.name}: {dialect_title(workflow)}, {_count(len(rows), 'node')}, {at_once}", ""]
    names = [("  " if row.within else "") + row.id for row in rows]
    wide = max(map(len, names)), max(len(row.type) for row in rows)
    for number, (name, row) in enumerate(zip(names, rows, strict=True), 1):
        lines.append(f"{number:>4}. {name:{wide[0]}}  {row.type:{wide[1]}}  {row.effect:6}  {row.reason}")
        lines += [f"{'':6}{_GAP}{one_line(more)}" for more in _details(row)]
    return "\n".join(lines)


def _details(row: Row) -> list[str]:
    found = []
    if row.after:
        found.append(f"after: {', '.join(row.after)}")
    if row.when:
        found.append(f"when: {row.when}")
    if row.exec:
        found.append("tries: " + ", ".join(_spelled(key, value) for key, value in row.exec.items()))
    found += [f"{key}: {json_text(value)}" for key, value in row.params.items()]
    return found


def _spelled(key: str, value: Any) -> str:
    return {
        "retries": f"up to {value} more",
        "delay": f"{value:g} s in between",
        "timeout": f"{value:g} s each at most",
        "continue_on_error": "its failure is tolerated",
    }[key]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

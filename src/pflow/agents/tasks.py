"""Tasks inside a node: one call for each, at once, each a visit of its own, and one outcome for all.

The tasks become the nodes of a workflow that runs inside the node: so each is in the journal by itself, a resumed run
asks nobody twice, and ending the node ends them all.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from pflow.agents.answer import lookup
from pflow.agents.context import context
from pflow.errors import BindingError, NodeError
from pflow.lang.comparison import truth
from pflow.lang.template import compile_text, compile_value, to_text
from pflow.model.typed import typed
from pflow.model.value import type_name
from pflow.model.workflow import Node, Policy, Workflow
from pflow.nodes.step import StepContext

ALL_PASSED, FAILED, REPORT = "all_passed", "failed_checks", "validation_report"
_ABOUT_ALL = (ALL_PASSED, FAILED, REPORT, "results")
_VERDICTS = ("passed", "all_passed")  # what an answer may call its own verdict
_WORK = ("agent", "prompt", "workflow")
_KEYS = ("id", "name", "agent", "agent_mode", "mode", "prompt", "workflow", "inputs")
_GIVEN = "given"  # the name under which the tasks' params reach their nodes
_LONGEST_ID = 60
_unfit = re.compile(r"[/#\s{}$\x00-\x1f]+")


class Common(NamedTuple):
    """What all tasks of a node have in common; ``tasks`` and ``prompt`` are as written."""

    tasks: Any
    prompt: str | None
    params: dict[str, Any]
    outputs: list[str]
    name: str
    width: int


class Task(NamedTuple):
    """One task: what it is called, what it is, and the node type that does it with which params."""

    label: str
    value: Any
    type: str
    params: dict[str, Any]


async def run_tasks(step: StepContext, common: Common) -> dict[str, Any]:
    """Do all tasks, await all of them, and say how they went, in their order."""
    if common.width < 1:
        raise NodeError(f"max_concurrent is {common.width}", "give a number above 0", "validation")
    try:
        tasks = _Reader(step, common).tasks()
    except BindingError as error:
        raise NodeError(error.message, error.hint, "binding") from None
    ids = _ids(tasks)
    if not tasks:
        return _summed_up([], [], common.outputs)
    made = await step.run_workflow(_workflow(step, tasks, ids, common.width), {_GIVEN: [task.params for task in tasks]})
    results = [_result(common.name, task, made.get(node, {})) for task, node in zip(tasks, ids, strict=True)]
    return _summed_up(tasks, results, common.outputs)


class _Reader:
    """Fills in the texts of a node's tasks: with what the workflow knows, and with the task at hand."""

    def __init__(self, step: StepContext, common: Common) -> None:
        self._step = step
        self._common = common
        self._workflow = step.workflow
        self._values = dict(step.values)

    def tasks(self) -> list[Task]:
        written = self._common.tasks
        if isinstance(written, list):
            return [self._written(one) for one in written]
        # What comes out of a template is data: no text in it is a template again.
        return [self._task(item, item if _is_task(item) else {}, False) for item in _listed(self._bound(written))]

    def _written(self, one: Any) -> Task:
        if not isinstance(one, dict) or not (_is_task(one) or self._common.name == "task"):
            return self._task(self._bound(one), {}, True)
        rest = {key: self._bound(value) for key, value in one.items() if key != "prompt"}
        return self._task(rest, {**rest, **({"prompt": one["prompt"]} if "prompt" in one else {})}, True)

    def _task(self, value: Any, own: dict[str, Any], is_template: bool) -> Task:
        """A task; ``own`` is what it says itself, where it is more than a name."""
        label = _label(own) if own else to_text(value).strip()
        value = label if own else value
        if not isinstance(own.get("inputs") or {}, dict):
            said = f'the inputs of the task "{label}" are {type_name(own["inputs"])}, not a mapping'
            raise NodeError(said, "inputs: {name: value}", "validation")
        if own.get("workflow"):
            return Task(label, value, "workflow", {"workflow_ref": own["workflow"], "inputs": own.get("inputs") or {}})
        params = dict(self._common.params)
        mode = own.get("mode", own.get("agent_mode"))
        params |= {key: text for key, text in (("agent", own.get("agent")), ("mode", mode)) if text}
        params["outputs"] = [name for name in self._common.outputs if name not in _ABOUT_ALL]
        inputs = {**(params.get("inputs") or {}), **(own.get("inputs") or {})}
        if own.get("prompt"):
            params["prompt"] = self._filled(own["prompt"], value)[0] if is_template else own["prompt"]
        elif self._common.prompt:
            text, mentions = self._filled(self._common.prompt, value)
            params["prompt"] = text if mentions else f"{text.rstrip()}\n\n{self._common.name}: {to_text(value)}"
        else:
            params["prompt"] = to_text(value)
            inputs = {**context(self._step), **inputs}
        return Task(label, value, "agent", {**params, **({"inputs": inputs} if inputs else {})})

    def _bound(self, value: Any) -> Any:
        return compile_value(value, self._workflow.syntax, self._workflow.missing).bind(self._values)

    def _filled(self, text: str, value: Any) -> tuple[str, bool]:
        """A prompt for one task, and whether it mentions it."""
        template = compile_text(text, self._workflow.syntax, self._workflow.missing)
        names = {name: value for name in ("task", "item") if name not in self._values} | {self._common.name: value}
        mentions = any(reference.root in names for reference in template.references)
        return to_text(template.render({**self._values, **names})), mentions


def _is_task(value: Any) -> bool:
    """Whether a mapping says what to do, rather than being what to do it with."""
    return isinstance(value, dict) and any(value.get(key) for key in _WORK) and all(key in _KEYS for key in value)


def _label(own: dict[str, Any]) -> str:
    found = next((own[key] for key in ("name", "id", "workflow", "agent", "prompt") if own.get(key)), "")
    return to_text(found).strip()


def _listed(items: Any) -> list[Any]:
    """A list, also as the JSON that an agent may have answered with."""
    made = typed(items.strip()) if isinstance(items, str) else items
    if not isinstance(made, list):
        hint = "give a list, or a template that is one"
        raise NodeError(f"tasks must be a list, not {type_name(items)} {to_text(items)[:60]!r}", hint, "validation")
    return made


def _ids(tasks: list[Task]) -> list[str]:
    """A node id for each task that shows what it is; the same tasks always get the same ids."""
    ids: dict[str, None] = {_GIVEN: None}
    for task in tasks:
        base = _unfit.sub("-", task.label).strip("-")[:_LONGEST_ID] or "task"
        name, n = base, 2
        while name in ids:
            name, n = f"{base}-{n}", n + 1
        ids[name] = None
    return list(ids)[1:]


def _workflow(step: StepContext, tasks: list[Task], ids: list[str], width: int) -> Workflow:
    """The tasks as nodes of a workflow; a failure of one is noted, and repeated as often as its node's would be."""
    outer, policy = step.workflow, step.node.policy
    each = Policy(policy.retry, policy.by_kind, tolerate=True, cache=policy.cache)
    nodes = tuple(
        Node(node_id, task.type, {key: f"{{{{{_GIVEN}[{n}].{key}}}}}" for key in task.params}, policy=each)
        for n, (node_id, task) in enumerate(zip(ids, tasks, strict=True))
    )
    return Workflow(f"{step.node_id} tasks", outer.dialect, nodes, width=width, file=outer.file)


def _result(name: str, task: Task, made: dict[str, Any]) -> dict[str, Any]:
    """How one task went: its verdict, with what it gave or why it gave nothing."""
    shown = {name: task.value}
    if made.get("failed") is True and "attempts" in made and "text" not in made:
        error = made["error"]
        return {**shown, "passed": False, "error": error.get("message", ""), "kind": error.get("kind", "")}
    if made == {"skipped": True}:
        return {**shown, "passed": False, "error": "skipped: it may have taken effect before", "kind": "doubt"}
    return {**shown, "passed": _passed(made), **{key: value for key, value in made.items() if key != "passed"}}


def _passed(made: dict[str, Any]) -> bool:
    """The verdict of a task that was done: its own, where it gives one."""
    said = {**lookup(to_text(made.get("text", "")), _VERDICTS), **made}
    own = [said[name] for name in _VERDICTS if name in said]
    return truth(own[0]) if own else True


def _summed_up(tasks: list[Task], results: list[dict[str, Any]], declared: list[str]) -> dict[str, Any]:
    failed = [task.label for task, one in zip(tasks, results, strict=True) if not one["passed"]]
    about_all = {ALL_PASSED: not failed, FAILED: failed, REPORT: _report(tasks, results)}
    made: dict[str, Any] = {}
    for name in declared:
        made[name] = about_all[name] if name in about_all else [one.get(name) for one in results]
    return {**made, "results": results}


def _report(tasks: list[Task], results: list[dict[str, Any]]) -> str:
    lines = []
    for task, one in zip(tasks, results, strict=True):
        said = one["error"] if "error" in one else one.get("text", "")
        verdict = "passed" if one["passed"] else "FAILED"
        lines.append(f"{task.label}: {verdict}" + (f"\n{to_text(said).strip()}" if said else ""))
    return "\n\n".join(lines)

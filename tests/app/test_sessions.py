"""DotRunner's sessions: the folder as the specification draws it, and going on from any checkpoint."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pflow import app
from pflow.agents.find import register
from pflow.app.runner import SESSIONS
from pflow.errors import UsageError, WorkflowError
from pflow.model.records import Ended
from pflow.nodes.agent import AgentContext, AgentDefinition
from pflow.storage.journal import read

PARENT = """\
workflow: {name: w, context: {goal: ship}}
nodes:
  - {id: draft, agent: clerk, prompt: "do {goal}", outputs: [draft]}
  - {id: review, agent: clerk, prompt: "see {draft}", outputs: [verdict], next: {yes: inside, no: draft}}
  - {id: inside, workflow: parts/child.yaml, inputs: {x: "{draft}"}, outputs: [inner]}
  - {id: last, agent: clerk, prompt: "end {inner}", outputs: [end]}
"""
CHILD = """\
name: child
nodes:
  - {id: i, agent: clerk, prompt: "inner {x}", outputs: [inner]}
  - {id: j, agent: clerk, prompt: "inner {x} {inner}", outputs: [inner]}
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The visits for which the clerk was called; it says no to its first draft."""
    made: list[str] = []

    async def clerk(question: dict[str, Any], _: AgentContext) -> str:
        visit = question["idempotency_key"].partition(":")[2]
        made.append(visit)
        return f"Well.\n{json.dumps(dict.fromkeys(question['outputs'], 'no' if visit == 'review#1' else 'yes'))}"

    (tmp_path / "parts").mkdir()
    (tmp_path / "w.yaml").write_text(PARENT)
    (tmp_path / "parts" / "child.yaml").write_text(CHILD)
    monkeypatch.chdir(tmp_path)
    unregister = register(AgentDefinition("clerk", clerk))
    yield made
    unregister()


def test_the_folder_is_as_drawn(calls: list[str]) -> None:
    """Each file has the content that its name says."""
    done = app.run_sync("w.yaml")
    assert done.status == "completed" and done.path is not None and done.path.parent == Path.cwd() / SESSIONS
    view = {
        str(path.relative_to(done.path)): json.loads(path.read_text())
        for path in done.path.rglob("*.json")
    }  # fmt: skip
    for visit in ("draft", "draft#2", "review", "review#2", "inside/nodes/i", "inside/nodes/j", "last"):
        assert {f"nodes/{visit}/{name}.json" for name in ("input", "output", "agent_response")} <= set(view)
    assert view["state.json"]["status"] == "completed" and view["state.json"]["steps"]["review#1"]["route"] == "draft"
    context = view["context.json"]
    assert (context["goal"], context["verdict"], context["review"]["verdict"]) == ("ship", "yes", "yes")
    assert view["nodes/draft/input.json"]["prompt"] == "do ship"
    said = view["nodes/review/agent_response.json"]
    assert said["text"].startswith("Well.") and said["data"] == {"verdict": "no"} and said["usage"] == {}
    assert "nodes/inside/agent_response.json" not in view, "a workflow is no agent"


CHECKPOINTS = ["draft", "review", "draft#2", "review#2", "inside", "inside/i", "inside/j", "inside#1/j#1", "last"]


@pytest.mark.parametrize("at", CHECKPOINTS)
def test_any_checkpoint_can_be_gone_on_from(calls: list[str], at: str) -> None:
    """What ended before it is not called again; it and all after it is, in loops and inside workflows too."""
    whole = app.run_sync("w.yaml")
    path = list(calls)
    first = "/".join(part if "#" in part else f"{part}#1" for part in at.split("/"))
    cut = next(n for n, visit in enumerate(path) if visit == first or visit.startswith(f"{first}/"))
    calls.clear()
    forked = asyncio.run(app.resume(app.fork(whole.run_id, at)))
    assert calls == path[cut:] and forked.outputs == whole.outputs
    assert forked.path is not None and whole.path is not None
    ends = [
        [one.visit for one in read(run / "trace.jsonl") if isinstance(one, Ended)] for run in (forked.path, whole.path)
    ]
    assert ends[0] == ends[1]


def test_a_checkpoint_that_never_was_is_named_with_those_that_were(calls: list[str]) -> None:
    whole = app.run_sync("w.yaml")
    with pytest.raises(UsageError, match='never came to "inside/k"') as caught:
        app.fork(whole.run_id, "inside/k")
    assert caught.value.hint == "it came to: inside#1/i#1, inside#1/j#1"
    with pytest.raises(UsageError, match="never came to"):
        app.fork(whole.run_id, "draft#3")


def test_an_agent_that_is_nowhere_is_told_before_anything_runs(calls: list[str], tmp_path: Path) -> None:
    """With the node, the nearest name, and where it was looked for; in tasks as well."""
    text = PARENT.replace("id: last, agent: clerk", "id: last, agent: clark")
    Path("bad.yaml").write_text(text + "  - {id: more, agent: clerk, parallel_tasks: [{agent: nobody, prompt: x}]}\n")
    for start in (lambda: app.run_sync("bad.yaml"), lambda: app.plan(app.load("bad.yaml"))):
        with pytest.raises(WorkflowError) as caught:
            start()
        first, second = caught.value.problems
        assert first.message == 'node "last": there is no agent "clark"' and first.place.line == 6
        assert 'did you mean "clerk"?' in first.hint and "looked in" in first.hint
        assert 'no agent "nobody"' in second.message
    assert not calls and not Path(".dotrunner").exists()


def test_everything_wrong_with_an_agents_file_is_told_before_anything_runs(calls: list[str], tmp_path: Path) -> None:
    file = tmp_path / "home" / "agents" / "torn.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\ncomand: [cat]\ntimeout: soon\n---\nSay it.\n")
    Path("w.yaml").write_text("name: w\nnodes: [{id: a, agent: torn, prompt: hi}]\n")
    with pytest.raises(WorkflowError) as caught:
        app.run_sync("w.yaml", home=tmp_path / "home")
    assert [problem.message for problem in caught.value.problems] == [
        f'node "a": {file}:2:1: unknown key "comand"',
        f'node "a": {file}:3:10: "timeout" must be a number, not text',
    ]
    assert 'did you mean "command"?' in caught.value.problems[0].hint and not calls


def test_agents_are_found_at_the_home_that_a_run_was_given(calls: list[str], tmp_path: Path) -> None:
    """A library's caller may keep its own home."""
    home = tmp_path / "elsewhere"
    (home / "agents").mkdir(parents=True)
    (home / "agents" / "echoer.md").write_text("---\nname: echoer\ncommand: [cat]\n---\nSay it.\n")
    Path("w.yaml").write_text("name: w\nnodes: [{id: a, agent: echoer, prompt: hi}]\n")
    done = app.run_sync("w.yaml", home=home)
    assert done.status == "completed" and json.loads(done.outputs["a"]["text"])["prompt"] == "hi"


def test_what_visits_were_given_is_shown_however_early_the_process_died(calls: list[str]) -> None:
    """Wherever the journal ends, and though no view was written: as it was at each visit of a loop."""
    whole = app.run_sync("w.yaml")
    assert whole.path is not None

    def shown(folder: Path) -> dict[str, Any]:
        return {path.parent.name: json.loads(path.read_text()) for path in folder.glob("nodes/*/input.json")}

    expected = shown(whole.path)
    lines = (whole.path / "trace.jsonl").read_bytes().splitlines(keepends=True)
    assert set(expected) == {"draft", "draft#2", "review", "review#2", "inside", "last"}
    for end in range(1, len(lines)):
        shutil.rmtree(whole.path / "nodes", ignore_errors=True)
        (whole.path / "trace.jsonl").write_bytes(b"".join(lines[:end]))
        assert asyncio.run(app.resume(whole.path, on_doubt="retry")).status == "completed"
        assert shown(whole.path) == expected, f"cut after {end} records"

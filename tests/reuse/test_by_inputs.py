from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pflow import StepContext, app, flow_safe, node
from pflow.model.workflow import Edge, Node, Workflow
from pflow.nodes.type import NodeType, describe_type

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


@flow_safe
@node("t/shout", version="1", effect="pure", shared=("loud",))
async def shout(step: StepContext, text: str) -> dict[str, Any]:
    CALLS.append(step.node_id)
    step.shared["loud"] = text.upper()
    return {"text": text.upper(), "raw": text.encode()}


@node("t/act", version="1")
async def act(step: StepContext, text: str = "") -> dict[str, Any]:
    CALLS.append(step.node_id)
    return {"text": text, "loud": step.shared.get("loud")}


def versioned(version: str) -> NodeType:
    made = describe_type(shout, trusted=True)
    made.version = version
    return made


def flow(text: str = "{{x}}", name: str = "w") -> Workflow:
    nodes = (Node("p", "t/shout", {"text": text}), Node("a", "t/act", {"text": "{{p.text}}"}))
    return Workflow(name, "test", nodes, (Edge("p", "a"),))


def run(
    workflow: Workflow, kind: NodeType | None = None, inputs: dict[str, Any] | None = None, **options: Any
) -> app.Result:
    types = (kind or describe_type(shout, trusted=True), act)
    given = {"x": "hi", "unused": 0} | (inputs or {})
    return asyncio.run(app.run(workflow, given, types=types, **{"use_cache": True, **options}))


def test_a_hit_enters_no_exec_and_restores_outputs_and_shared() -> None:
    first = run(flow())
    assert CALLS == ["p", "a"]
    second = run(flow())
    assert CALLS == ["p", "a", "a"]  # what is impure is never cached by inputs
    assert second.outputs == first.outputs and second.outputs["a"]["loud"] == "HI"
    assert second.visits["p#1"].reused and second.visits["p#1"].outputs["raw"] == b"hi"


@flow_safe
@node("t/hear", version="1", effect="pure", shared=("loud",))
async def hear(step: StepContext) -> dict[str, Any]:
    return {"loud": step.shared.get("loud")}


def test_a_shared_value_that_a_type_declares_is_a_part_of_what_it_was_given() -> None:
    nodes = (Node("p", "t/shout", {"text": "{{x}}"}), Node("h", "t/hear"))
    both = Workflow("w", "test", nodes, (Edge("p", "h"),))
    types = tuple(describe_type(kind, trusted=True) for kind in (shout, hear))
    made = [app.run_sync(both, {"x": x}, types=types, use_cache=True).outputs["h"] for x in ("hi", "ho", "hi")]
    assert made == [{"loud": "HI"}, {"loud": "HO"}, {"loud": "HI"}]


def test_any_run_of_any_flow_shares_what_is_the_same() -> None:
    run(flow())
    run(flow("{{y}}", "another"), inputs={"y": "hi"})
    assert CALLS == ["p", "a", "a"]


def test_off_unless_asked_for() -> None:
    run(flow())
    run(flow(), use_cache=False)
    assert CALLS.count("p") == 2


def test_what_misses_and_what_does_not() -> None:
    run(flow())
    run(flow(), inputs={"unused": 1})
    assert CALLS.count("p") == 1
    run(flow(), inputs={"x": "other"})
    assert CALLS.count("p") == 2
    run(flow("{{x}}!"))
    assert CALLS.count("p") == 3
    run(flow(), versioned("2"))
    assert CALLS.count("p") == 4


def test_an_edit_of_a_local_source_misses(tmp_path: Path) -> None:
    folder = tmp_path / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    source = (
        "from pflow import node, flow_safe\n@flow_safe\n@node('mine/x')\ndef x(text: str) -> str:\n    return text\n"
    )
    (folder / "mine.py").write_text(source)
    local = Workflow("w", "test", (Node("m", "mine/x", {"text": "x"}),), file=str(tmp_path / "w.x"))
    outcomes = [run(local).visits["m#1"].reused for _ in range(3)]
    assert outcomes == [False, False, True] or outcomes == [False, True, True]  # tried first, then believed
    (folder / "mine.py").write_text(source + "#\n")
    assert not run(local).visits["m#1"].reused


@flow_safe
@node("t/lines", version="1", effect="pure", reads=("path",))
def lines(path: str, text: str = "") -> int:
    CALLS.append("lines")
    return len(Path(path).read_text().splitlines())


def test_of_files_only_those_count_that_a_type_says_it_reads(tmp_path: Path) -> None:
    """In common no text is taken for a file, since flows in other folders have others of that name."""
    (tmp_path / "said").write_text("1")
    (tmp_path / "text").write_text("1")
    params = {"path": str(tmp_path / "said"), "text": str(tmp_path / "text")}
    reading = Workflow("w", "test", (Node("l", "t/lines", params),))

    def calls() -> int:
        CALLS.clear()
        asyncio.run(app.run(reading, types=(describe_type(lines, trusted=True),), use_cache=True))
        return len(CALLS)

    assert calls() == 1
    (tmp_path / "text").write_text("2")
    assert calls() == 0
    (tmp_path / "said").write_text("2")
    assert calls() == 1
    (tmp_path / "said").write_text("1")
    assert calls() == 0


def test_reset_drops_the_entries_of_the_flow_at_hand_only(home: Path) -> None:
    run(flow())
    run(flow("else", "another"))
    CALLS.clear()
    run(flow(), reset_cache=True)
    run(flow("else", "another"))
    assert CALLS.count("p") == 1


def test_entries_are_private_and_a_damaged_one_is_a_miss(home: Path) -> None:
    before = os.umask(0)
    try:
        run(flow())
    finally:
        os.umask(before)
    (entry,) = (home / "cache").glob("*.json")
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert json.loads(entry.read_bytes())["outputs"]["raw"]["__type"] == "base64"
    for damage in (b"", b"{", b"[]", b'{"outputs": 1}', b'{"outputs": {}, "writes": []}', b"\xff"):
        entry.write_bytes(damage)
        assert run(flow()).success
    CALLS.clear()
    assert run(flow()).visits["p#1"].reused


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(home: Path) -> None:
    home.mkdir()
    (home / "cache").write_text("in the way")
    assert run(flow()).success and run(flow()).success

"""pflow JSON from file to result."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pflow import NodeError, StepContext, WorkflowError, app, node

CALLS: list[Any] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    CALLS.clear()


@node("t/work")
async def work(step: StepContext, value: Any = None, fail_at: Any = None) -> dict[str, Any]:
    CALLS.append(value)
    if value == fail_at:
        raise NodeError(f"cannot do {value}")
    return {"value": value}


def run(tmp_path: Path, document: dict[str, Any], inputs: dict[str, Any] | None = None, **options: Any) -> app.Result:
    path = tmp_path / "flow.json"
    path.write_text(json.dumps(document))
    return asyncio.run(app.run(path, inputs, types=(work,), workspace=tmp_path, **options))


def item(**batch: Any) -> dict[str, Any]:
    return {"id": "b", "type": "t/work", "params": {"value": "${item}", "fail_at": 3}, "batch": batch}


def test_a_batch_keeps_the_order_of_its_items(tmp_path: Path) -> None:
    for parallel in (False, True):
        result = run(tmp_path, {"nodes": [item(items=[5, 1, 4], parallel=parallel)]})
        made = result.outputs["b"]
        assert made["results"] == [{"item": n, "value": n} for n in (5, 1, 4)]
        assert (made["count"], made["success_count"], made["error_count"], made["errors"]) == (3, 3, 0, None)


def test_a_batch_stops_at_the_first_failure_or_goes_on(tmp_path: Path) -> None:
    failed = run(tmp_path, {"nodes": [item(items=[1, 3, 4])]})
    assert failed.status == "failed" and CALLS == [1, 3] and failed.error is not None
    assert failed.error.message == "cannot do 3" and failed.error.chain == ("b#1", "b#1/1/b#1")
    CALLS.clear()
    done = run(tmp_path, {"nodes": [item(items=[1, 3, 4], error_handling="continue")]})
    made = done.outputs["b"]
    assert done.success and CALLS == [1, 3, 4] and made["error_count"] == 1
    assert made["results"][1] == {"item": 3, "error": "cannot do 3"}
    assert made["errors"] == [{"index": 1, "item": 3, "error": "cannot do 3", "kind": "node"}]


def test_a_resumed_batch_goes_on_with_the_items_that_are_left(tmp_path: Path) -> None:
    from pflow.model.records import Ended

    paused = run(tmp_path, {"nodes": [item(items=[1, 2, 3, 4])]})
    assert CALLS == [1, 2, 3] and paused.path is not None
    done = asyncio.run(app.resume(paused.run_id, types=(work,)))
    assert done.status == "failed" and CALLS == [1, 2, 3, 3]
    from pflow.storage.journal import read

    ends = [record.visit for record in read(paused.path / "trace.jsonl") if isinstance(record, Ended)]
    assert ends.count("b#1/0/b#1") == 1 and ends.count("b#1/2/b#1") == 2


def test_items_may_be_a_template_or_json_text_and_nothing_else(tmp_path: Path) -> None:
    source = {"id": "a", "type": "t/work", "params": {"value": "${x}"}}
    for given, good in (([1, 2], True), ("[1, 2]", True), ({"a": 1}, False), ("text", False), (5, False)):
        document = {"nodes": [source, item(items="${a.value}", error_handling="continue")], "inputs": {"x": {}}}
        result = run(tmp_path, document, {"x": given})
        assert result.success == good
        if not good:
            assert result.error is not None and "needs a list" in result.error.message


def test_the_index_is_known_inside_a_batch_even_in_an_index(tmp_path: Path) -> None:
    names = {"id": "names", "type": "t/work", "params": {"value": ["x", "y"]}}
    batch = {
        "id": "b",
        "type": "t/work",
        "params": {"value": "${__index__}: ${names.value[${__index__}]}"},
        "batch": {"items": [7, 8]},
    }
    result = run(tmp_path, {"nodes": [names, batch]})
    assert [one["value"] for one in result.outputs["b"]["results"]] == ["0: x", "1: y"]


def test_error_edges_are_taken_when_a_node_fails(tmp_path: Path) -> None:
    nodes = [{"id": name, "type": "t/work", "params": {"value": name, "fail_at": "a"}} for name in "abc"]
    edges = [{"from": "a", "to": "b"}, {"from": "a", "to": "c", "action": "error"}]
    result = run(tmp_path, {"nodes": nodes, "edges": edges})
    assert result.success and CALLS == ["a", "c"]
    assert run(tmp_path, {"nodes": nodes, "edges": edges[:1]}).status == "failed"


def test_outputs_inputs_and_defaults(tmp_path: Path) -> None:
    document = {
        "inputs": {"n": {"type": "number", "default": 2}, "who": {"type": "string"}},
        "nodes": [{"id": "a", "type": "echo", "params": {"text": "${who} ", "count": "${n}"}}],
        "outputs": {"said": {"source": "${a.text}"}},
    }
    assert run(tmp_path, document, {"who": "x"}).outputs == {"said": "x  x "}
    with pytest.raises(WorkflowError, match='"who" is missing'):
        run(tmp_path, document)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"value": "${nope.x}"}, "nope"),
        ({"value": "${a.stdoot}"}, r'has no output "stdoot"\n  hint: did you mean "stdout"'),
        ({"value": "${b.value}"}, "does not run before"),
        ({"valeu": 1}, 'did you mean "value"'),
    ],
)
def test_a_reference_that_is_shown_to_be_wrong_is_told_before_anything_runs(
    tmp_path: Path, params: Any, said: str
) -> None:
    nodes = [
        {"id": "a", "type": "shell", "params": {"command": "echo x"}},
        {"id": "b", "type": "t/work", "params": params},
    ]
    with pytest.raises(WorkflowError, match=said):
        run(tmp_path, {"nodes": nodes, "inputs": {"x": {"default": 1}}})


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("${a.stdoot}", r'has no output "stdoot"\n  hint: did you mean "stdout"'),
        ("a.status", 'has no output "status"'),
        ("${nope.x}", 'there is no "nope"'),
        ("${all.reslts}", 'did you mean "results"'),
    ],
)
def test_an_output_whose_source_is_shown_to_be_wrong_is_told_before_anything_runs(
    tmp_path: Path, source: str, said: str
) -> None:
    nodes = [
        {"id": "a", "type": "shell", "params": {"command": "touch ran"}},
        {"id": "all", "type": "echo", "params": {"text": "${item}"}, "batch": {"items": [1, 2]}},
    ]
    with pytest.raises(WorkflowError, match=said):
        run(tmp_path, {"nodes": nodes, "inputs": {"x": {"default": 1}}, "outputs": {"o": {"source": source}}})
    assert not list(tmp_path.rglob("ran"))


@pytest.mark.parametrize("source", ["${a.stdout}", "a.exit_code", "${x}", "${all.results[0].text}", "${a}"])
def test_an_output_whose_source_may_be_right_is_taken(tmp_path: Path, source: str) -> None:
    nodes = [
        {"id": "a", "type": "shell", "params": {"command": "echo x"}},
        {"id": "all", "type": "echo", "params": {"text": "${item}"}, "batch": {"items": [1, 2]}},
    ]
    document = {"nodes": nodes, "inputs": {"x": {"default": 1}}, "outputs": {"o": {"source": source}}}
    assert run(tmp_path, document).status == "completed"


def test_permissive_keeps_what_cannot_be_resolved(tmp_path: Path) -> None:
    nodes = [{"id": "a", "type": "t/work", "params": {"value": "${x.y}"}}]
    document = {"nodes": nodes, "inputs": {"x": {"default": {}}}}
    assert run(tmp_path, document).status == "failed"
    assert run(tmp_path, {**document, "template_resolution_mode": "permissive"}).outputs["a"] == {"value": "${x.y}"}


def test_a_workflow_given_inline_reads_its_own_templates(tmp_path: Path) -> None:
    inner = {
        "inputs": {"t": {}},
        "nodes": [{"id": "i", "type": "echo", "params": {"text": "${t}!"}}],
        "outputs": {"o": {"source": "${i.text}"}},
    }
    node = {
        "id": "s",
        "type": "workflow",
        "params": {"workflow_ir": inner, "param_mapping": {"t": "${x}"}, "output_mapping": {"o": "said"}},
    }
    result = run(tmp_path, {"nodes": [node], "inputs": {"x": {}}}, {"x": "hey"})
    assert result.outputs["s"] == {"said": "hey!"}


def test_a_parallel_batch_over_nothing_is_done_at_once(tmp_path: Path) -> None:
    batch = {"items": [], "parallel": True}
    nodes = [{"id": "each", "type": "echo", "params": {"text": "${item}"}, "batch": batch}]
    (tmp_path / "w.json").write_text(json.dumps({"nodes": nodes}))
    done = app.run_sync(tmp_path / "w.json")
    assert done.status == "completed" and done.outputs["each"]["count"] == 0 and done.outputs["each"]["results"] == []

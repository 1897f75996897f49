"""``validate`` and ``plan``: what is wrong, and what would run and why."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Pflow

POLICIES = """\
flow: {name: policies, input: {fast: true, items: [1, 2]}, policy: {maxConcurrency: 3}}
nodes:
  - id: check
    type: condition.equals
    input: {left: "{{flow.input.fast}}", right: true}
  - id: risky
    type: shell
    when: {equals: {var: check.value, value: true}}
    policy: {retry: {maxAttempts: 3, backoffMs: 100}, timeoutMs: 500, continueOnError: true}
    input: {command: "true"}
  - id: slow_way
    type: echo
    when: {equals: {var: flow.input.fast, value: false}}
  - {id: each, type: control.foreach, input: {items: "{{flow.input.items}}", body: [inner]}}
  - {id: inner, type: shell, input: {command: "echo {{item}}"}}
edges:
  - {from: check, to: risky}
  - {from: check, to: slow_way}
"""


def test_a_valid_workflow(pflow: Pflow, greeting: str) -> None:
    assert pflow("validate", greeting)[:2] == (0, "greeting.yaml is valid: FlowSpec, 2 nodes\n")
    assert pflow("validate", greeting, "--json").json == {"valid": True, "problems": []}
    assert pflow("validate", greeting, "-q").out == ""


def test_a_plan_tells_order_effects_and_reasons(pflow: Pflow, here: Path) -> None:
    (here / "p.yaml").write_text(POLICIES)
    made = pflow("plan", "p.yaml", "--json").json
    assert made["problems"] == [] and made["width"] == 3
    rows = {row["id"]: row for row in made["nodes"]}
    assert set(made["nodes"][0]) >= {"id", "type", "params", "exec", "effect", "cached", "reason"}
    assert list(rows) == ["check", "each", "inner", "risky", "slow_way"]
    assert rows["check"]["effect"] == "pure" and rows["risky"]["effect"] == "impure"
    assert rows["risky"]["exec"] == {"retries": 2, "delay": 0.1, "timeout": 0.5, "continue_on_error": True}
    assert rows["risky"]["when"] == "check.value == true" and rows["risky"]["after"] == ["check"]
    assert rows["risky"]["reason"].startswith("would run if its guard holds: ")
    assert rows["slow_way"]["reason"] == "would be skipped: its guard does not hold"
    assert rows["inner"]["within"] == "each" and rows["each"]["effect"] == "impure"
    assert not any(row["cached"] for row in rows.values())
    assert pflow("runs", "--json").json == [], "nothing was run"


def test_a_plan_depends_on_inputs(pflow: Pflow, here: Path) -> None:
    (here / "p.yaml").write_text(POLICIES)
    rows = {row["id"]: row for row in pflow("plan", "p.yaml", "fast=false", "--json").json["nodes"]}
    assert rows["slow_way"]["reason"].startswith("would run: ")


def test_a_plan_for_people(pflow: Pflow, here: Path) -> None:
    (here / "p.yaml").write_text(POLICIES)
    text = pflow("plan", "p.yaml", "--jobs", "1").out
    assert "policies: FlowSpec, 5 nodes, one at a time" in text
    assert "when: check.value == true" in text and "tries: up to 2 more, 0.1 s in between" in text
    assert "up to 3 at once" in pflow("plan", "p.yaml").out


def test_a_workflow_that_is_a_plan_in_json(pflow: Pflow, here: Path) -> None:
    """FlowSpec written as JSON is FlowSpec."""
    node = {"id": "a", "type": "constant", "input": {"value": {"k": [1, None]}}}
    (here / "w.json").write_text(json.dumps({"flow": {"name": "w"}, "nodes": [node], "edges": []}))
    assert pflow("plan", "w.json", "--json").json["nodes"][0]["params"] == {"value": {"k": [1, None]}}
    assert json.loads(pflow("w.json").out) == {"k": [1, None]}


def test_a_node_pack_that_is_not_installed_is_a_warning(pflow: Pflow, here: Path) -> None:
    (here / "packs.yaml").write_text(
        "flow: {name: p, nodePacks: [core, nowhere]}\nnodes: [{id: a, type: echo, input: {text: x}}]\nedges: []\n"
    )
    said = pflow("packs.yaml")
    assert said.out == "x\n" and 'node pack "nowhere" is not installed' in said.err and '"core"' not in said.err
    assert [one["warning"] for one in pflow("validate", "packs.yaml", "--json").json["problems"]] == [True]

"""The patterns of the specification, as they stand in examples, with agents that exist."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import pflow
from tests.agents.world import World

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "agents"


@pytest.fixture
def project(world: World) -> Path:
    """A copy of the examples, to be changed; pflow is started elsewhere."""
    shutil.copytree(EXAMPLES, world.folder / "examples", ignore=shutil.ignore_patterns("__pycache__", ".dotrunner"))
    return world.folder / "examples"


def ran(path: Path, **inputs: Any) -> pflow.Result:
    result = pflow.run_sync(path, inputs)
    assert result.status == "completed", result.error
    return result


def path_of(result: pflow.Result) -> list[str]:
    return [visit for visit in result.visits if "/" not in visit]


def test_evidence_is_collected_and_scored(project: Path) -> None:
    made = ran(project / "evidence.yaml").outputs
    assert made["gather-evidence"]["test_evidence"].startswith("2 tests: test_words_are_joined")
    assert made["evaluate-evidence"]["evidence_score"] == 100
    (project / "sample" / "test_slug.py").unlink()
    scored = ran(project / "evidence.yaml").outputs["evaluate-evidence"]
    assert scored["evidence_score"] == 67 and scored["missing_evidence"] == ["Tests"]


def test_a_decision_sees_what_all_tasks_found(project: Path) -> None:
    assert ran(project / "decision.yaml").outputs["synthesize"]["text"] == "Merge: all 4 checks passed"
    (project / "sample" / "test_slug.py").unlink()
    assert ran(project / "decision.yaml").outputs["synthesize"]["text"] == "Do not merge: check_tests"


def test_the_quality_gate_opens_only_for_quality(project: Path) -> None:
    assert path_of(ran(project / "quality-gate.yaml"))[-1] == "continue#1"
    with (project / "sample" / "slug.py").open("a") as file:
        file.write("\n\ndef bad(text):\n    return eval(text)\n")
    gate = ran(project / "quality-gate.yaml")
    assert path_of(gate) == ["run-checks#1", "evaluate#1", "remediate#1"]
    assert len(gate.outputs["run-checks"]["blocking_issues"]) == 2


def test_validations_run_at_once_and_route_together(project: Path) -> None:
    assert path_of(ran(project / "validation.yaml"))[-1] == "release#1"
    (project / "sample" / "slug.py").write_text("def slug(text):\n    return eval(text)\n")
    result = ran(project / "validation.yaml")
    assert path_of(result) == ["parallel-validation#1", "repair#1"]
    made = result.outputs["parallel-validation"]
    assert made["all_passed"] is False and made["failed_checks"] == ["type_check", "security_scan"]
    assert "security_scan: FAILED" in made["validation_report"]


def test_typed_answers_decide_the_way(project: Path) -> None:
    assert path_of(ran(project / "test-evaluation.yaml"))[-1] == "deploy#1"
    (project / "sample" / "new.py").write_text("")
    result = ran(project / "test-evaluation.yaml")
    assert path_of(result)[-1] == "improve-tests#1"
    assert result.outputs["test-evaluation"]["missing_areas"] == ["new.py"]


def test_a_failure_is_diagnosed_and_fixed(project: Path) -> None:
    result = ran(project / "self-healing.yaml")
    assert path_of(result) == ["attempt#1", "diagnose#1", "remediate#1", "attempt#2", "done#1"]
    assert "config.json is missing" in result.outputs["diagnose"]["text"]

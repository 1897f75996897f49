"""Whoever uses no model pays for none."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"httpx", "llm", "openai", "pydantic", "xllamacpp", "genai_prices"}
RUN = """
import sys, pflow
from pflow.nodes.registry import Registry
{run}
loaded = {{name.partition(".")[0] for name in sys.modules}} & {heavy}
print(sorted(loaded), sorted(name for name in sys.modules if name.startswith("pflow.llm.")))
"""
FLOW = """
from pflow.model.workflow import Node, Workflow
result = pflow.run_sync(Workflow("w", "test", (Node("a", "echo", {"text": "hi"}),)), keep=False)
assert result.success
assert Registry().get("llm").name == "llm"
"""


def loaded(run: str) -> str:
    code = RUN.format(run=run, heavy=HEAVY)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_pflow_and_running_without_models_imports_none() -> None:
    budget_alone = "[] ['pflow.llm.budget']"  # the limit that a run is given, and nothing that calls
    assert loaded("") in ("[] []", budget_alone)
    assert loaded(FLOW) == budget_alone


def test_finding_a_scripted_or_remote_model_imports_no_backend() -> None:
    assert loaded("from pflow.llm.find import find; find('http://localhost/v1#m')").startswith("[] ")

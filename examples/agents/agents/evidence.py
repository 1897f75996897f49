"""Collects, scores and sums up evidence about a Python file.

An agent reads one JSON object from stdin and answers on stdout, in JSON or in lines of "name: value".
"""

import ast
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def functions(path: Path) -> list[ast.FunctionDef]:
    if not path.exists():
        return []
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]


def check_tests(path: Path) -> str:
    names = [one.name for one in functions(path.with_name(f"test_{path.name}")) if one.name.startswith("test_")]
    return f"{len(names)} tests: {', '.join(names)}" if names else ""


def check_docs(path: Path) -> str:
    missing = [one.name for one in functions(path) if not ast.get_docstring(one)]
    return "" if missing else "every function has a docstring"


def check_types(path: Path) -> str:
    return "every function says what it returns" if all(one.returns for one in functions(path)) else ""


def check_security(path: Path) -> str:
    return "" if re.search(r"\b(eval|exec|subprocess|os\.system)\b", path.read_text()) else "nothing is executed"


def file_in(asked: dict) -> Path:
    """The file that is meant: a word of the prompt, or what the workflow calls the implementation."""
    words = [*asked["prompt"].split(), str(asked["inputs"].get("implementation", ""))]
    return next(ROOT / word for word in words if word.endswith(".py"))


def collect(asked: dict) -> str:
    path = file_in(asked)
    check = globals().get(asked["prompt"].strip())
    if check is not None:  # one of several tasks
        found = check(path)
        return f"{found or 'nothing was found'}\npassed: {'yes' if found else 'no'}"
    evidence = {"test_evidence": check_tests, "documentation_evidence": check_docs, "type_check_evidence": check_types}
    return json.dumps({name: check(path) for name, check in evidence.items()})


def evaluate(asked: dict) -> str:
    found = dict(line.split(":", 1) for line in asked["prompt"].splitlines()[1:] if ":" in line)
    missing = [name.strip() for name, text in found.items() if not text.strip()]
    score = round(100 * (len(found) - len(missing)) / len(found))
    return f"evidence_score: {score}\nmissing_evidence: {json.dumps(missing)}"


def synthesize(asked: dict) -> str:
    """Without a prompt: the workflow's context is in the inputs."""
    results = asked["inputs"]["results"]
    failed = [one["task"] for one in results if not one["passed"]]
    return f"Do not merge: {', '.join(failed)}" if failed else f"Merge: all {len(results)} checks passed"


if __name__ == "__main__":
    question = json.load(sys.stdin)
    answer = {"evidence-collector": collect, "evidence-evaluator": evaluate, "evidence-synthesizer": synthesize}
    print(answer[question["agent"]](question))

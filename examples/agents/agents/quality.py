"""Checks a Python file, and judges what the checks found."""

import json
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 120


def lint_check(text: str) -> list[str]:
    return [f"line {n} is too long" for n, line in enumerate(text.splitlines(), 1) if len(line) > LONGEST]


def type_check(text: str) -> list[str]:
    return [f"{name} says not what it returns" for name in re.findall(r"def (\w+)\([^)]*\):", text)]


def security_scan(text: str) -> list[str]:
    return [f"{word} is used" for word in ("eval(", "exec(", "os.system(") if word in text]


def performance_test(text: str) -> list[str]:
    began = time.perf_counter()
    compile(text, "sample", "exec")
    return [] if time.perf_counter() - began < 60 else ["it takes a minute to compile"]


CHECKS = (lint_check, type_check, security_scan, performance_test)


def validate(asked: dict) -> str:
    """One check, named by its task; a check that fails says so with its exit code."""
    check = next(one for one in CHECKS if one.__name__ == asked["prompt"].strip())
    issues = check((ROOT / asked["inputs"]["code"]).read_text())
    if issues:
        sys.exit("; ".join(issues))
    return "no issues"


def check_all(asked: dict) -> str:
    path = next(ROOT / word for word in asked["prompt"].split() if word.endswith(".py"))
    issues = [issue for check in CHECKS for issue in check(path.read_text())]
    return json.dumps({"quality_score": 100 - 10 * len(issues), "blocking_issues": issues})


def judge(asked: dict) -> str:
    score, issues = re.search(r"Score: (\d+), Issues: (.*)", asked["prompt"]).groups()
    return f"proceed: {'yes' if int(score) >= 80 and not json.loads(issues) else 'no'}"


def coverage(asked: dict) -> str:
    folder = next(ROOT / word for word in asked["prompt"].split() if (ROOT / word).is_dir())
    files = [path for path in folder.glob("*.py") if not path.name.startswith("test_")]
    missing = [path.name for path in files if not path.with_name(f"test_{path.name}").exists()]
    percent = round(100 * (len(files) - len(missing)) / len(files))
    answer = {"tests_complete": "no" if missing else "yes", "coverage_percent": percent, "missing_areas": missing}
    return f"I looked at {len(files)} files.\n\n```json\n{json.dumps(answer)}\n```"


if __name__ == "__main__":
    question = json.load(sys.stdin)
    answer = {
        "multi-validator": validate,
        "quality-checker": check_all,
        "quality-evaluator": judge,
        "test-coverage": coverage,
    }
    print(answer[question["agent"]](question))

"""An executor that fails until its cause is fixed, a diagnostician that finds the cause, and a fixer."""

import json
import sys
from pathlib import Path

NEEDED = Path("config.json")  # where pflow was started


def execute(asked: dict) -> str:
    if not NEEDED.exists():
        sys.exit(f"{NEEDED} is missing")
    return "deployed"


def diagnose(asked: dict) -> str:
    """Asked without a prompt: what happened so far is in the inputs, the failure of a node included."""
    return f"cause: {asked['inputs']['attempt']['error']['message']}"


def fix(asked: dict) -> str:
    NEEDED.write_text("{}")
    return f"made {NEEDED}"


if __name__ == "__main__":
    question = json.load(sys.stdin)
    print({"executor": execute, "diagnostician": diagnose, "fixer": fix}[question["agent"]](question))

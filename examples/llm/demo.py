"""A model on this machine, with no key and no network: its answer fits a schema, and is free the second time.

`make demo-llm` runs this.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pflow

WORKFLOW = Path(__file__).parent / "review.yaml"


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def show(envelope: pflow.Envelope) -> None:
    """Print what the model says while it says it."""
    if envelope.event.type == "llm:text":
        print(envelope.event.data["text"], end="", flush=True)


def told(usage: dict[str, Any]) -> str:
    tokens = f"{usage.get('input_tokens', 0)} tokens in, {usage.get('output_tokens', 0)} out"
    return f"{usage.get('model_calls', 0)} calls of a model, {tokens}, ${usage.get('cost_usd', 0):.2f}"


def main() -> int:
    with tempfile.TemporaryDirectory() as home:
        os.environ["PFLOW_HOME"] = home
        say("1. The model answers, piece by piece, and can only answer what the schema allows.")
        first = pflow.run_sync(WORKFLOW, on_event=show, iterate=True)
        if first.error is not None:
            print(f"{first.error.message}\n  hint: {first.error.hint}")
            return 1
        print(f"\n\n{first.outputs['report']['text']}\n{told(first.usage)}")
        say("2. The same file again, in another process: nothing changed, so nobody is asked.")
        print(f"$ pflow {WORKFLOW.name}", flush=True)
        code = subprocess.run([sys.executable, "-m", "pflow", str(WORKFLOW)], check=False).returncode
        second = pflow.run_sync(WORKFLOW, iterate=True)
        print(told(second.usage))
        return code or int(second.usage != {})


if __name__ == "__main__":
    sys.exit(main())

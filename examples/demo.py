"""What pflow is for: run a workflow, kill it with -9 in the middle, resume it. `make demo` runs this."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

WORKFLOW = Path(__file__).parent / "release.yaml"


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def pflow(*words: str) -> int:
    """Run a command and show it."""
    print(f"$ pflow {' '.join(words)}", flush=True)
    return subprocess.run([sys.executable, "-m", "pflow", *words], check=False).returncode


def killed(home: Path) -> None:
    """Start the workflow in a process group of its own, and kill it while it publishes."""
    print(f"$ pflow {WORKFLOW.name} version=2.0 &", flush=True)
    command = [sys.executable, "-m", "pflow", str(WORKFLOW), "version=2.0"]
    process = subprocess.Popen(command, start_new_session=True)
    while process.poll() is None:
        journals = list(home.glob("runs/*/trace.jsonl"))
        if journals and b'"k":"began","t"' in (text := journals[0].read_bytes()) and b'"publish#1"' in text:
            break
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    print(f"$ kill -9 {process.pid}", flush=True)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["PFLOW_HOME"] = str(home)
        say("1. A workflow runs, and is killed with -9 while it publishes.")
        killed(home)
        run_id = next(home.glob("runs/*")).name
        say("2. What the journal says: the builds are done, the publishing may have happened.")
        pflow("status", run_id)
        say("3. Resumed without a word, it asks before it publishes again (here nobody can answer, so it waits).")
        subprocess.run([sys.executable, "-m", "pflow", "resume", run_id], check=False, stdin=subprocess.DEVNULL)
        say("4. Told to go on, it publishes and reports; the builds are not repeated.")
        code = pflow("resume", run_id, "--on-doubt", "retry")
        say("5. Resumed once more, there is nothing left to do.")
        return code or pflow("resume", run_id)


if __name__ == "__main__":
    sys.exit(main())

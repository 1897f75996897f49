"""Commands, run by ``sh -c`` in a process group of their own."""

from __future__ import annotations

from typing import Any

from pflow.nodes import NodeError, StepContext, node, to_text
from pflow.nodes.process.run import run_process


@node(
    "shell",
    version="1",
    main_in="command",
    command="command",
    main_out="stdout",
    outputs=("stdout", "stderr", "exit_code", "stdout_file", "stderr_file"),
    examples=[{"command": "echo hello"}],
)
async def shell(
    step: StepContext,
    command: str,
    stdin: Any = None,
    cwd: str | None = None,
    env: dict[str, Any] | None = None,
    timeout: float | None = 30,
    ignore_errors: bool = False,
    strip_newline: bool = True,
) -> dict[str, Any]:
    """Run a command; a dict or list on ``stdin`` is sent as JSON, and an exit code other than 0 is a failure."""
    if not command.strip():
        raise NodeError("the command is empty", "give a command", kind="validation")
    if "\0" in command:
        raise NodeError("the command contains a NUL character", kind="validation")
    folder = step.workspace / cwd if cwd else step.workspace
    if not folder.is_dir():
        raise NodeError(f"there is no folder {folder}", "cwd starts from where pflow was started", kind="validation")
    ended = await run_process(
        step,
        ["sh", "-c", command],
        data=b"" if stdin is None else _as_bytes(stdin),
        cwd=folder,
        env={key: to_text(value) for key, value in (env or {}).items()},
        timeout=timeout,
    )
    code, out, err = ended
    made = {**out.result("stdout", strip_newline), **err.result("stderr", strip_newline), "exit_code": code}
    if code and not ignore_errors:
        said = (made["stderr"] or made["stdout"]).strip().rsplit("\n", 1)[-1][:200]
        raise NodeError(
            f"exit code {code}" + (f": {said}" if said else ""), details={**ended.shown(), "exit_code": code}
        )
    return made


def _as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else to_text(value).encode()

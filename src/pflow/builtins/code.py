"""Python of the user's own, in a process of its own.

Looking any type up may import this module, so it imports what only a run needs where it is needed.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from pflow.nodes import NodeError, StepContext, node
from pflow.nodes.process.run import Exit, SidePipe, run_process

LARGEST = 100_000_000  # bytes of a result, as JSON
# Packages whose name on the index is not the name they are imported by.
_PACKAGES = {
    "PIL": "Pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}


@node(
    "code",
    version="1",
    main_in="input",
    main_out="result",
    literal=("code",),
    outputs=("result", "stdout", "stderr", "stdout_file", "stderr_file"),
    examples=[
        {"code": "result = input.upper()", "input": "hello"},
        {"code": "result = [n * by for n in numbers]", "inputs": {"numbers": [1, 2], "by": 10}},
    ],
)
async def code(
    step: StepContext,
    code: str,
    inputs: dict[str, Any] | None = None,
    input: Any = None,
    timeout: float | None = 30,
    requires: list[str] | None = None,
) -> dict[str, Any]:
    """Run Python: each of ``inputs`` is a variable, ``input`` is another, and the variable ``result`` is the result.

    The code runs where pflow was started, in a process of its own. No templates are filled in inside it: hand values
    over with ``inputs``.
    """
    if not code.strip():
        raise NodeError("the code is empty", "give Python code that sets result", kind="validation")
    if timeout is not None and not timeout > 0:
        raise NodeError(f"timeout is {timeout:g}", "give seconds above 0", kind="validation")
    _check_requires(requires or [])
    variables = _variables(inputs or {}, input)
    request = {"code": _at_the_margin(code), "variables": variables, "requires": requires or []}
    answer = SidePipe(LARGEST)
    # -P keeps this folder off the child's path, where our http.py and code.py would stand for Python's own.
    child = [sys.executable, "-X", "utf8", "-P", str(Path(__file__).with_name("code_child.py"))]
    ended = await run_process(step, child, data=_packed(request), timeout=timeout, answer=answer)
    said = _answered(answer, ended)
    _check(said, variables, ended)
    if said.get("unset"):
        step.log.info("the code set no variable named result, so the result is null")
    made = {**ended.out.result("stdout", True), **ended.err.result("stderr", True)}
    return {"result": said["result"], **made}


def _variables(inputs: dict[str, Any], value: Any) -> dict[str, Any]:
    import keyword

    for name in inputs:
        if not name.isidentifier() or keyword.iskeyword(name):
            hint = "inputs are named as Python variables are: letters, digits and _"
            raise NodeError(f'"{name}" cannot be the name of a variable', hint, kind="validation")
        if name.startswith("__"):
            raise NodeError(f'"{name}" is a name that Python keeps for itself', "choose another", kind="validation")
    if value is not None and "input" in inputs:
        raise NodeError(
            '"input" is given twice: by itself and in inputs', "rename the one in inputs", kind="validation"
        )
    return {"input": value, **inputs}


def _check_requires(requires: list[str]) -> None:
    for name in requires:
        if not all(part.isidentifier() for part in name.split(".")):
            hint = "list modules as they are imported, without versions: [pandas, yaml]"
            raise NodeError(f'requires: "{name}" is no name of a module', hint, kind="validation")


def _at_the_margin(code: str) -> str:
    """Code that is indented as a whole, as documents tend to hold it, moved to where Python wants it."""
    import textwrap

    first = next(line for line in code.splitlines() if line.strip())
    return textwrap.dedent(code) if first[0].isspace() else code


def _packed(request: dict[str, Any]) -> bytes:
    import json

    from pflow.builtins.code_child import pack

    return json.dumps(pack(request)).encode()


def _answered(answer: SidePipe, ended: Exit) -> dict[str, Any]:
    import json

    from pflow.builtins.code_child import unpack

    try:
        made = json.loads(answer.data)
    except ValueError:
        made = None
    if isinstance(made, dict):
        return {key: unpack(value) for key, value in made.items()}
    how, hint = f"exit code {ended.code}", "result is read when the code ends by itself: os._exit() prevents it"
    if ended.code < 0:
        how, hint = f"signal {_signal_name(-ended.code)}", "it crashed, or ran out of memory"
    raise NodeError(f"the code's process ended with {how} before it gave a result", hint, details=ended.shown())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _check(said: dict[str, Any], variables: dict[str, Any], ended: Exit) -> None:
    """Raise what the child reports instead of a result."""
    if module := said.get("missing"):
        raise NodeError(
            f'the code requires the module "{module}", which is not installed', _install(module), "validation"
        )
    if unfit := said.get("unfit"):
        hint = "result may hold texts, numbers, booleans, None, bytes, lists and dicts of them: convert the rest"
        raise NodeError(unfit, hint, details=ended.shown())
    if error := said.get("error"):
        kind = "validation" if error.get("syntax") else "node"
        details = {"error_type": error["type"], "line": error["line"], "traceback": error["traceback"]}
        raise NodeError(_message(error), _hint(error, variables), kind, {**details, **ended.shown()})


def _message(error: dict[str, Any]) -> str:
    """What happened, then the lines of the code that led there, the innermost last."""
    head = f"{error['type']}: {error['message']}" if error["message"] else error["type"]
    return "\n".join([head, *(f"  {frame}" for frame in error["frames"])])


def _hint(error: dict[str, Any], variables: dict[str, Any]) -> str:
    if module := error.get("module"):
        return _install(module)
    if error.get("syntax") and any("${" in frame or "{{" in frame for frame in error["frames"]):
        return "templates are not filled in inside code: hand values over with inputs"
    if error.get("name"):
        return f"variables that were handed over: {', '.join(variables)}"
    return ""


def _install(module: str) -> str:
    top = module.partition(".")[0]
    return f"install it: {Path(sys.executable)} -m pip install {_PACKAGES.get(top, top)}"

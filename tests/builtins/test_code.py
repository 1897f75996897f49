from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.builtins.code_child import pack, unpack
from pflow.model.workflow import Node, Policy
from tests.builtins.running import NODE, VISIT, driven, failure, outputs
from tests.kernel.driving import RUN, Driven, workflow
from tests.limits import LIMIT, run_out

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("__type"), inner),
    max_leaves=10,
)


@given(plain)
def test_what_is_packed_is_unpacked_the_same(value: Any) -> None:
    assert unpack(pack(value)) == value


def test_inputs_are_variables_and_result_is_the_result() -> None:
    made = outputs(
        "code", code="result = [n * by for n in numbers] + [input]", inputs={"numbers": [1, 2], "by": 3}, input=4
    )
    assert made == {"result": [3, 6, 4], "stdout": "", "stderr": ""}


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("result = b'\\0\\xff'", b"\0\xff"),
        ("result = {'a': (1, 2), 3: None}", {"a": [1, 2], "3": None}),
        ("result = {'__type': 'base64', 'data': 'eA=='}", {"__type": "base64", "data": "eA=="}),
        ("result = 2 ** 70", 2**70),
        ("import math; result = math.inf", float("inf")),
        ("result = 'é\\n' * 100_000", "é\n" * 100_000),
        ("result = __name__", "__main__"),
        ("import sys; result = 1; sys.exit()", 1),
        ("\n    if True:\n        result = 1\n    ", 1),
        ("import http.client, code, ask_me\nresult = ask_me.it", 7),
    ],
)
def test_results(code: str, value: Any) -> None:
    Path("ask_me.py").write_text("it = 7")
    assert outputs("code", code=code)["result"] == value


def test_bytes_and_tags_go_in_as_they_are() -> None:
    value = {"__type": "x", "data": [b"\xff", None, 1.5]}
    assert outputs("code", code="result = input", input=value)["result"] == value


def test_prints_are_captured_and_disturb_nothing() -> None:
    code = "import os, sys\nprint('out é')\nprint('err', file=sys.stderr)\nos.system('echo from a child')\nresult = 1"
    made = outputs("code", code=code)
    assert made["result"] == 1 and made["stderr"] == "err"
    assert sorted(made["stdout"].splitlines()) == ["from a child", "out é"]


def test_no_result_is_null_and_the_log_says_so() -> None:
    run = driven("code", code="x = 1")
    assert run.outputs[NODE]["result"] is None
    assert "log" in run.kinds


def test_output_above_the_limit_goes_to_a_file() -> None:
    flow = workflow(Node(NODE, "code", {"code": "print('x' * 5000)"}))
    made = Driven(flow, output_limit=1000).drive().outputs[NODE]
    assert len(Path(made["stdout_file"]).read_text()) == 5001
    Path(made["stdout_file"]).unlink()


def test_the_code_has_no_stdin_but_its_environment_has_the_key() -> None:
    code = "import os, sys\nresult = [sys.stdin.read(), os.environ['PFLOW_IDEMPOTENCY_KEY'], os.getcwd(), sys.argv]"
    assert outputs("code", code=code)["result"] == ["", f"{RUN}:{VISIT}", str(Path.cwd()), ["<code>"]]


def test_templates_are_left_alone_inside_code() -> None:
    assert outputs("code", code="x = 1\nresult = f'{{x}} {x}'")["result"] == "{x} 1"


# ── failures ──


def test_an_exception_comes_with_the_lines_that_led_to_it() -> None:
    code = "def f(x):\n    return 1 / x\n\nprint('before')\nresult = f(0)\n"
    failed = failure("code", code=code)
    assert failed.kind == "node"
    assert failed.message.splitlines() == [
        "ZeroDivisionError: division by zero",
        "  line 5: result = f(0)",
        "  line 2, in f: return 1 / x",
    ]
    assert failed.details["line"] == 2 and failed.details["stdout"] == "before\n"
    assert "Traceback" in str(failed.details["traceback"]) and "code_child" not in str(failed.details["traceback"])


def test_an_error_inside_a_library_names_the_users_line() -> None:
    failed = failure("code", code="import json\n\njson.loads('{')")
    assert failed.message.startswith("JSONDecodeError: ") and failed.message.endswith("\n  line 3: json.loads('{')")


def test_a_syntax_error_will_not_change() -> None:
    failed = failure("code", code="x = 1\nresult = ${a.b}\n")
    assert failed.kind == "validation"
    assert failed.message == "SyntaxError: invalid syntax\n  line 2: result = ${a.b}"
    assert "inputs" in failed.hint


@pytest.mark.parametrize(
    ("code", "said", "hint"),
    [
        ("result = object()", "result is a object", "convert"),
        ("result = {'a': [1, {2}]}", "result['a'][1] is a set", "convert"),
        ("result = {(1, 2): 3}", "result is a tuple", "convert"),
        ("result = []; result.append(result)", "contains itself", "convert"),
        ("result = 10 ** 5000", "cannot be written as JSON", "convert"),
        ("result = missing", "NameError: name 'missing'", "input, given"),
        ("import no_such_module", "ModuleNotFoundError", "-m pip install no_such_module"),
        ("import sys; sys.exit(3)", "SystemExit: exit code 3\n  line 1", ""),
        ("import sys; sys.exit('no luck')", "SystemExit: no luck", ""),
        ("raise KeyboardInterrupt", "KeyboardInterrupt\n", ""),
        ("class E(Exception):\n    def __str__(self): raise self\nraise E", "E\n  line 3", ""),
        ("import os; os._exit(3)", "ended with exit code 3", "os._exit"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal SIGKILL", "memory"),
        ("result = 'x\\0y'\n\0", "null bytes", ""),
    ],
)
def test_other_ways_to_fail(code: str, said: str, hint: str) -> None:
    failed = failure("code", code=code, inputs={"given": 1})
    assert said in failed.message and hint in failed.hint


def test_a_missing_requirement_is_found_before_anything_runs() -> None:
    code = "open('ran', 'w').close()"
    failed = failure("code", code=code, requires=["json", "yaml.nothing", "bs4_not_there"])
    assert failed.kind == "validation" and '"yaml.nothing"' in failed.message and "install PyYAML" in failed.hint
    assert not Path("ran").exists()
    outputs("code", code=code, requires=["json", "os.path"])
    assert Path("ran").exists()


@pytest.mark.parametrize(
    "params",
    [
        {"code": " \n"},
        {"code": "x", "timeout": 0},
        {"code": "x", "inputs": {"not-a-name": 1}},
        {"code": "x", "inputs": {"class": 1}},
        {"code": "x", "inputs": {"__builtins__": 1}},
        {"code": "x", "inputs": {"input": 1}, "input": 2},
        {"code": "x", "requires": ["pandas>=2"]},
    ],
)
def test_bad_params(params: dict[str, Any]) -> None:
    failed = failure("code", **params)
    assert failed.kind == "validation" and failed.hint


# ── ending it ──


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""  # what is dying or dead has none
    except OSError:
        return False


@pytest.mark.parametrize("how", ["policy", "param", "cancel"])
def test_code_is_ended_with_everything_it_started(how: str) -> None:
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
        "with open('pids.part', 'w') as file: file.write(f'{os.getpid()} {child.pid}')\n"
        "os.rename('pids.part', 'pids')\n"
        "time.sleep(1000)"
    )
    params: dict[str, Any] = {"code": code, "timeout": LIMIT if how == "param" else 10 * LIMIT}
    policy = Policy(timeout=LIMIT) if how == "policy" else Policy()
    run = Driven(workflow(Node(NODE, "code", params, policy=policy)))

    async def main() -> None:
        driving = asyncio.ensure_future(run.run.drive())
        while not Path("pids").exists():
            await asyncio.sleep(0.01)
        run.run.cancel("enough")
        await driving

    if how == "cancel":
        asyncio.run(main())
    else:
        run_out(run.run.drive(), Path("pids").exists)
    failed = run.ended[VISIT].failure
    assert failed is not None and failed.kind == ("cancelled" if how == "cancel" else "timeout")
    for pid in Path("pids").read_text().split():
        assert not _runs(pid)


def test_a_child_in_the_background_is_not_waited_for() -> None:
    code = "import subprocess\nresult = subprocess.Popen(['sleep', '1000']).pid"
    pid = outputs("code", code=code)["result"]
    assert Path(f"/proc/{pid}").exists()
    os.kill(pid, 9)


def test_a_fork_that_comes_back_does_not_answer() -> None:
    code = "import os\nif os.fork():\n    os.wait()\n    result = 'parent'\nelse:\n    result = 'child'"
    assert outputs("code", code=code)["result"] == "parent"


def test_a_result_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from pflow.builtins import code as module

    monkeypatch.setattr(module, "LARGEST", 100_000)
    failed = failure("code", code="result = 'x' * 1_000_000")
    assert "over 100,000 bytes" in failed.message

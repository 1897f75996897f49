from __future__ import annotations

import os

from tests.builtins.running import failure, outputs


def test_a_background_child_that_holds_the_output_open_is_not_waited_for() -> None:
    made = outputs("shell", command="sleep 1000 & echo $!; echo done", timeout=None)
    pid, said = made["stdout"].splitlines()
    os.kill(int(pid), 9)
    assert said == "done"


def test_what_a_command_does_not_read_is_no_reason_to_wait() -> None:
    assert outputs("shell", command="exec <&-; echo done", stdin="x" * 1_000_000, timeout=None)["stdout"] == "done"


def test_a_failure_shows_what_was_said() -> None:
    failed = failure("shell", command="echo out; echo wrong >&2; exit 3")
    assert failed.message == "exit code 3: wrong" and failed.details["stdout"] == "out\n"

"""Agents that are programs, as real processes."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pflow import settings
from pflow.agents.command import environment, last_line, limited
from pflow.agents.definition import Limits
from pflow.model.workflow import Policy, Retry
from tests.agents.world import NODE, VISIT, World, asking, failure, outputs, runs
from tests.kernel.driving import RUN
from tests.limits import LIMIT, run_out


def test_it_is_asked_in_json_and_answers_in_json(world: World) -> None:
    world.python("echo", "json.dump({'asked': asked, 'n': 3}, sys.stdout)")
    made = outputs(
        agent="Echo", mode="EVALUATE", prompt='Is {"x": 1} good?', inputs={"files": ["a"]}, outputs=["asked", "n"]
    )
    assert made["asked"] == {
        "agent": "echo",
        "mode": "EVALUATE",
        "instructions": "Do it.",
        "prompt": 'Is {"x": 1} good?',
        "inputs": {"files": ["a"]},
        "outputs": ["asked", "n"],
        "idempotency_key": f"{RUN}:{VISIT}",
    }
    assert made["n"] == 3 and json.loads(made["text"])["n"] == 3 and made["usage"] == {}


def test_the_environment_is_minimal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("WANTED", "from here")
    settings.save(settings.Settings(env={"KEPT": "from settings", "WANTED": "not this"}))
    world.python("env", "json.dump(dict(os.environ), sys.stdout)", "env: [WANTED, KEPT, ABSENT, MODE=fast]")
    got = json.loads(outputs(agent="env", prompt="?")["text"])
    got.pop("LC_CTYPE", None)  # Python sets this one itself
    assert {"SECRET_TOKEN", "ABSENT"}.isdisjoint(got)
    assert set(got) <= {"PATH", "HOME", "LANG", "TMPDIR", "WANTED", "KEPT", "MODE"} | {
        name for name in got if name.startswith("PFLOW_")
    }
    assert (got["WANTED"], got["KEPT"], got["MODE"]) == ("from here", "from settings", "fast")
    assert got["PFLOW_IDEMPOTENCY_KEY"] == f"{RUN}:{VISIT}"


def test_without_a_list_no_settings_are_read() -> None:
    (Path(environment({})["PFLOW_HOME"])).write_text("a file where the folder would be")
    assert "PATH" in environment({})


def test_it_runs_where_pflow_was_started_and_its_files_are_found_beside_its_definition(world: World) -> None:
    world.write("tools/one.sh", "pwd")
    world.write(".pflow/agents/two.sh", "pwd")
    world.agent("one", "command: [sh, tools/one.sh]")
    world.agent("two", "command: sh two.sh")
    sub = world.folder / "sub"
    sub.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(sub)
        assert outputs(agent="one", prompt="?")["text"] == outputs(agent="two", prompt="?")["text"] == str(sub)


def test_remarks_are_published_line_by_line(world: World) -> None:
    world.sh("talker", "echo one >&2; printf 'two\\r\\nthree' >&2; echo; echo answer; printf '\\377 end' >&2")
    run = asking(agent="talker", prompt="?")
    run.drive()
    assert [data["text"] for data in run.said("agent:text")] == ["one\n", "two\n", "three\ufffd end\n"]
    assert run.outcome.outputs["text"] == "answer"
    assert {event.context.agent for event in run.events if event.event.type.startswith("agent:")} == {"talker"}


def test_a_remark_is_published_while_the_agent_works(world: World) -> None:
    """The agent waits for its remark to be seen: it would wait forever if it came with the answer only."""
    world.sh("waiter", "echo ready >&2; while [ ! -e seen ]; do sleep 0.01; done; echo done")
    run = asking(agent="waiter", prompt="?")
    run.until(lambda event: event.event.data.get("text") == "ready\n", (world.folder / "seen").touch)
    assert run.outcome.outputs["text"] == "done"


def test_a_flood_of_remarks_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pflow.agents.command._REMARKS", 10)
    world.python("chatty", "[print('x' * 10, file=sys.stderr) for _ in range(10_000)]; print('ok')")
    run = asking(agent="chatty", prompt="?")
    run.drive()
    said = run.said("agent:text")
    assert len(said) == 11 and "not shown" in said[-1]["text"]
    assert run.outcome.outputs["text"] == "ok"


def test_a_line_without_end_is_cut(world: World) -> None:
    world.python("endless", "sys.stderr.write('x' * 1_000_000); print('ok')")
    run = asking(agent="endless", prompt="?")
    run.drive()
    assert max(len(data["text"]) for data in run.said("agent:text")) <= 4001


def test_its_answer_ends_the_node_though_a_child_lives_on(world: World) -> None:
    world.sh("starter", "sleep 1000 & echo $!")
    pid = outputs(agent="starter", prompt="?")["text"]
    assert runs(pid)
    os.kill(int(pid), 9)


# ── what can go wrong ──


def test_an_agent_that_prints_nothing(world: World) -> None:
    world.sh("silent", "echo 'no idea' >&2; echo; echo '  '")
    failed = failure(agent="silent", prompt="?")
    assert (failed.kind, failed.message) == ("agent", 'agent "silent" printed nothing: no idea')
    assert "stdout" in failed.hint and failed.details["reason"] == "silent"


def test_an_agent_that_exits_with_a_page_of_stderr(world: World) -> None:
    world.python("broken", "[print('noise', i, file=sys.stderr) for i in range(2000)]\nraise ValueError('the cause')")
    failed = failure(agent="broken", prompt="?")
    assert failed.kind == "agent"
    assert failed.message == 'agent "broken" ended with exit code 1: ValueError: the cause'
    shown = failed.details["stderr"]
    assert "Traceback" in shown and "noise 1999" in shown and len(shown) <= 4000
    assert failed.details["exit_code"] == 1


def test_the_last_line_that_says_something() -> None:
    assert last_line("Error: x\n  }\n-----\n\n") == "Error: x"
    assert last_line("") == last_line("---\n") == ""


def test_an_answer_does_not_make_up_for_an_exit_code(world: World) -> None:
    world.sh("half", "echo fine; exit 3")
    failed = failure(agent="half", prompt="?")
    assert failed.message == 'agent "half" ended with exit code 3: fine' and failed.details["stdout"] == "fine\n"


def test_an_agent_that_prints_100_mb_is_stopped(world: World) -> None:
    world.sh("flood", "echo $$ >&2; head -c 100000000 /dev/zero | tr '\\0' x; echo never >&2")
    run = asking(agent="flood", prompt="?")
    run.drive()
    failed = run.outcome.failure
    assert failed is not None and failed.kind == "agent"
    assert failed.message == 'agent "flood" printed more than 10,000,000 bytes, and was stopped'
    assert len(failed.details["stdout"]) == 4000
    said = [data["text"].strip() for data in run.said("agent:text")]
    assert "never" not in said and not runs(said[0])


HANGS = """\
    setsid sh -c 'trap "" TERM; echo $$ >&2; exec sleep 1000' &
    sleep 1000 &
    echo $! >&2
    trap "" TERM
    echo $$ >&2
    sleep 1000; sleep 1000
    """


@pytest.mark.parametrize("how", ["param", "definition", "policy", "cancel"])
def test_an_agent_that_forks_and_hangs_is_ended_as_a_whole(world: World, how: str) -> None:
    world.sh("hangs", HANGS, f"timeout: {LIMIT}" if how == "definition" else "")
    policy = Policy(timeout=LIMIT) if how == "policy" else Policy()
    params: dict[str, Any] = {"timeout": LIMIT} if how == "param" else {}
    run = asking("agent", policy, agent="hangs", prompt="?", **params)
    if how == "cancel":
        run.until(
            lambda _: len(run.said("agent:text")) == 3 and not run.run.memory.finished,
            lambda: run.run.cancel("enough"),
        )
    else:
        run_out(run.run.drive(), lambda: len(run.said("agent:text")) == 3)
    failed = run.outcome.failure
    assert failed is not None and failed.kind == ("cancelled" if how == "cancel" else "timeout")
    if how in ("param", "definition"):
        assert failed.message.startswith('agent "hangs" timed out after 60 s')
    for data in run.said("agent:text"):
        assert not runs(data["text"].strip())


def test_an_interrupted_run_ends_its_agent_and_writes_nothing(world: World) -> None:
    world.sh("hangs", "echo $$ >&2; exec sleep 1000")
    run = asking(agent="hangs", prompt="?")
    run.until(lambda event: event.event.type == "agent:text", run.run.interrupt)
    assert run.status == "interrupted" and VISIT not in run.ended
    assert not runs(run.said("agent:text")[0]["text"].strip())


def test_a_program_that_is_not_there(world: World) -> None:
    world.agent("gone", "command: [no-such-program-here]")
    world.agent("gone2", "command: [no-such-program-here]\nlimits: {open_files: 50}")
    world.agent("folder", "command: [/tmp]")
    for name in ("gone", "gone2", "folder"):
        failed = failure(agent=name, prompt="?")
        assert failed.kind == "validation" and f'agent "{name}" cannot be started' in failed.message


def test_a_question_that_is_not_read_is_no_error(world: World) -> None:
    world.sh("deaf", "exec <&-; echo done")
    assert outputs(agent="deaf", prompt="x" * 1_000_000)["text"] == "done"


def test_a_failure_is_tried_again_with_the_same_key(world: World) -> None:
    world.sh("flaky", "echo $PFLOW_IDEMPOTENCY_KEY >> keys; test $(wc -l < keys) = 3 && echo ok")
    run = asking("agent", Policy(Retry(3)), agent="flaky", prompt="?")
    run.drive()
    assert run.outcome.outputs["text"] == "ok" and run.outcome.attempts == 3
    assert (world.folder / "keys").read_text().split() == [f"{RUN}:{VISIT}"] * 3


# ── limits ──


def test_memory_is_limited(world: World) -> None:
    world.python("greedy", "x = bytearray(2_000_000_000); print('got it')", "limits: {memory_mb: 300}")
    failed = failure(agent="greedy", prompt="?")
    assert "MemoryError" in failed.message and failed.details["reason"] == "memory"
    assert failed.hint == "is limits.memory_mb (300) enough?"


def test_cpu_time_is_limited(world: World) -> None:
    world.python("busy", "while True: pass", "limits: {cpu_seconds: 1}")
    failed = failure(agent="busy", prompt="?")
    assert failed.message == 'agent "busy" ended with signal SIGXCPU, its CPU time used up'


def test_open_files_are_limited(world: World) -> None:
    world.python("hoarder", "kept = [open('/dev/null') for _ in range(100)]", "limits: {open_files: 32}")
    assert "Too many open files" in failure(agent="hoarder", prompt="?").message


def test_under_its_limits_an_agent_is_asked_like_any_other(world: World) -> None:
    world.python("fine", "print(asked['prompt'])", "limits: {memory_mb: 2000, cpu_seconds: 60, open_files: 64}")
    assert outputs(agent="fine", prompt="a 'b' $c")["text"] == "a 'b' $c"


def test_without_limits_there_is_no_shell_in_between() -> None:
    assert limited(["a", "b"], Limits()) == ["a", "b"]


def test_a_second_run_may_start_while_the_first_is_asked(world: World) -> None:
    """Nothing of one question is kept in a place that another would share."""
    world.python("echo", "print(asked['prompt'])")
    first, second = asking(agent="echo", prompt="1"), asking(agent="echo", prompt="2")

    async def main() -> None:
        await asyncio.gather(first.run.drive(), second.run.drive())

    asyncio.run(main())
    assert (first.outputs[NODE]["text"], second.outputs[NODE]["text"]) == ("1", "2")

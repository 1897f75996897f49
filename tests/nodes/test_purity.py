from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from pflow import NodeError, StepContext, flow_safe, node
from pflow.model.workflow import Node, Policy, Retry, Workflow
from pflow.nodes.purity import Standings, examples_for, verify
from pflow.nodes.registry import Registry
from pflow.nodes.type import NodeType, describe_type
from pflow.planning.build import build
from tests.kernel.driving import Driven, workflow


def kind(function: Any) -> NodeType:
    return describe_type(flow_safe(node("t/it")(function)))


def judged(function: Any) -> Any:
    made = kind(function)
    return asyncio.run(verify(made, examples_for(made)))


COUNT = itertools.count()


def honest(text: str, n: int = 1) -> dict[str, Any]:
    return {"text": text * n}


def reads_a_file(text: str) -> str:
    return Path(__file__).read_text()[:5] + text


def imports(text: str) -> int:
    import colorsys

    return len(colorsys.__name__ + text)


def answers_differently(text: str) -> int:
    return next(COUNT)


def writes_a_file(text: str) -> None:
    with open(os.path.join(tempfile.gettempdir(), "pflow-purity"), "w") as file:
        file.write(text)


def writes_low(text: str) -> None:
    os.close(os.open(os.path.join(tempfile.gettempdir(), "pflow-purity"), os.O_CREAT | os.O_WRONLY))


def removes_a_file(text: str) -> None:
    os.remove("/nowhere/at/all")


def opens_a_socket(text: str) -> None:
    socket.create_connection(("127.0.0.1", 9), 0.01)


def starts_a_process(text: str) -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


def starts_one_by_shell(text: str) -> None:
    os.system("true")


def starts_a_thread(text: str) -> None:
    threading.Thread(target=print).start()


def hides_it(text: str) -> str:
    try:
        writes_a_file(text)
    except NodeError:
        return "nothing happened"
    return "done"


async def honest_async(text: str) -> str:
    await asyncio.sleep(0)
    return text


async def writes_async(text: str) -> None:
    await asyncio.sleep(0)
    writes_a_file(text)


for promised in (writes_a_file, writes_async, opens_a_socket, starts_a_process, hides_it):
    flow_safe(node("t/it")(promised))  # where another process finds them, too


@pytest.mark.parametrize("function", [honest, honest_async, reads_a_file, imports])
def test_a_kept_promise_is_believed(function: Any) -> None:
    assert judged(function).pure, judged(function).reason


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (answers_differently, "differently"),
        (writes_a_file, "writes the file"),
        (writes_low, "writes the file"),
        (writes_async, "writes the file"),
        (hides_it, "writes the file"),
        (removes_a_file, "removes"),
        (opens_a_socket, "socket"),
        (starts_a_process, "process"),
        (starts_one_by_shell, "process"),
        (starts_a_thread, "thread"),
    ],
)
def test_a_broken_promise_is_refused_with_the_reason(function: Any, reason: str) -> None:
    verdict = judged(function)
    assert not verdict.pure and reason in verdict.reason


@pytest.mark.parametrize("function", [writes_a_file, writes_async, opens_a_socket, starts_a_process, hides_it])
@pytest.mark.parametrize("timeout", [None, 600.0])
def test_at_run_time_a_safe_node_is_stopped(function: Any, timeout: float | None) -> None:
    flow = workflow(Node("a", "t/it", {"text": "x"}, policy=Policy(timeout=timeout)))
    driven = Driven(flow, [describe_type(flow_safe(node("t/it")(function)))]).drive()
    failure = driven.ended["a#1"].failure
    assert failure is not None and failure.kind == "purity" and failure.error_type == "PurityError"


def test_the_guard_does_not_hinder_others_meanwhile(tmp_path: Path) -> None:
    @flow_safe
    @node("t/slow")
    async def slow(text: str) -> str:
        for _ in range(50):
            await asyncio.sleep(0)
        return text

    @node("t/free")
    async def free(path: str) -> None:
        for _ in range(10):
            await asyncio.sleep(0)
            Path(path).write_text("x")

    flow = workflow(Node("a", "t/slow", {"text": "x"}), Node("b", "t/free", {"path": str(tmp_path / "f")}), width=2)
    driven = Driven(flow, [describe_type(slow), describe_type(free)]).drive()
    assert driven.status == "completed"


def test_an_undeclared_shared_key_is_a_breach_and_a_declared_one_is_not() -> None:
    @flow_safe
    @node("t/it", shared=("seen",))
    async def shares(step: StepContext, key: str) -> None:
        step.shared[key] = 1

    for key, status in (("seen", "completed"), ("other", "failed")):
        assert Driven(workflow(Node("a", "t/it", {"key": key})), [describe_type(shares)]).drive().status == status


# ── trials ──


def trial(home: Path, function: Any, **declared: Any) -> tuple[str, Driven]:
    """Run a flow in which purity matters, and tell how the type stands afterwards."""
    made = describe_type(flow_safe(node("t/it", **declared)(function)))
    flow = workflow(Node("a", "t/it", {"text": "x"}, policy=Policy(Retry(2))))
    driven = Driven(flow, [made])
    registry = driven.run.guide.registry
    assert registry is not None
    registry.standings = Standings(home)
    driven.drive()
    known = Standings(home).of(made)
    return (known.standing if known else ""), driven


def test_the_first_time_purity_matters_the_type_is_tried_on_the_visit_at_hand(home: Path) -> None:
    standing, driven = trial(home, honest)
    assert standing == "pure" and driven.outputs["a"] == {"text": "x"}


def test_a_type_that_fails_its_trial_is_impure_and_it_says_why_once(home: Path) -> None:
    standing, driven = trial(home, answers_differently)
    assert standing == "impure" and driven.status == "completed"
    said = [event.event.data["message"] for event in driven.events if event.event.type == "log"]
    assert len(said) == 1 and "differently" in said[0]


def test_examples_are_tried_first(home: Path) -> None:
    def picky(text: str) -> int:
        return next(COUNT) if text == "example" else 0

    standing, _ = trial(home, picky, examples=[{"text": "example"}])
    assert standing == "impure"


def test_a_verdict_is_for_a_source_and_an_edit_is_tried_again(tmp_path: Path, home: Path) -> None:
    path = tmp_path / "mine.py"
    source = (
        "from pflow import node, flow_safe\n@flow_safe\n@node('mine/x')\ndef x(text: str) -> str:\n    return text\n"
    )
    path.write_text(source)
    first = Registry(folders=[tmp_path], installed=False, standings=Standings(home)).get("mine/x")
    assert first.on_trial
    Standings(home).set(first, "pure")
    again = Registry(folders=[tmp_path], installed=False, standings=Standings(home)).get("mine/x")
    assert again.standing == "pure" and not again.on_trial and again.effect_for({}) == "pure"
    path.write_text(source + "# edited\n")
    edited = Registry(folders=[tmp_path], installed=False, standings=Standings(home)).get("mine/x")
    assert edited.on_trial and edited.effect_for({}) == "impure"


# ── retries only where allowed ──


def retried(made: NodeType) -> Workflow:
    flow = Workflow("w", "pflow", (Node("a", made.name, {"text": "x"}, policy=Policy(Retry(3))),), safe_retries=True)
    build(flow, Registry([made]))
    return flow


def test_retries_are_for_what_may_run_twice() -> None:
    from pflow.errors import WorkflowError

    def doubtful(text: str) -> str:
        return text

    impure = describe_type(node("t/impure")(doubtful))
    with pytest.raises(WorkflowError, match=r"impure, so it cannot be retried\n.*registry accept t/impure"):
        retried(impure)
    impure.standing = "accepted"
    retried(impure)
    retried(describe_type(node("t/quiet", effect="quiet")(doubtful), trusted=True))
    retried(kind(honest))

"""At a terminal: the live view, questions and doubts, colours that can be switched off."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Pflow
from tests.cli.processes import Terminal, process, slow_workflow, started

BUSY = """\
import asyncio
from pathlib import Path
from pflow import StepContext, node

@node("t/busy")
async def busy(step: StepContext) -> str:
    step.progress(3, 12)
    step.usage(cost_usd=0.5)
    while not Path("enough").exists():
        await asyncio.sleep(0.01)
    print("a word from node code\\nand an unended one", end="")
    return "done"
"""


@pytest.fixture(autouse=True)
def _able(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that can do everything, unless a test says otherwise."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.fixture
def busy(here: Path) -> str:
    folder = here / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    (folder / "t.py").write_text(BUSY)
    (here / "busy.yaml").write_text("flow: {name: busy}\nnodes: [{id: long_one, type: t/busy}]\nedges: []\n")
    return "busy.yaml"


def test_a_long_run_shows_what_is_at_work(here: Path, busy: str) -> None:
    terminal = Terminal(here, busy)
    terminal.see("long_one")
    terminal.see("3/12")
    terminal.see("$0.5000")
    (here / "enough").touch()
    code, out, seen = terminal.end()
    assert "\na word from node code\r\n" in seen.replace("\x1b[2K", "\n") and "word" not in out
    assert "and an unended one\r\n" in seen
    assert (code, out) == (0, "done\n") and "✓\x1b[0m Node 'long_one' completed (" in seen
    assert "\x1b[?25h" in seen, "the cursor is back"


def test_a_narrow_window_is_not_overrun(here: Path, busy: str) -> None:
    terminal = Terminal(here, busy, size=(10, 12))
    terminal.see("long_one")
    (here / "enough").touch()
    assert terminal.end()[0] == 0


@pytest.mark.parametrize(("name", "value"), [("TERM", "dumb"), ("NO_COLOR", "1")])
def test_colours_can_be_switched_off(
    here: Path, greeting: str, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    code, out, seen = Terminal(here, greeting).end()
    assert (code, out) == (0, "HELLO, WORLD!\n") and "\x1b[3" not in seen
    assert "✓ Node 'greet' completed" in seen


def test_a_dumb_terminal_gets_plain_lines(here: Path, busy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "enough").touch()
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in Terminal(here, busy).end()[2]


def test_without_rich_there_are_lines(here: Path, busy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "fake").mkdir()
    (here / "fake" / "rich.py").write_text("open('started', 'w').write('1')\nraise ImportError('no rich here')\n")
    monkeypatch.setenv("PYTHONPATH", str(here / "fake"))
    os.mkfifo(here / "started")
    terminal = Terminal(here, busy)
    assert started(here) == 1, "the view was about to appear"
    (here / "enough").touch()
    code, out, seen = terminal.end()
    assert (code, out) == (0, "done\n") and "Node 'long_one' completed" in seen and "Traceback" not in seen


def test_a_question_is_asked_and_answered_at_the_terminal(here: Path, question: str) -> None:
    terminal = Terminal(here, question)
    terminal.see("asks: Deploy?")
    terminal.see("your answer")
    terminal.type("perhaps\n")
    terminal.see("none of: yes, no")
    terminal.see("your answer")
    terminal.type("2\n")
    assert terminal.end()[:2] == (0, "answer: no\n")


def test_no_answer_at_the_terminal_pauses_the_run(here: Path, question: str) -> None:
    terminal = Terminal(here, question)
    terminal.see("your answer")
    terminal.type("\x04")
    code, _, seen = terminal.end()
    assert code == 3 and "pflow reply question_" in seen


def test_ctrl_c_at_a_question_stops_the_run(pflow: Pflow, here: Path, question: str) -> None:
    terminal = Terminal(here, question)
    terminal.see("your answer")
    terminal.process.send_signal(signal.SIGINT)
    code, _, seen = terminal.end()
    assert code == 130 and "pflow resume question_" in seen
    assert pflow("runs", "--json").json[0]["status"] == "paused"


def test_print_asks_nothing(here: Path, question: str) -> None:
    assert Terminal(here, question, "-p").end()[0] == 3


def test_a_doubt_is_asked_about_at_the_terminal(pflow: Pflow, here: Path) -> None:
    slow_workflow(here)
    with process(here, "slow.yaml") as running:
        pid = started(here)
        running.kill()
        running.communicate()
        os.kill(pid, signal.SIGKILL)
    run_id = pflow("runs", "--json").json[0]["run_id"]
    (here / "hurry").touch()
    terminal = Terminal(here, "resume", run_id)
    terminal.see("may have taken effect")
    terminal.see("retry, skip or fail?")
    terminal.type("what?\n")
    terminal.see("retry, skip or fail?")
    terminal.type("r\n")
    assert terminal.end()[:2] == (0, "after\n")


def test_ctrl_c_takes_the_view_away(here: Path, busy: str) -> None:
    terminal = Terminal(here, busy)
    terminal.see("3/12")
    terminal.process.send_signal(signal.SIGINT)
    code, _, seen = terminal.end()
    assert code == 130 and seen.rstrip().endswith(seen.rstrip().rpartition("pflow resume ")[2])
    assert seen.rindex("\x1b[?25h") < seen.rindex("Interrupted")


def test_what_may_change_the_world_is_shown_and_confirmed_once(here: Path, busy: str) -> None:
    (here / "enough").touch()
    terminal = Terminal(here, busy, known=False)
    terminal.see("long_one  t/busy")
    terminal.see("run it? [Y/n]")
    terminal.type("n\n")
    code, out, seen = terminal.end()
    assert (code, out) == (130, "") and "nothing was run" in seen
    terminal = Terminal(here, busy, known=False)
    terminal.see("run it? [Y/n]")
    terminal.type("\n")
    assert terminal.end()[0] == 0
    code, _, seen = Terminal(here, busy, known=False).end()
    assert code == 0 and "run it?" not in seen


def test_what_is_harmless_is_simply_run(here: Path, greeting: str) -> None:
    assert "run it?" not in Terminal(here, greeting, known=False).end()[2]


@pytest.mark.parametrize(("typed", "code"), [("n\n", 130), ("\n", 0)])
def test_whether_to_go_on_with_the_copy_of_an_edited_workflow_is_asked(
    pflow: Pflow, here: Path, broken: str, typed: str, code: int
) -> None:
    pflow(broken)
    (here / "mended").touch()
    (here / broken).write_text((here / broken).read_text().replace("and three", "and four"))
    run_id = pflow("runs", "--json").json[0]["run_id"]
    terminal = Terminal(here, "resume", run_id)
    terminal.see("was edited (changed: third)")
    terminal.see("go on with the copy? [Y/n]")
    terminal.type(typed)
    made = terminal.end()
    assert made[0] == code and ("nothing was run" in made[2]) == bool(code)
    assert pflow("runs", "--json").json[0]["status"] == ("failed" if code else "completed")

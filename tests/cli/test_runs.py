"""Runs that were: listed, shown, resumed, forked, answered, cancelled."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import pflow as library
from pflow.model.workflow import Edge, Input, Node, Workflow
from pflow.storage import inbox
from pflow.storage.files import home
from pflow.storage.lease import Lease
from tests.cli.conftest import Pflow


def last_run(pflow: Pflow) -> dict[str, Any]:
    made: dict[str, Any] = pflow("runs", "--json").json[0]
    return made


# Listing and showing.


def test_runs_lists_the_newest_first(pflow: Pflow, greeting: str, broken: str) -> None:
    assert pflow("runs").code == 0 and "no runs yet" in pflow("runs").err
    pflow(greeting)
    pflow(broken)
    made = pflow("runs", "--json").json
    assert {one["workflow"] for one in made} == {"broken", "greeting"}
    failed = next(one for one in made if one["workflow"] == "broken")
    assert set(failed) == {
        "run_id", "workflow", "dialect", "status", "started_at", "updated_at", "nodes_completed", "nodes_total", "path",
    }  # fmt: skip
    assert (failed["status"], failed["nodes_completed"], failed["nodes_total"]) == ("failed", 1, 3)
    assert failed["dialect"] == "flowspec" and Path(failed["path"]).name == failed["run_id"]
    table = pflow("runs").out
    assert "✗ broken_" in table and "✓ greeting_" in table and "1/3" in table


def test_runs_shows_twenty_unless_asked_for_all(pflow: Pflow, here: Path, greeting: str) -> None:
    for _ in range(22):
        pflow(greeting, "-p")
    assert len(pflow("runs", "--json").json) == 20 and len(pflow("runs", "--all", "--json").json) == 22
    (Path(last_run(pflow)["path"]).parent / "rubbish").mkdir()
    assert len(pflow("runs", "--all", "--json").json) == 22


@pytest.mark.parametrize("damaged", ["{corrupt", "[]", "{}", '{"status": 7}', ""])
def test_a_damaged_view_hides_no_run_and_is_repaired(pflow: Pflow, here: Path, broken: str, damaged: str) -> None:
    """Also where it is newer than the journal, which is the truth."""
    pflow(broken)
    run = last_run(pflow)
    (Path(run["path"]) / "state.json").write_text(damaged)
    assert last_run(pflow) == run
    assert pflow("status", run["run_id"], "--json").json["status"] == "failed"
    (here / "mended").touch()
    assert pflow("resume", run["run_id"]).code == 0
    assert json.loads((Path(run["path"]) / "state.json").read_text())["status"] == "completed"


def test_status_tells_steps_and_what_to_do(pflow: Pflow, broken: str) -> None:
    pflow(broken)
    run_id = last_run(pflow)["run_id"]
    said = pflow("status", run_id[:10])
    assert f"{run_id}: failed" in said.out and "✓ first  completed" in said.out
    assert "✗ second  failed" in said.out and "not mended" in said.out and f"pflow resume {run_id}" in said.out
    made = pflow("status", run_id, "--json").json
    assert made["status"] == "failed" and made["steps"]["second#1"]["error"]["message"].startswith("exit code 3")


def test_a_run_without_a_driver_is_interrupted_and_one_with_it_is_running(pflow: Pflow, broken: str) -> None:
    """A killed process leaves a journal without an end."""
    pflow(broken)
    run = last_run(pflow)
    folder = Path(run["path"])
    lines = (folder / "trace.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "trace.jsonl").write_bytes(b"".join(lines[:3]))  # opened, first began, first ended
    (folder / "state.json").unlink()
    assert last_run(pflow)["status"] == "interrupted"
    assert pflow("status", run["run_id"], "--json").json["status"] == "interrupted"
    assert "interrupted" in pflow("trace").out
    with Lease.acquire(folder, run["run_id"]):
        assert last_run(pflow)["status"] == "running"
        said = pflow("resume", run["run_id"])
        assert said.code == 2 and "is driven by process" in said.err
    (folder / "workflow.yaml").write_text("nothing of use")
    made = pflow("status", run["run_id"], "--json").json
    assert made["status"] == "interrupted" and made["nodes_completed"] == 1


def test_trace_tells_the_story_of_a_failure(pflow: Pflow, broken: str) -> None:
    pflow(broken, "--context", '{"wish": "luck"}')
    said = pflow("trace")
    run_id = last_run(pflow)["run_id"]
    assert said.out.startswith(f"{run_id}: FAILED\n") and 'input wish: "luck"' in said.out
    assert "✓ first completed" in said.out and "FAILED at second: exit code 3: not mended" in said.out
    assert "test -e mended" in said.out, "what the node was given"
    made = pflow("trace", run_id, "--json").json
    failure = made["failure"]
    assert made["status"] == "failed" and failure["node_id"] == "second" and made["unfinished"] == []
    assert failure["inputs"]["command"] == failure["params"]["command"], "nothing was to be resolved"
    assert list(failure["shared"]) == ["first"] and "shared first: " in said.out
    assert [(one["attempt"], one["outcome"]) for one in failure["attempts"]] == [(1, "failed")]
    assert [entry["kind"] for entry in made["timeline"]] == ["began", "ended", "began", "ended", "finished"]


def test_trace_shows_every_attempt(pflow: Pflow, here: Path) -> None:
    node = {"id": "a", "type": "shell", "input": {"command": "exit 1"}, "policy": {"retry": {"maxAttempts": 3}}}
    (here / "w.yaml").write_text(json.dumps({"flow": {"name": "w"}, "nodes": [node], "edges": []}))
    pflow("w.yaml")
    story = pflow("trace").out
    assert "a attempt 1 failed" in story and "a attempt 2 failed" in story and "3 attempts" in story


def test_trace_shows_where_a_killed_run_was(pflow: Pflow, here: Path) -> None:
    """Whatever the process had no time to write is worked out from the journal, wherever that ends."""
    nodes = [
        {"id": "one", "type": "echo", "params": {"text": "hello ${who}"}},
        {"id": "two", "type": "shell", "params": {"command": "echo ${one.text}; exit 3"}},
    ]
    (here / "w.json").write_text(json.dumps({"inputs": {"who": {"type": "string"}}, "nodes": nodes}))
    pflow("w.json", "who=ann")
    folder = Path(last_run(pflow)["path"])
    lines = (folder / "trace.jsonl").read_bytes().splitlines(keepends=True)
    shutil.rmtree(folder / "nodes")
    seen = []
    for end in range(1, len(lines) - 1):
        (folder / "trace.jsonl").write_bytes(b"".join(lines[:end]))
        (one,) = pflow("trace", "--json").json["unfinished"]
        seen.append((one["node_id"], one["inputs"], one["shared"], one["attempts"]))
        assert f"LEFT at {one['node_id']}" in pflow("trace").out
    command = {"command": "echo hello ann; exit 3"}
    said = {"one": {"text": "hello ann", "echo": "hello ann", "data": None}}
    assert seen[0] == ("one", {"text": "hello ann"}, {}, [])
    assert seen[1] == ("two", command, said, [])
    assert seen[2][:3] == ("two", command, said) and seen[2][3][0]["outcome"] == "cut off"


def test_nothing_to_trace(pflow: Pflow) -> None:
    said = pflow("trace")
    assert said.code == 2 and "no runs yet" in said.err
    assert pflow("trace", "nowhere", "--json").json["errors"][0]["code"] == "run-not-found"
    assert pflow("status", "../../etc").code == 2


# Going on.


def test_resume_repeats_nothing_and_again_is_a_no_op(pflow: Pflow, here: Path, broken: str) -> None:
    pflow(broken)
    run_id = last_run(pflow)["run_id"]
    assert pflow("resume", run_id).code == 1
    (here / "mended").touch()
    said = pflow("resume", run_id)
    assert (said.code, said.out) == (0, "two and three\n") and "Node 'first'" not in said.err
    assert (here / "first.log").read_text() == "done\n"
    again = pflow("resume", run_id)
    assert (again.code, again.out) == (0, "two and three\n") and "nothing was left to do" in again.err
    assert pflow("resume", run_id, "--output-format", "json").json["status"] == "completed"


def test_resume_at_a_node_goes_on_as_a_new_run(pflow: Pflow, here: Path, broken: str) -> None:
    (here / "mended").touch()
    pflow(broken)
    run_id = last_run(pflow)["run_id"]
    said = pflow("resume", run_id, "--at", "second")
    assert said.code == 0 and said.out == "two and three\n" and "Goes on from 'second' as run broken_" in said.err
    assert (here / "first.log").read_text() == "done\n" and len(pflow("runs", "--json").json) == 2
    said = pflow("resume", run_id, "--at", "secnd")
    assert said.code == 2 and "never came to" in said.err and "second#1" in said.err


def test_a_run_is_resumed_from_another_folder(
    pflow: Pflow, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """Its commands run where it was started, and its local node types are found there."""
    nodes = here / ".pflow" / "nodes"
    nodes.mkdir(parents=True)
    (nodes / "t.py").write_text("from pflow import node\n@node('t/one')\ndef one() -> int:\n    return 1\n")
    (here / "sub").mkdir()
    (here / "sub" / "w.yaml").write_text((here / broken).read_text().replace("type: echo", "type: echo"))
    pflow("sub/w.yaml")
    run_id = last_run(pflow)["run_id"]
    (here / "mended").touch()
    monkeypatch.chdir(tmp_path)
    assert pflow("resume", run_id).out == "two and three\n"


def test_runs_can_be_kept_elsewhere(pflow: Pflow, here: Path, tmp_path: Path, broken: str) -> None:
    assert pflow("settings", "runs", "dir", str(tmp_path / "elsewhere")).code == 0
    pflow(broken)
    run = last_run(pflow)
    assert Path(run["path"]).parent == tmp_path / "elsewhere"
    (here / "mended").touch()
    assert pflow("resume", run["run_id"]).code == 0
    assert pflow("resume", run["path"], "--at", "second").code == 0
    assert len(pflow("runs", "--json").json) == 2


# Questions and doubts, without a terminal.


def test_a_question_pauses_the_run_and_a_reply_goes_on(pflow: Pflow, question: str) -> None:
    said = pflow(question)
    run_id = last_run(pflow)["run_id"]
    assert said.code == 3 and "asks: Deploy?" in said.err and f"pflow reply {run_id} yes|no" in said.err
    assert last_run(pflow)["status"] == "paused" and "⏸ approve  waiting" in pflow("status", run_id).out
    assert "asks: Deploy?" in pflow("status", run_id).out
    assert pflow("resume", run_id).code == 3
    wrong = pflow("reply", run_id, "perhaps")
    assert wrong.code == 2 and "one of: yes, no" in wrong.err
    assert pflow("reply", run_id, "--node", "nobody", "yes").code == 2
    said = pflow("reply", run_id, "y")
    assert (said.code, said.out) == (0, "answer: yes\n")
    said = pflow("reply", run_id, "yes")
    assert said.code == 2 and "asks nothing" in said.err
    assert "approve was answered" in pflow("trace").out


def test_a_paused_run_as_json(pflow: Pflow, question: str) -> None:
    said = pflow(question, "--output-format", "json")
    made = said.json
    assert said.code == 3 and (made["success"], made["status"], made["errors"]) == (False, "paused", [])
    assert made["waiting"] == [{"node_id": "approve", "question": "Deploy?", "choices": ["yes", "no"]}]


def test_yes_answers_yes_or_no_questions(pflow: Pflow, question: str) -> None:
    assert pflow(question, "--yes").out == "answer: yes\n"


def test_several_questions_want_to_be_named(pflow: Pflow, here: Path) -> None:
    nodes = [{"id": name, "type": "ask", "input": {"question": f"{name}?"}} for name in ("a", "b")]
    (here / "w.yaml").write_text(json.dumps({"flow": {"name": "w"}, "nodes": nodes, "edges": []}))
    said = pflow("w.yaml", "--jobs", "2")
    run_id = last_run(pflow)["run_id"]
    assert said.code == 3 and f"pflow reply {run_id} --node b TEXT" in said.err
    said = pflow("reply", run_id, "one")
    assert said.code == 2 and "--node: a, b" in said.err
    assert pflow("reply", run_id, "--node", "b", "two", "words").code == 3
    assert pflow("reply", run_id, "one", "-p", "-o", "b.answer").out == "two words\n"


def test_a_reply_to_a_live_run_is_left_for_its_driver(pflow: Pflow, question: str) -> None:
    pflow(question)
    run = last_run(pflow)
    with Lease.acquire(Path(run["path"]), run["run_id"]):
        said = pflow("reply", run["run_id"], "no")
    assert said.code == 0 and said.out == "" and "goes on with the run" in said.err
    assert pflow("resume", run["run_id"]).out == "answer: no\n"


def cut_off(pflow: Pflow, here: Path, broken: str) -> str:
    """A run that was killed in its second node."""
    (here / "mended").touch()
    pflow(broken, "--no-cache")  # otherwise the cache would know how the second node went
    run = last_run(pflow)
    journal = Path(run["path"]) / "trace.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:4]))  # opened, first began and ended, second began
    return str(run["run_id"])


def test_a_doubt_pauses_the_run_and_names_the_choices(pflow: Pflow, here: Path, broken: str) -> None:
    run_id = cut_off(pflow, here, broken)
    story = pflow("status", run_id).out
    assert "may have taken effect" in story and "⏸ second  interrupted" in story
    said = pflow("resume", run_id)
    assert said.code == 3 and "node 'second' was cut off in attempt 1" in said.err
    assert f"pflow resume {run_id} --on-doubt retry|skip|fail" in said.err
    assert last_run(pflow)["status"] == "paused"
    made = pflow("resume", run_id, "--output-format", "json").json
    assert made["doubts"] == [{"node_id": "second", "attempt": 1}]


@pytest.mark.parametrize(("decision", "code", "words"), [("retry", 0, "two and three"), ("fail", 1, "cut off")])
def test_a_doubt_is_decided_on_the_command_line(
    pflow: Pflow, here: Path, broken: str, decision: str, code: int, words: str
) -> None:
    run_id = cut_off(pflow, here, broken)
    said = pflow("resume", run_id, "--on-doubt", decision)
    assert said.code == code and words in said.out + said.err
    assert f"second was in doubt after attempt 1: {decision}" in pflow("trace").out


def test_a_secret_input_is_given_again_and_shown_nowhere(pflow: Pflow) -> None:
    nodes = (Node("ask", "ask", {"question": "Go?"}), Node("use", "control.fail", {"message": "bad {{key}}"}))
    inputs = (Input("key", "string", required=True, secret=True), Input("n", default=1))
    flow = Workflow("hush", "test", nodes, (Edge("ask", "use"),), inputs)
    paused = asyncio.run(library.run(flow, {"key": "hush-hush"}))
    assert paused.status == "paused"
    wrong = pflow("resume", paused.run_id, "n=2")
    assert wrong.code == 2 and '"n" is no secret one' in wrong.err
    said = pflow("resume", paused.run_id)
    assert said.code == 2 and "needs its secret input" in said.err
    said = pflow("reply", paused.run_id, "--input", "key=hush-hush", "--json", "go")
    assert said.code == 1 and "bad [redacted]" in said.err and "hush-hush" not in said.err + said.out
    assert 'input key: "[redacted]"' in pflow("trace").out
    assert pflow("status", paused.run_id).code == 0 and pflow("cancel", paused.run_id).code == 2


# Cancelling.


def test_a_run_that_nobody_drives_is_cancelled_here(pflow: Pflow, question: str) -> None:
    pflow(question)
    run_id = last_run(pflow)["run_id"]
    said = pflow("cancel", run_id)
    assert said.code == 0 and f"Cancelled {run_id}" in said.err
    assert last_run(pflow)["status"] == "cancelled" and "cancelled by its user" in pflow("trace").out
    said = pflow("cancel", run_id)
    assert said.code == 2 and "ended already: cancelled" in said.err
    assert pflow("resume", run_id).code == 3, "it can be taken up again, and asks again"
    assert pflow("reply", run_id, "no").out == "answer: no\n"


def test_a_run_in_doubt_stays_in_doubt_when_it_is_cancelled(pflow: Pflow, here: Path, broken: str) -> None:
    run_id = cut_off(pflow, here, broken)
    assert pflow("cancel", run_id).code == 0
    assert pflow("resume", run_id).code == 3
    assert pflow("resume", run_id, "--on-doubt", "retry").out == "two and three\n"


def test_a_live_run_is_told(pflow: Pflow, question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pflow.cli.runs.PATIENCE", 0.0)
    pflow(question)
    run = last_run(pflow)
    with Lease.acquire(Path(run["path"]), run["run_id"]):
        said = pflow("cancel", run["run_id"])
        assert said.code == 0 and "was told to cancel" in said.err
    ((_, message),) = inbox.drain(Path(run["path"]))
    assert message["kind"] == "cancel"


def test_a_driver_that_goes_away_without_heeding_is_replaced(
    pflow: Pflow, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pflow(question)
    run = last_run(pflow)
    lease = Lease.acquire(Path(run["path"]), run["run_id"])
    monkeypatch.setattr("pflow.cli.runs.time.sleep", lambda _: lease.release())
    assert pflow("cancel", run["run_id"]).code == 0
    assert last_run(pflow)["status"] == "cancelled" and not inbox.pending(Path(run["path"]))


def test_a_secret_that_a_node_echoes_is_not_in_its_trace(pflow: Pflow, here: Path) -> None:
    """A secret given on the command line is in no file of the run, and whole again when the run is resumed."""
    (here / "echo.json").write_text(
        json.dumps(
            {
                "inputs": {"key": {"type": "string", "secret": True}},
                "nodes": [
                    {"id": "say", "type": "shell", "params": {"command": "printf %s ${key}"}},
                    {
                        "id": "use",
                        "type": "shell",
                        "params": {
                            "command": "cat go || { echo ${key} >&2; exit 1; }; printf %s ${say.stdout} | wc -c"
                        },
                    },
                ],
            }
        )
    )
    assert pflow("echo.json", "key=hush-hush").code == 1
    run = last_run(pflow)
    for shown in (pflow("trace"), pflow("trace", "--json"), pflow("status", run["run_id"], "--json")):
        assert "hush-hush" not in shown.out + shown.err
    assert not [path for path in Path(run["path"]).rglob("*") if path.is_file() and b"hush-hush" in path.read_bytes()]
    assert b"hush-hush" not in next(home().glob("cache/workflow-iterations/*/metadata.json")).read_bytes()
    assert pflow("resume", run["run_id"]).code == 2
    (here / "go").write_text("")
    said = pflow("resume", run["run_id"], "key=hush-hush", "--print")
    assert said.code == 0 and said.out.strip() == "9"


# Documents that changed since.


def test_resume_says_what_changed_of_the_workflow_and_goes_on_with_its_copy(
    pflow: Pflow, here: Path, broken: str
) -> None:
    pflow(broken)
    (here / "mended").touch()
    edits = [
        ("  - {id: third", "  - {id: extra, type: echo, input: {text: x}}\n  - {id: third"),
        ("and three", "and four"),
        ("id: first,", "id: fist,"),
        ("from: first", "from: fist"),
    ]
    text = (here / broken).read_text()
    for old, new in edits:
        text = text.replace(old, new)
    (here / broken).write_text(text)
    said = pflow("resume", last_run(pflow)["run_id"], "--output-format", "json")
    assert said.code == 0 and said.json["result"] == "two and three"
    assert f"{here / broken} was edited (added: fist, extra; removed: first; changed: third)" in said.err
    assert "goes on with the copy" in said.err and f"as it is now: pflow {here / broken}" in said.err
    again = pflow("resume", last_run(pflow)["run_id"])
    assert again.code == 0 and "edited" not in again.err, "nothing goes on, so nothing is to be said"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda path: path.unlink(), "the file is gone"),
        (lambda path: path.write_text("nothing of use"), "was edited, and is no valid workflow now: "),
        (lambda path: path.write_text(path.read_text().replace("name: question", "name: other")), "its name changed"),
        (lambda path: path.write_text("# a remark\n" + path.read_text()), ""),
    ],
)
def test_reply_says_what_changed_too(pflow: Pflow, here: Path, question: str, edit: Any, said: str) -> None:
    pflow(question)
    edit(here / question)
    made = pflow("reply", last_run(pflow)["run_id"], "no")
    assert (made.code, made.out) == (0, "answer: no\n")
    assert said in made.err if said else "edited" not in made.err


def test_a_sub_workflow_that_was_edited_is_named_and_its_copy_is_used(pflow: Pflow, here: Path, broken: str) -> None:
    """However the workflow was named when it was run."""
    node = {"id": "inner", "type": "workflow", "params": {"workflow_ref": broken}}
    (here / "outer.json").write_text(json.dumps({"nodes": [node]}))
    assert pflow("outer.json").code == 1
    (here / "mended").touch()
    (here / broken).write_text((here / broken).read_text().replace("and three", "and four"))
    said = pflow("resume", last_run(pflow)["run_id"])
    assert said.code == 0 and f"{here / broken} was edited (changed: third)" in said.err
    assert "two and three" in said.out and "four" not in said.out


def test_a_fork_is_made_only_when_nothing_stands_in_its_way(pflow: Pflow, question: str) -> None:
    pflow(question)
    run_id = last_run(pflow)["run_id"]
    assert pflow("resume", run_id, "--at", "ask", "--timeout", "abc").code == 2
    assert len(pflow("runs", "--json").json) == 1


def test_an_answer_that_is_refused_for_its_options_is_not_left_behind(pflow: Pflow, question: str) -> None:
    pflow(question)
    run_id = last_run(pflow)["run_id"]
    assert pflow("reply", run_id, "yes", "--budget", "abc").code == 2
    assert pflow("reply", run_id, "no").out == "answer: no\n"


def test_an_answer_stays_with_a_run_that_wants_its_secret_first(pflow: Pflow, here: Path) -> None:
    nodes = [{"id": "q", "type": "ask", "params": {"question": "go on?"}}]
    inputs = {"key": {"type": "string", "secret": True}}
    (here / "w.json").write_text(json.dumps({"nodes": nodes, "inputs": inputs}))
    assert pflow("w.json", "key=s3cret-words").code == 3
    run_id = last_run(pflow)["run_id"]
    said = pflow("reply", run_id, "sure")
    assert said.code == 2 and f"pflow resume {run_id}" in said.err
    assert pflow("resume", run_id, "key=s3cret-words", "-o", "q").code == 0


def test_questions_of_one_visit_are_answered_in_turn(pflow: Pflow, here: Path) -> None:
    (here / ".pflow" / "nodes").mkdir(parents=True)
    (here / ".pflow" / "nodes" / "two.py").write_text(
        "import asyncio\nfrom pflow import StepContext, node\n\n"
        "@node('my/two')\nasync def two(step: StepContext) -> dict:\n"
        "    return {'said': await asyncio.gather(step.ask('one?'), step.ask('two?'))}\n"
    )
    (here / "w.json").write_text(json.dumps({"nodes": [{"id": "t", "type": "my/two", "params": {}}]}))
    assert pflow("w.json").code == 3
    run_id = last_run(pflow)["run_id"]
    assert pflow("reply", run_id, "left", "--on-doubt", "retry").code == 3
    assert json.loads(pflow("reply", run_id, "right", "--on-doubt", "retry").out) == ["left", "right"]

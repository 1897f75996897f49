"""Coding agents, by stand-ins on the PATH that check their flags and answer in the documented forms."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pflow import settings
from pflow.agents.presets import PRESETS
from pflow.llm.budget import Budget, Means, using
from pflow.model.records import Failure
from tests.agents.world import World, asking, failure, outputs

StandIn = Callable[..., Path]

# What every stand-in does first: note how it was called, and refuse flags that the program does not have.
HEAD = """\
#!{python} -S
import json, os, sys
asked = {{"words": sys.argv[1:], "stdin": sys.stdin.read(), "env": dict(os.environ), "cwd": os.getcwd()}}
open({noted!r}, "w").write(json.dumps(asked))
words = sys.argv[1:]
for known, takes in {flags!r}:
    if known in words:
        at = words.index(known)
        del words[at:at + 1 + takes]
if words != {rest!r}:
    sys.exit("error: unexpected argument: " + " ".join(words))
def say(*lines):
    for line in lines:
        print(json.dumps(line), flush=True)
"""
FLAGS = {
    "claude": ([("-p", 0), ("--output-format", 1), ("--verbose", 0), ("--model", 1), ("--append-system-prompt", 1),
                ("--allowedTools", 1), ("--permission-mode", 1)], []),
    "codex": ([("--json", 0), ("--color", 1), ("--skip-git-repo-check", 0), ("--model", 1), ("--sandbox", 1)],
              ["exec", "-"]),
    "gemini": ([("--output-format", 1), ("--model", 1), ("--allowed-tools", 1), ("--yolo", 0)], []),
    "amplifier": ([("--mode", 1), ("--output-format", 1), ("--model", 1)], ["run"]),
}  # fmt: skip

CLAUDE = """
say({"type": "system", "subtype": "init", "session_id": "s", "model": "claude-sonnet-4-5", "tools": ["Bash"]},
    {"type": "assistant", "parent_tool_use_id": None, "message": {"content": [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]}},
    {"type": "user", "message": {"content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.py"}]}]}},
    {"type": "something-new", "x": 1},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "It is good.\\n{\\"ok\\": true}"}]}},
    {"type": "result", "subtype": "success", "is_error": False, "result": "It is good.\\n{\\"ok\\": true}",
     "total_cost_usd": 0.25, "num_turns": 2,
     "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 1,
               "output_tokens": 7}})
"""
CODEX = """
say({"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"},
    {"type": "error", "message": "Reconnecting... 1/5"},
    {"type": "item.completed", "item": {"id": "i0", "type": "reasoning", "text": "hm"}},
    {"type": "item.started", "item": {"id": "i1", "type": "command_execution", "command": "ls",
     "aggregated_output": "", "exit_code": None, "status": "in_progress"}},
    {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "ls",
     "aggregated_output": "a.py", "exit_code": 0, "status": "completed"}},
    {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "It is good.\\n{\\"ok\\": true}"}},
    {"type": "turn.completed", "usage": {"input_tokens": 16, "cached_input_tokens": 5, "output_tokens": 7}})
"""
GEMINI = """
print("Loaded cached credentials.")
say({"type": "init", "session_id": "s", "model": "gemini-2.5-pro"},
    {"type": "message", "role": "user", "content": "the prompt"},
    {"type": "message", "role": "assistant", "content": "I look.", "delta": True},
    {"type": "tool_use", "tool_name": "shell", "tool_id": "t1", "parameters": {"command": "ls"}},
    {"type": "tool_result", "tool_id": "t1", "status": "success", "output": "a.py"},
    {"type": "message", "role": "assistant", "content": "It is good.\\n", "delta": True},
    {"type": "message", "role": "assistant", "content": "{\\"ok\\": true}", "delta": True},
    {"type": "result", "status": "success",
     "stats": {"total_tokens": 23, "input_tokens": 16, "output_tokens": 7, "cached": 5, "duration_ms": 3}})
"""
AMPLIFIER = """
print("working", file=sys.stderr)
print(json.dumps({"status": "success", "response": "It is good.\\n{\\"ok\\": true}", "session_id": "s",
    "model": "anthropic/claude-sonnet-4-5", "metadata": {"total_tool_calls": 1},
    "execution_trace": [{"type": "tool_call", "tool": "shell", "arguments": {"command": "ls"},
                         "result": {"success": True, "output": "a.py"}, "sequence": 1}]}, indent=2))
"""
ANSWERS = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI, "amplifier": AMPLIFIER}


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Puts a program of this name on the PATH; returns where it notes how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")

    def put(name: str, code: str = "", place: Path | None = None) -> Path:
        flags, rest = FLAGS[name]
        noted = tmp_path / f"{name}.json"
        path = place or folder / name
        head = HEAD.format(python=sys.executable, noted=str(noted), flags=flags, rest=rest)
        path.write_text(head + (code or ANSWERS[name]))
        path.chmod(0o755)
        return noted

    return put


def noted(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", PRESETS)
def test_a_coding_agent_on_the_path_answers_to_its_own_name(world: World, stand_in: StandIn, name: str) -> None:
    called = stand_in(name)
    run = asking(agent=name, mode="REVIEW", prompt="Is it good?", inputs={"file": "a.py"}, outputs=["ok"])
    run.drive()
    made = run.outcome.outputs
    assert run.outcome.failure is None, run.outcome.failure
    assert made["ok"] is True and made["text"] == 'It is good.\n{"ok": true}'
    asked = noted(called)
    told = asked["stdin"] + " ".join(asked["words"])
    assert "Is it good?" in asked["stdin"] and '"file": "a.py"' in asked["stdin"]
    assert "Mode: REVIEW" in told and "these keys: ok" in told
    assert asked["cwd"] == str(world.folder) and asked["env"]["PFLOW_IDEMPOTENCY_KEY"]


@pytest.mark.parametrize("name", PRESETS)
def test_what_it_says_and_does_is_published(stand_in: StandIn, name: str) -> None:
    stand_in(name)
    run = asking(agent=name, prompt="Is it good?")
    run.drive()
    (start,), (end,) = run.said("agent:tool:start"), run.said("agent:tool:complete")
    assert start["arguments"] == {"command": "ls"} and start["tool"] == end["tool"] != ""
    assert start["id"] == end["id"] and "a.py" in end["result"]
    assert "It is good." in "".join(data["text"] for data in run.said("agent:text"))


def test_it_is_heard_while_it_works(world: World, stand_in: StandIn) -> None:
    """It waits until its words were seen: it would wait forever if they came with the answer only."""
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "ready"}]}}
    stand_in("claude", f"say({said!r})\nimport time\nwhile not os.path.exists('seen'): time.sleep(0.01)\n{CLAUDE}")
    run = asking(agent="claude", prompt="?")
    run.until(lambda event: event.event.data.get("text") == "ready", (world.folder / "seen").touch)
    assert run.outcome.outputs["text"].startswith("It is good.")


def test_claude_is_asked_for_a_stream_and_says_what_it_cost(stand_in: StandIn) -> None:
    called = stand_in("claude")
    used = outputs(agent="claude", prompt="?")["usage"]
    assert noted(called)["words"] == ["-p", "--output-format", "stream-json", "--verbose"]
    assert used == {
        "input_tokens": 16,
        "output_tokens": 7,
        "model_calls": 1,
        "cost_usd": 0.25,
        "model": "claude-sonnet-4-5",
    }


def test_codex_has_no_price_of_its_own(stand_in: StandIn) -> None:
    called = stand_in("codex")
    used = outputs(agent="codex", prompt="?")["usage"]
    assert noted(called)["words"] == ["exec", "--json", "--color", "never", "--skip-git-repo-check", "-"]
    assert (used["input_tokens"], used["output_tokens"], used["unpriced_calls"]) == (16, 7, 1)
    assert outputs(agent="codex", prompt="?", model="gpt-4o")["usage"]["cost_usd"] > 0


def test_gemini_is_priced_by_its_model(stand_in: StandIn) -> None:
    called = stand_in("gemini")
    used = outputs(agent="gemini", prompt="?")["usage"]
    assert noted(called)["words"] == ["--output-format", "stream-json"]
    assert (used["input_tokens"], used["model"]) == (16, "gemini-2.5-pro") and used["cost_usd"] > 0


def test_amplifier_is_asked_for_its_trace(stand_in: StandIn) -> None:
    called = stand_in("amplifier")
    assert outputs(agent="amplifier", prompt="?")["usage"]["unpriced_calls"] == 1
    assert noted(called)["words"] == ["run", "--mode", "single", "--output-format", "json-trace"]


# ── definitions ──


def test_a_definition_has_its_own_instructions_model_tools_and_flags(world: World, stand_in: StandIn) -> None:
    called = stand_in("claude")
    front = """\
        backend: claude
        model: opus
        tools: [Read, "Bash(git log:*)"]
        command: [claude, --permission-mode, acceptEdits]
        """
    world.agent("fixer", front, body="You fix.")
    assert outputs(agent="fixer", prompt="Fix it")["text"]
    asked = noted(called)
    assert asked["words"] == [
        "--permission-mode", "acceptEdits", "-p", "--output-format", "stream-json", "--verbose", "--model", "opus",
        "--allowedTools", "Read,Bash(git log:*)", "--append-system-prompt", "You fix.",
    ]  # fmt: skip
    assert asked["stdin"] == "Fix it"
    outputs(agent="fixer", prompt="Fix it", model="haiku")
    assert "haiku" in noted(called)["words"] and "opus" not in noted(called)["words"]


def test_instructions_stand_before_the_prompt_where_there_is_no_flag(world: World, stand_in: StandIn) -> None:
    called = stand_in("codex")
    world.agent("fixer", "backend: codex\ncommand: [codex, exec, --sandbox, workspace-write]", body="You fix.")
    outputs(agent="fixer", prompt="Fix it")
    asked = noted(called)
    assert asked["stdin"] == "You fix.\n\nFix it" and asked["words"][:3] == ["exec", "--sandbox", "workspace-write"]


def test_instructions_too_long_for_a_flag_are_told_with_the_prompt(world: World, stand_in: StandIn) -> None:
    called = stand_in("claude")
    world.agent("fixer", "backend: claude", body="x" * 200_000)
    outputs(agent="fixer", prompt="Fix it")
    assert len(noted(called)["stdin"]) > 200_000 and "--append-system-prompt" not in noted(called)["words"]


def test_a_definition_of_the_same_name_comes_first(world: World, stand_in: StandIn) -> None:
    stand_in("claude")
    world.sh("claude", "echo mine")
    assert outputs(agent="claude", prompt="?")["text"] == "mine"


def test_a_program_elsewhere_is_named_by_the_definition(world: World, stand_in: StandIn) -> None:
    stand_in("claude", place=world.folder / "my-claude")
    world.agent("fixer", "backend: claude\ncommand: [./my-claude]")
    assert outputs(agent="fixer", prompt="?")["text"].startswith("It is good.")


def test_a_conversation_is_told_in_words(stand_in: StandIn) -> None:
    called = stand_in("gemini")
    outputs(agent="gemini", messages=[{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}])
    assert noted(called)["stdin"] == "user: 1\n\nassistant: 2"


def test_its_keys_are_passed_on_and_nothing_else(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://proxy")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("CLAUDECODE", "1")  # would tell it that it runs inside itself
    settings.save(settings.Settings(env={"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "o"}))
    called = stand_in("claude")
    outputs(agent="claude", prompt="?")
    env = noted(called)["env"]
    assert env["ANTHROPIC_BASE_URL"] == "http://proxy" and env["ANTHROPIC_API_KEY"] == "k"
    assert {"SECRET_TOKEN", "AWS_SECRET_ACCESS_KEY", "CLAUDECODE", "OPENAI_API_KEY"}.isdisjoint(env)


# ── what can go wrong ──


def why(**params: Any) -> tuple[Failure, str]:
    run = asking(prompt="?", **params)
    run.drive()
    failed = run.outcome.failure
    assert failed is not None
    return failed, "\n".join(failed.suggestions)


@pytest.mark.parametrize("name", PRESETS)
def test_one_that_is_absent_is_said_to_be_with_what_to_do(world: World, stand_in: StandIn, name: str) -> None:
    other = next(one for one in PRESETS if one != name)
    stand_in(other)
    world.agent("mine", f"backend: {name}")
    for agent in (name, "mine"):
        failed, advice = why(agent=agent)
        assert failed.kind == "agent" and f'its program "{name}" is not on the PATH' in failed.message
        assert PRESETS[name].install in failed.hint and f"on this machine: {other}" in failed.hint
        assert "install it" in advice and "command: [" in advice


def test_those_that_are_there_are_among_the_known(stand_in: StandIn) -> None:
    stand_in("gemini")
    assert 'did you mean "gemini"?' in failure(agent="gemni", prompt="?").hint


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("claude", 'say({"type": "result", "subtype": "error_max_turns", "is_error": True})', "error max turns"),
        ("claude", 'say({"type": "result", "subtype": "success", "is_error": True, "result": "Overloaded"})\n'
         "sys.exit(1)", "Overloaded"),
        ("codex", 'say({"type": "turn.failed", "error": {"message": "stream disconnected"}}); sys.exit(1)',
         "stream disconnected"),
        ("gemini", 'say({"type": "result", "status": "error", "error": {"type": "x", "message": "quota"}})', "quota"),
        ("amplifier", 'print(json.dumps({"status": "error", "error": "no bundle"})); sys.exit(1)', "no bundle"),
        ("codex", 'sys.exit("error: boom")', "ended with exit code 1: error: boom"),
    ],
)  # fmt: skip
def test_a_failure_is_told_in_its_own_words(stand_in: StandIn, name: str, code: str, said: str) -> None:
    stand_in(name, code)
    failed, advice = why(agent=name)
    assert failed.kind == "agent" and said in failed.message
    assert f"echo 'Say hello' | {name}" in advice


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("claude", 'say({"type": "result", "is_error": True, "result": "Invalid API key · Please run /login"})'),
        ("gemini", 'print("Please set an Auth method or GEMINI_API_KEY", file=sys.stderr); sys.exit(41)'),
    ],
)
def test_a_missing_login_says_how_to_log_in(stand_in: StandIn, name: str, code: str) -> None:
    stand_in(name, code)
    failed, advice = why(agent=name)
    assert failed.kind == "auth" and failed.hint == PRESETS[name].login and PRESETS[name].login in advice


@pytest.mark.parametrize("code", ['say({"type": "system", "subtype": "init"})', "pass", 'print("  ")'])
def test_one_that_answers_nothing_has_failed(stand_in: StandIn, code: str) -> None:
    stand_in("claude", code)
    assert "printed nothing" in failure(agent="claude", prompt="?").message


def test_what_is_no_json_is_the_answer(stand_in: StandIn) -> None:
    """As of a version that knows the flags of its own time only."""
    stand_in("claude", 'print("Just words.")')
    assert outputs(agent="claude", prompt="?")["text"] == "Just words."


def test_the_json_of_one_document_is_understood_too(stand_in: StandIn) -> None:
    stand_in("gemini", 'print(json.dumps({"session_id": "s", "response": "fine", "stats": {}}, indent=2))')
    assert outputs(agent="gemini", prompt="?")["text"] == "fine"


@pytest.mark.parametrize(
    "line",
    ['{"type": "assistant", "message": "x"}', '{"type": "assistant", "message": {"content": [1, {"type": "text"}]}}',
     '{"type": "result", "usage": [], "total_cost_usd": "much", "result": 3, "errors": 4}', '{"type": 7}', "{", "[1]",
     '{"type": "user", "message": {"content": [{"type": "tool_result", "content": null}]}}'],
)  # fmt: skip
def test_lines_of_another_form_are_passed_over(stand_in: StandIn, line: str) -> None:
    stand_in("claude", f"print({line!r})\n{CLAUDE}")
    assert outputs(agent="claude", prompt="?")["text"].startswith("It is good.")


def test_a_line_without_an_end_is_stopped(stand_in: StandIn) -> None:
    stand_in("claude", "while True: sys.stdout.write('x' * 1_000_000)")
    assert failure(agent="claude", prompt="?").details["reason"] == "flood"


def test_tools_are_refused_where_the_program_takes_no_list(world: World, stand_in: StandIn) -> None:
    stand_in("codex")
    world.agent("mine", "backend: codex\ntools: [shell]")
    failed = failure(agent="mine", prompt="?")
    assert failed.kind == "validation" and "takes no such list" in failed.message


# ── budget ──


def test_what_it_costs_counts_and_a_spent_budget_holds_the_next(stand_in: StandIn) -> None:
    called = stand_in("claude")
    budget = Budget(0.25)
    with using(Means(budget=budget)):
        asking(agent="claude", prompt="one").drive()
        called.unlink()
        held = asking(agent="claude", prompt="two")
        held.drive()
    assert budget.spent == 0.25 and held.status == "paused" and not called.exists()

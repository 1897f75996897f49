"""Tasks inside a node: at once, all awaited, each in the journal by itself."""

from __future__ import annotations

from typing import Any

import pytest

from pflow.model.records import Ended, Outcome
from pflow.model.workflow import Node, Output, Policy, Retry
from tests.agents.world import NODE, VISIT, Asking, World, asking, failure, flow, outputs, runs
from tests.limits import LIMIT, run_out

TASKS = ["lint_check", "type_check", "security_scan"]
ABOUT_ALL = ["all_passed", "failed_checks", "validation_report"]


def prompts(made: dict[str, Any]) -> list[str]:
    return [one["text"] for one in made["results"]]


def tasks(**params: Any) -> dict[str, Any]:
    return outputs("agent.tasks", **params)


@pytest.fixture(autouse=True)
def _echo(world: World) -> None:
    world.python("echo", "print(asked['prompt'])")


def test_each_task_is_one_call_and_results_come_in_order(world: World) -> None:
    made = tasks(agent="echo", tasks=TASKS, outputs=ABOUT_ALL)
    assert made["all_passed"] is True and made["failed_checks"] == []
    assert [(one["task"], one["text"], one["passed"]) for one in made["results"]] == [(t, t, True) for t in TASKS]
    assert made["validation_report"].startswith("lint_check: passed\nlint_check\n\ntype_check: passed")


def test_failures_are_collected_and_do_not_fail_the_node(world: World) -> None:
    world.python("picky", "sys.exit('bad types') if 'type' in asked['prompt'] else print('fine')")
    made = tasks(agent="picky", tasks=TASKS, outputs=ABOUT_ALL)
    assert made["all_passed"] is False and made["failed_checks"] == ["type_check"]
    failed = made["results"][1]
    assert failed["passed"] is False and failed["kind"] == "agent" and "bad types" in failed["error"]
    assert 'type_check: FAILED\nagent "picky" ended with exit code 1: bad types' in made["validation_report"]


def test_a_task_whose_answer_says_no_has_failed(world: World) -> None:
    world.python("judge", "print('passed: ' + ('no' if 'lint' in asked['prompt'] else 'yes'))")
    assert tasks(agent="judge", tasks=TASKS, outputs=ABOUT_ALL)["failed_checks"] == ["lint_check"]


def test_without_declared_outputs_there_are_results() -> None:
    assert list(tasks(agent="echo", tasks=["a"])) == ["results"]


def test_other_outputs_are_lists_of_what_each_task_gave(world: World) -> None:
    world.python("scorer", "print('score:', len(asked['prompt']), '\\nlist:', asked['outputs'])")
    made = tasks(agent="scorer", tasks=["a", "bb"], outputs=["score", "all_passed"])
    assert made["score"] == [1, 2] and made["results"][0]["text"].endswith("list: ['score']")


# ── the prompt ──


def test_a_prompt_mentions_its_task_beside_what_the_workflow_knows() -> None:
    run = asking(
        "agent.tasks", None, {"files": ["x.py"]}, agent="echo", prompt="Run {task} on {files}", tasks=["a", "b"]
    )
    run.drive()
    assert prompts(run.outcome.outputs) == ['Run a on ["x.py"]', 'Run b on ["x.py"]']


@pytest.mark.parametrize("name", ["task", "item"])
def test_a_prompt_that_does_not_mention_its_task_gets_it_appended(name: str) -> None:
    made = tasks(agent="echo", prompt="Check this.\n", tasks=["a", "b"], **{"as": name})
    assert prompts(made) == [f"Check this.\n\n{name}: a", f"Check this.\n\n{name}: b"]


def test_both_names_work_unless_the_workflow_has_one_of_its_own() -> None:
    params = {"agent": "echo", "prompt": "{task}/{item}", "tasks": ["a"], "as": "item"}
    assert prompts(tasks(**params)) == ["a/a"]
    run = asking("agent.tasks", None, {"task": "outer"}, **params)
    run.drive()
    assert prompts(run.outcome.outputs) == ["outer/a"]


def test_items_come_from_the_workflow_and_are_never_read_as_templates() -> None:
    items = [{"path": "a", "n": 1}, {"path": "{b}"}, "{c}"]
    params = {"agent": "echo", "tasks": "{files}", "as": "item"}
    run = asking("agent.tasks", None, {"files": items}, prompt="Look at {item}", **params)
    run.drive()
    assert prompts(run.outcome.outputs) == ['Look at {"path":"a","n":1}', 'Look at {"path":"{b}"}', "Look at {c}"]
    assert [one["item"] for one in run.outcome.outputs["results"]] == items
    run = asking("agent.tasks", None, {"files": items[:2]}, prompt="{item.path}", **params)
    run.drive()
    assert prompts(run.outcome.outputs) == ["a", "{b}"]


def test_a_list_that_an_agent_answered_as_text() -> None:
    run = asking("agent.tasks", None, {"files": '["a", "b"]'}, agent="echo", tasks="{files}")
    run.drive()
    assert prompts(run.outcome.outputs) == ["a", "b"]


def test_without_a_prompt_the_task_is_asked_with_the_context(world: World) -> None:
    world.python("context", "json.dump(asked['inputs'], sys.stdout)")
    run = asking("agent.tasks", None, {"code": "x = 1", "_private": 1}, agent="context", tasks=["a"], inputs={"own": 2})
    run.drive()
    assert run.outcome.outputs["results"][0]["text"] == '{"code": "x = 1", "own": 2}'


@pytest.mark.parametrize(
    ("params", "kind", "said"),
    [
        ({"tasks": ["a"], "prompt": "{nothing}"}, "binding", "nothing"),
        ({"tasks": "{nothing}"}, "binding", "nothing"),
        ({"tasks": "just words"}, "validation", "must be a list, not text"),
        ({"tasks": 5}, "validation", "must be a list, not number"),
        ({"tasks": [{"name": "x", "inputs": [1]}]}, "validation", 'inputs of the task "x" are list'),
        ({"tasks": ["a"], "max_concurrent": 0}, "validation", "max_concurrent is 0"),
    ],
)
def test_bad_params(params: dict[str, Any], kind: str, said: str) -> None:
    failed = failure("agent.tasks", agent="echo", **params)
    assert failed.kind == kind and said in failed.message


def test_no_tasks_have_all_passed() -> None:
    made = tasks(agent="echo", tasks=[], outputs=ABOUT_ALL)
    assert made == {"all_passed": True, "failed_checks": [], "validation_report": "", "results": []}


# ── tasks that say more ──


def test_a_task_may_have_its_own_agent_prompt_and_mode(world: World) -> None:
    world.python("modes", "print(asked['mode'], asked['prompt'], asked['inputs'])")
    given = [
        {"name": "one", "agent": "modes", "agent_mode": "REVIEW", "inputs": {"a": "{x}"}},
        {"id": "two", "prompt": "Only {task}, with {x}"},
        "three",
    ]
    run = asking("agent.tasks", None, {"x": "X"}, agent="echo", prompt="Do {task}", tasks=given)
    run.drive()
    assert prompts(run.outcome.outputs) == ["REVIEW Do one {'a': 'X'}", "Only two, with X", "Do three"]
    assert [one["task"] for one in run.outcome.outputs["results"]] == ["one", "two", "three"]


def test_a_task_may_be_a_workflow(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = flow(Node("i", "echo", {"text": "{x}!"}), outputs=(Output("said", "{i.text}"), Output("passed", "{ok}")))
    monkeypatch.setattr(Asking, "documents", {"sub.yaml": inner})
    given = [{"name": "sub", "workflow": "sub.yaml", "inputs": {"x": "hi", "ok": "no"}}, {"workflow": "gone.yaml"}]
    made = tasks(agent="echo", tasks=given, outputs=ABOUT_ALL)
    assert made["results"][0] == {"task": "sub", "passed": False, "said": "hi!"}
    assert made["failed_checks"] == ["sub", "gone.yaml"]


def test_an_item_is_a_task_only_if_it_says_what_to_do() -> None:
    given = [{"prompt": "Just {this}"}, {"prompt": "x", "size": 3}]
    run = asking("agent.tasks", None, {"found": given}, agent="echo", prompt="{item}", tasks="{found}", as_="item")
    run.drive()
    assert prompts(run.outcome.outputs) == ["Just {this}", '{"prompt":"x","size":3}']


# ── at once, and through a crash ──

# Each task waits for all others to have begun: run one after the other, they would wait forever.
TOGETHER = """
open(asked['prompt'], 'w').close()
while not all(os.path.exists(name) for name in 'abcd'): time.sleep(0.01)
print('met')
"""


def test_tasks_run_at_once(world: World) -> None:
    world.python("together", TOGETHER)
    assert prompts(tasks(agent="together", tasks=list("abcd"))) == ["met"] * 4


def test_no_more_than_so_many_run_at_once(world: World) -> None:
    world.python(
        "counter",
        """
        mine = f"at-work-{asked['prompt']}"
        open(mine, "w").close()
        print(len([name for name in os.listdir(".") if name.startswith("at-work-")]))
        os.unlink(mine)
        """,
    )
    assert max(map(int, prompts(tasks(agent="counter", tasks=list("abcdefgh"), max_concurrent=2)))) <= 2


def test_each_task_is_a_visit_of_its_own(world: World) -> None:
    run = asking("agent.tasks", agent="echo", tasks=["lint", "a/b #1", "lint", "", "given"])
    run.drive()
    ended = [record.visit for record in run.log.records if isinstance(record, Ended)]
    below = [visit.removeprefix(f"{VISIT}/") for visit in ended if "/" in visit]
    assert sorted(below) == sorted(["lint#1", "a-b-1#1", "lint-2#1", "task#1", "given-2#1"])
    assert ended[-1] == VISIT
    assert f"node:{NODE}/lint" in {event.context.task for event in run.events}


COUNTED = "with open('calls', 'a') as f: f.write(asked['prompt'] + '\\n')\n"


def test_a_resumed_run_asks_nobody_twice(world: World) -> None:
    """Cut off after every record, each resume ends alike, and only what was under way is asked again."""
    code = COUNTED + "sys.exit('no') if asked['prompt'] == 'b' else print(asked['prompt'])"
    world.python("counted", code)
    params = {"agent": "counted", "tasks": list("abc"), "max_concurrent": 1, "outputs": ["failed_checks"]}
    whole = asking("agent.tasks", **params)
    whole.drive()
    log = world.folder / "calls"
    for count in range(1, len(whole.log.records)):
        log.unlink(missing_ok=True)
        done = {record.visit for record in whole.log.records[:count] if isinstance(record, Ended)}
        again = whole.again(count, on_doubt="retry").drive()
        assert again.outputs == whole.outputs
        called = log.read_text().split() if log.exists() else []
        assert called == [name for name in "abc" if VISIT not in done and f"{VISIT}/{name}#1" not in done]


def test_a_cancel_ends_all_tasks(world: World) -> None:
    world.sh("hangs", "echo $$ >&2; exec sleep 1000")
    run = asking("agent.tasks", agent="hangs", tasks=list("abc"))
    run.until(
        lambda _: len(run.said("agent:text")) == 3 and not run.run.memory.finished, lambda: run.run.cancel("enough")
    )
    assert run.status == "cancelled" and run.outcome.status == "cancelled"
    assert not any(runs(data["text"].strip()) for data in run.said("agent:text"))


def test_a_timeout_of_the_node_ends_all_tasks(world: World) -> None:
    world.sh("hangs", "echo $$ >&2; exec sleep 1000")
    run = asking("agent.tasks", Policy(timeout=LIMIT), agent="hangs", tasks=list("abc"))
    run_out(run.run.drive(), lambda: len(run.said("agent:text")) == 3)
    assert run.outcome.failure is not None and run.outcome.failure.kind == "timeout"
    assert not any(runs(data["text"].strip()) for data in run.said("agent:text"))


def test_retries_are_the_tasks_own(world: World) -> None:
    """The node does not fail by its tasks, so what it says about retries is meant for each of them."""
    world.python("flaky", COUNTED + "print('ok') if open('calls').read().split().count('b') > 1 else sys.exit('x')")
    run = asking("agent.tasks", Policy(Retry(3)), agent="flaky", tasks=["b"], outputs=["all_passed"])
    run.drive()
    assert run.outcome.outputs["all_passed"] is True
    inner: Outcome = run.ended[f"{VISIT}/b#1"]
    assert inner.attempts == 2 and run.outcome.attempts == 1

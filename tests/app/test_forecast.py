from __future__ import annotations

from pathlib import Path

import pytest

from pflow import app
from pflow.app import cache, library
from pflow.errors import UsageError, WorkflowError
from tests.reuse.iterating import Iterating, act, pure


def would(it: Iterating, **inputs: object) -> dict[str, tuple[str, str]]:
    options = app.Options(home=it.home, workspace=it.folder, types=it.types(), clock=it.clock)
    _, found = cache.prospects(app.load(it.path), inputs, options)
    return {node: (one.would, str(one)) for node, one in found.items()}


@pytest.fixture
def abc(tmp_path: Path) -> Iterating:
    return Iterating(tmp_path, act("a"), pure("p", "${a.text}"), act("c", "${p.text}"))


def test_the_forecast_says_what_would_run_and_why_and_runs_nothing(abc: Iterating) -> None:
    assert [word for word, _ in would(abc).values()] == ["run", "run", "run"]
    assert not abc.acts
    abc.run()
    assert [word for word, _ in would(abc).values()] == ["reuse"] * 3
    abc.write(act("a", "x"), pure("p", "${a.text}"), act("c", "${p.text}"))
    assert would(abc) == {
        "a": ("run", "config changed: params.text"),
        "p": ("run", "upstream would run: a"),
        "c": ("run", "upstream would run: p"),
    }
    assert sum(abc.acts.values()) == 3


def test_the_forecast_comes_true(abc: Iterating) -> None:
    abc.run()
    abc.write(act("a"), pure("p", "${a.text}!"), act("c", "${p.text}"), act("d"))
    foretold = "".join(sorted(node for node, (word, _) in would(abc).items() if word == "run"))
    assert abc.ran() == foretold


def test_status_and_why(abc: Iterating) -> None:
    abc.fail.add("c")
    abc.run()
    status = cache.status(abc.path, abc.home)
    assert [(one.node, one.status) for one in status.nodes] == [("a", "cached"), ("p", "cached"), ("c", "failed")]
    assert status.size > 0 and status.nodes[2].note == "c is broken"
    options = app.Options(home=abc.home, workspace=abc.folder, types=abc.types(), clock=abc.clock)
    abc.write(act("a", "new"))
    why = cache.why(abc.path, "a", {}, options)
    assert ("params.text", "", "new") in why.fields and str(why.prospect) == "config changed: params.text"
    with pytest.raises(UsageError, match="no node"):
        cache.why(abc.path, "zz", {}, options)


def test_clearing(abc: Iterating) -> None:
    abc.run()
    assert cache.clear(abc.path, abc.home) and not cache.clear(abc.path, abc.home)
    abc.run()
    assert cache.clear_all(abc.home) == 1 and cache.clear_all(abc.home) == 0
    assert abc.ran() == "acp"


def test_saved_workflows(abc: Iterating) -> None:
    path = library.save(app.load(abc.path), "mine", abc.home)
    assert library.find("mine", abc.home) == path and [one.name for one in library.saved(abc.home)] == ["mine"]
    with pytest.raises(UsageError, match="already"):
        library.save(app.load(abc.path), "mine", abc.home)
    for name in ("../x", "", ".hidden", "a/b"):
        with pytest.raises(UsageError, match="cannot be the name"):
            library.save(app.load(abc.path), name, abc.home)
    with pytest.raises(UsageError) as caught:
        library.get("mime", abc.home)
    assert 'did you mean "mine"' in caught.value.hint
    library.delete("mine", abc.home)
    assert library.find("mine", abc.home) is None
    abc.path.write_text("{")
    with pytest.raises(WorkflowError):
        library.save(app.load(abc.path), "bad", abc.home)


LOOP = """\
name: loop
nodes:
  - {id: write, agent: writer, prompt: write, outputs: [draft], next: review}
  - {id: review, agent: reviewer, prompt: "review {draft}", outputs: [approved], next: {yes: finish, no: write}}
  - {id: finish, agent: writer, prompt: "done {draft}", outputs: [final], type: terminal}
  - {id: other, agent: writer, prompt: other, type: terminal}
"""


@pytest.fixture
def loop(tmp_path: Path) -> Iterating:
    """Two drafts are refused; then there is no third review unless the file "calm" exists."""
    agents = tmp_path / ".pflow" / "agents"
    agents.mkdir(parents=True)
    write = "cat > /dev/null; echo x >> drafts; wc -l < drafts"
    review = "cat > /dev/null; test $(wc -l < drafts) -le 2 && echo no || { test -e calm && echo yes; }"
    for name, command in (("writer", write), ("reviewer", review)):
        (agents / f"{name}.md").write_text(f"---\nname: {name}\ncommand: [sh, -c, '{command}']\n---\n")
    made = Iterating(tmp_path)
    made.path = tmp_path / "loop.yaml"
    made.path.write_text(LOOP)
    return made


def test_the_forecast_of_a_loop_follows_it_as_far_as_it_is_known(loop: Iterating) -> None:
    unknown = ("look", "if the run comes to it")
    assert would(loop) == {
        "write": ("run", "no earlier result"), "review": unknown, "finish": unknown, "other": unknown,
    }  # fmt: skip
    assert loop.run().status == "failed"
    now = would(loop)
    assert now["write"][0] == "reuse" and now["write"][1].startswith("visit 3: cached")
    assert now["review"] == ("run", "visit 3: it failed last time") and now["finish"] == unknown
    (loop.folder / "calm").touch()
    made = loop.run()
    reused = [visit for visit, one in made.visits.items() if one.reused]
    assert reused == ["write#1", "review#1", "write#2", "review#2", "write#3"]
    assert made.status == "completed" and list(made.visits)[5:] == ["review#3", "finish#1"]

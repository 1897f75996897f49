from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow import StepContext, app, flow_safe, node
from pflow.app import cache
from pflow.app.wording import sentence
from pflow.nodes.type import describe_type
from pflow.reuse.iterations import Iterations, folder_of, name_of
from pflow.reuse.recipe import compare, differences, nearest
from tests.reuse.iterating import Iterating, act, pure


@pytest.fixture
def abc(tmp_path: Path) -> Iterating:
    return Iterating(tmp_path, act("a"), act("b", "${a.text}"), act("c", "${b.text}"))


def test_the_first_page_of_the_story(abc: Iterating) -> None:
    """Node 3 fails, is fixed, and is run again: each effect of the others happened exactly once."""
    abc.fail.add("c")
    assert abc.run().status == "failed"
    abc.fail.clear()
    result = abc.run()
    assert result.status == "completed"
    assert dict(abc.acts) == {"a": 1, "b": 1, "c": 2}
    assert [result.visits[visit].reused for visit in ("a#1", "b#1", "c#1")] == [True, True, False]
    assert abc.whys() == {"c": "it failed last time"}


def test_second_run_uses_cache_for_unchanged_nodes(abc: Iterating) -> None:
    first = abc.run()
    assert abc.ran() == ""
    again = abc.run()
    assert again.outputs == first.outputs
    assert all(outcome.reused and outcome.usage == {} for outcome in again.visits.values())


def test_side_effect_node_not_re_executed_on_cache_hit(abc: Iterating) -> None:
    for _ in range(5):
        abc.run()
    assert dict(abc.acts) == {"a": 1, "b": 1, "c": 1}


def test_modified_node_invalidates_downstream(abc: Iterating) -> None:
    abc.run()
    abc.write(act("a"), act("b", "${a.text} edited"), act("c", "${b.text}"))
    assert abc.ran() == "bc"
    assert abc.whys() == {"b": "config changed: params.text", "c": "upstream changed: b"}


def test_saved_workflow_does_not_use_iteration_cache(abc: Iterating) -> None:
    abc.run()
    assert abc.ran(iterate=False) == "abc"


def test_cache_cleared_on_explicit_clear(abc: Iterating) -> None:
    abc.run()
    store = Iterations(folder_of(abc.path, abc.home))
    assert store.size() > 0 and store.clear() and not store.clear()
    assert abc.ran() == "abc"


def test_a_run_that_died_half_way_does_not_serve_what_was_made_from_the_old(abc: Iterating) -> None:
    """Run 2 executes the edited A and dies before B; run 3, in which A hits, must run B."""
    abc.run()
    abc.write(act("a", "new"), act("b", "${a.text}"), act("c", "${b.text}"))
    abc.fail.add("b")
    assert abc.run().status == "failed"
    abc.fail.clear()
    assert abc.ran() == "bc"
    assert abc.ran() == ""


def test_downstream_and_cosmetic_edits_re_run_nothing_above(abc: Iterating) -> None:
    abc.run()
    abc.write(act("a", purpose="why"), act("b", "${a.text}"), act("c", "${b.text}!"), metadata={"x": 1})
    assert abc.ran() == "c"
    text = abc.path.read_text()
    abc.path.write_text(json.dumps(dict(reversed(list(json.loads(text).items()))), indent=4))
    assert abc.ran() == ""


def test_inserting_removing_or_reordering_upstream_re_runs_what_is_below_and_nothing_beside(tmp_path: Path) -> None:
    edges = [{"from": "a", "to": "c"}, {"from": "b", "to": "d"}]
    it = Iterating(tmp_path, act("a"), act("b"), act("c"), act("d"), edges=edges)
    assert it.ran() == "abcd"
    inserted = [{"from": "a", "to": "x"}, {"from": "x", "to": "c"}, {"from": "b", "to": "d"}]
    it.write(act("a"), act("b"), act("c"), act("d"), act("x"), edges=inserted)
    assert it.ran() == "cx"
    it.write(act("a"), act("b"), act("c"), act("d"), edges=edges)
    assert it.ran() == ""  # as it was: the entries of then still serve
    swapped = [{"from": "b", "to": "c"}, {"from": "a", "to": "d"}]
    it.write(act("a"), act("b"), act("c"), act("d"), edges=swapped)
    assert it.ran() == "cd"


def test_commenting_a_node_out_and_back_repeats_nothing(abc: Iterating) -> None:
    abc.run()
    abc.write(act("a"), act("b", "${a.text}"))
    assert abc.ran() == ""
    abc.write(act("a"), act("b", "${a.text}"), act("c", "${b.text}"))
    assert abc.ran() == ""


def test_inputs_are_a_part_of_the_key_both_ways(tmp_path: Path) -> None:
    inputs = {"url": {"type": "string"}, "other": {"type": "string", "default": ""}}
    it = Iterating(tmp_path, act("a", "${url}"), act("b"), inputs=inputs, edges=[{"from": "b", "to": "a"}])
    assert it.ran({"url": "A"}) == "ab"
    assert it.ran({"url": "B"}) == "a"
    assert it.ran({"url": "A"}) == "" and it.ran({"url": "B"}) == ""
    assert it.ran({"url": "A", "other": "x"}) == ""


def test_pure_nodes_are_cut_off_early(tmp_path: Path) -> None:
    it = Iterating(tmp_path, act("a", "x"), pure("p", "${a.text}"), act("b", "${p.text}"))
    assert it.ran() == "abp"
    it.write(act("a", "x", exec={"cache": False}), pure("p", "${a.text}"), act("b", "${p.text}"))
    # a runs again and says the same: p need not, but b, which acts on the world, comes after something new
    assert it.ran() == "ab"


def test_with_the_common_cache_too_nothing_below_a_pure_node_is_repeated(tmp_path: Path) -> None:
    """Wherever the outcome of a pure visit is found, what comes of it is the same."""
    it = Iterating(tmp_path, act("a", "x"), pure("p", "${a.text}"), act("b", "${p.text}"))
    assert it.ran(use_cache=True) == "abp"
    result = it.run(use_cache=True)
    assert all(outcome.reused for outcome in result.visits.values()) and it.acts["b"] == 1
    kinds = [outcome.reason.kind for outcome in result.visits.values() if outcome.reason is not None]
    assert kinds == ["cached", "same-inputs", "cached"]
    assert it.ran() == "" and it.ran(use_cache=True, reset_cache=True) == ""  # its own are not in common


def test_a_pure_node_has_one_key_wherever_it_is_kept(tmp_path: Path) -> None:
    it = Iterating(tmp_path, pure("p", "x"))
    it.run(use_cache=True)
    (common,) = (it.home / "cache").glob("*.json")
    (own,) = (folder_of(it.path, it.home) / "entries").iterdir()
    assert own.name == f"p.{common.stem[:24]}.json" and own.read_bytes() == common.read_bytes()


class Sharing(Iterating):
    """A world in which nodes leave values for others beside their outputs."""

    def types(self) -> tuple[Any, ...]:
        @node("t/put", shared=("mood",))
        async def put(step: StepContext, text: str = "") -> None:
            self.acts[step.node_id] += 1
            step.shared["mood"] = text

        @node("t/hear", shared=("mood",))
        async def hear(step: StepContext) -> dict[str, Any]:
            self.acts[step.node_id] += 1
            return {"text": step.shared.get("mood")}

        @flow_safe
        @node("t/hear-purely", effect="pure", version="1", shared=("mood",))
        async def hear_purely(step: StepContext) -> dict[str, Any]:
            self.acts[step.node_id] += 1
            return {"text": step.shared.get("mood")}

        return (*super().types(), put, hear, describe_type(hear_purely, trusted=True))


@pytest.mark.parametrize("kind", ["t/hear", "t/hear-purely"])
def test_a_shared_value_that_a_type_declares_is_a_part_of_the_key(kind: str, tmp_path: Path) -> None:
    """No edge leads from the node that puts it to the one that hears it, so nothing else tells of a change."""
    put, hear = {"id": "p", "type": "t/put", "params": {"text": "calm"}}, {"id": "h", "type": kind}
    it = Sharing(tmp_path, put, hear, act("z"), edges=[{"from": "h", "to": "z"}])
    assert it.ran() == "hpz" and it.ran() == ""
    it.write({**put, "params": {"text": "cross"}}, hear, act("z"), edges=[{"from": "h", "to": "z"}])
    result = it.run()
    assert result.outputs["h"] == {"text": "cross"}
    assert it.whys()["h"] == "shared key changed: mood"


def test_a_file_that_a_visit_changes_is_its_output_even_if_it_was_there_before(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("before\n")
    it = Iterating(tmp_path, {"id": "a", "type": "shell", "params": {"command": "echo more | tee -a log.txt"}})
    for _ in range(3):
        assert it.run().success
    assert (tmp_path / "log.txt").read_text() == "before\nmore\n"


def test_a_file_that_a_command_writes_to_is_no_input_even_if_it_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("same\n")
    command = "echo same > out.txt; echo x >> log.txt"
    it = Iterating(tmp_path, {"id": "a", "type": "shell", "params": {"command": command}})
    it.run()
    (tmp_path / "out.txt").write_text("edited\n")
    it.run()
    assert (tmp_path / "log.txt").read_text() == "x\n" and (tmp_path / "out.txt").read_text() == "edited\n"


def test_should_use_cache_returns_false_when_expired(abc: Iterating) -> None:
    abc.run()
    abc.clock._now += 23 * 3600
    assert abc.ran() == ""
    abc.clock._now += 2 * 3600
    assert abc.ran() == "abc"
    assert "old" in abc.whys()["a"]


def test_cache_can_be_turned_off_per_node_per_run_and_by_setting(abc: Iterating) -> None:
    abc.write(act("a", exec={"cache": False}), act("b"), edges=[])
    abc.write(act("a", exec={"cache": False}), act("b"), start_node="a", edges=[{"from": "a", "to": "b"}])
    assert abc.ran() == "ab" and abc.ran() == "ab"  # b comes after something new each time
    from pflow import settings

    settings.save(settings.set_value(settings.load(abc.home), "cache.iteration_mode", "off"), abc.home)
    abc.write(act("a"))
    assert abc.ran() == "a" and abc.ran() == "a"


def test_rerun_executes_a_node_and_what_is_below(abc: Iterating) -> None:
    abc.run()
    assert abc.ran(rerun=("b",)) == "bc"
    assert abc.whys()["b"] == "--rerun"
    assert abc.ran() == ""


def test_two_nodes_that_append_to_one_log_run_once(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    append = [
        {"id": name, "type": "shell", "params": {"command": f"echo {name} >> log.txt; wc -l log.txt"}} for name in "ab"
    ]
    it = Iterating(tmp_path, *append)
    for _ in range(3):
        assert it.run().status == "completed"
    assert log.read_text() == "a\nb\n"


def test_editing_a_file_that_a_word_of_a_command_names_re_runs_its_readers(tmp_path: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("1")
    read = {"id": "r", "type": "shell", "params": {"command": "cat data.txt | tee out.txt >> seen.txt; cat data.txt"}}
    it = Iterating(tmp_path, act("a"), read, act("b", "${r.stdout}"), act("x"),
                   edges=[{"from": "a", "to": "r"}, {"from": "r", "to": "b"}])  # fmt: skip
    assert it.ran() == "abx"
    assert it.ran() == "" and (tmp_path / "seen.txt").read_text() == "1"
    data.write_text("2")
    assert it.ran() == "b"
    assert "data.txt" in it.whys()["r"] and (tmp_path / "seen.txt").read_text() == "12"


def test_a_file_that_a_visit_changed_is_no_input_of_it(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("before\n")
    it = Iterating(tmp_path, {"id": "t", "type": "shell", "params": {"command": "echo x | tee -a log.txt"}})
    it.run()
    assert it.run().visits["t#1"].reused and log.read_text() == "before\nx\n"


def test_what_a_command_writes_to_is_no_input_of_it_even_if_it_was_the_same_before(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("x\n")
    it = Iterating(tmp_path, {"id": "w", "type": "shell", "params": {"command": "echo x > out.txt"}})
    it.run()
    (tmp_path / "out.txt").write_text("somebody else\n")
    assert it.run().visits["w#1"].reused


def test_editing_the_source_of_a_local_node_re_runs_it(tmp_path: Path) -> None:
    folder = tmp_path / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    source = "from pflow import node\n@node('mine/say')\ndef say(text: str) -> dict:\n    return {'said': text + '!'}\n"
    (folder / "mine.py").write_text(source)
    it = Iterating(tmp_path, {"id": "m", "type": "mine/say", "params": {"text": "x"}}, act("b", "${m.said}"), act("c"),
                   edges=[{"from": "m", "to": "b"}])  # fmt: skip
    assert it.ran() == "bc" and it.ran() == ""
    (folder / "mine.py").write_text(source.replace("!", "?"))
    result = it.run()
    assert result.outputs["b"]["text"] == "x?" and dict(it.acts) == {"b": 2, "c": 1}


def test_loops_and_batches_keep_an_entry_for_each_item(tmp_path: Path) -> None:
    batch = {"items": [1, 2, 3, 4], "error_handling": "fail_fast"}
    it = Iterating(tmp_path, act("b", "${item}", batch=batch))
    it.run()
    assert it.acts["b"] == 4
    it.write(act("b", "${item}", batch={**batch, "items": [1, 2, 9, 4, 5]}))
    it.run()
    assert it.acts["b"] == 6  # the third item changed, and one was added
    assert it.run().visits["b#1"].reused


def test_a_workflow_inside_is_reused_node_by_node(tmp_path: Path) -> None:
    inner = tmp_path / "inner.json"
    inner.write_text(json.dumps({"nodes": [act("i", "1"), act("j", "${i.text}")]}))
    it = Iterating(
        tmp_path, {"id": "s", "type": "workflow", "params": {"workflow_ref": "inner.json"}}, act("z", "${s.j.text}")
    )
    assert it.ran() == "ijz" and it.ran() == ""
    inner.write_text(json.dumps({"nodes": [act("i", "1"), act("j", "${i.text}!")]}))
    assert it.ran() == "jz"


def test_a_file_that_was_written_and_is_gone_is_written_again(tmp_path: Path) -> None:
    it = Iterating(
        tmp_path, {"id": "w", "type": "write-file", "params": {"file_path": "out.txt", "content": "x"}}, act("b")
    )
    it.run()
    assert it.run().visits["w#1"].reused
    (tmp_path / "out.txt").unlink()
    it.run()
    assert (tmp_path / "out.txt").read_text() == "x"


# ── the store ──


def test_atomic_write_prevents_corruption(abc: Iterating) -> None:
    abc.run()
    folder = folder_of(abc.path, abc.home)
    for path in (folder / "entries").iterdir():
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])
    assert abc.ran() == "abc"  # half an entry is none
    assert abc.ran() == ""


def test_everything_is_private_whatever_the_umask(abc: Iterating) -> None:
    before = os.umask(0)
    try:
        abc.run()
    finally:
        os.umask(before)
    for path in (abc.home / "cache").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("node_id", ["metadata", "Metadata", "..", "a b", "entries", "x" * 300, "ü", ".hidden"])
def test_no_id_collides_with_the_metadata_or_leaves_the_folder(tmp_path: Path, node_id: str) -> None:
    it = Iterating(tmp_path, act(node_id), act("b"))
    it.run()
    it.run()
    assert it.acts == {node_id: 1, "b": 1}
    folder = folder_of(it.path, it.home)
    assert "workflow_path" in json.loads((folder / "metadata.json").read_bytes())
    assert (folder / f"{name_of(node_id + '#1')}.json").is_file()


def test_a_cache_that_cannot_be_written_costs_nothing_but_the_cache(abc: Iterating) -> None:
    root = abc.home / "cache"
    abc.home.mkdir()
    root.write_text("not a folder")
    assert abc.run().status == "completed" and abc.run().status == "completed"
    assert abc.acts["a"] == 2


def test_the_oldest_entries_go_first(abc: Iterating) -> None:
    for text in "0123456789":
        abc.write(act("a", text))
        abc.run()
    store = Iterations(folder_of(abc.path, abc.home))
    assert len(list((store.folder / "entries").iterdir())) == 8
    assert store.prune(0) == 8


def test_metadata_is_as_specified(abc: Iterating) -> None:
    abc.fail.add("c")
    abc.run()
    folder = folder_of(abc.path, abc.home)
    data = json.loads((folder / "metadata.json").read_bytes())
    assert data["workflow_path"] == str(abc.path) and data["created_at"].endswith("Z") and "workflow_hash" in data
    assert data["nodes"]["a"]["status"] == "completed" and data["nodes"]["a"]["cached_at"].endswith("Z")
    assert data["nodes"]["c"] == {
        "config_hash": data["nodes"]["c"]["config_hash"],
        "status": "failed",
        "error": "c is broken",
    }
    entry = json.loads((folder / "a.json").read_bytes())
    assert {"node_id", "node_type", "config_hash", "outputs", "execution_time_ms", "cached_at"} <= entry.keys()


# ── keys and reasons ──


def parts(**changes: Any) -> dict[str, Any]:
    recipe = {"type": "t", "params": {"a": 1}}
    return {"recipe": recipe, "inputs": {}, "files": {}, "shared": {}, "upstream": {}, "resolved": ""} | changes


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"recipe": {"type": "t", "params": {"a": 2}}}, "config", "config changed: params.a"),
        ({"recipe": {"type": "u", "params": {"a": 1}}}, "config", "config changed: type"),
        ({"inputs": {"url": "x"}}, "input", "input changed: url"),
        ({"files": {"/x": "y"}}, "file", "file changed: /x"),
        ({"upstream": {"a": "z"}}, "upstream", "upstream changed: a"),
    ],
)
def test_every_miss_names_what_changed(change: dict[str, Any], kind: str, text: str) -> None:
    miss = compare(parts(), parts(**change))
    assert (miss.kind, sentence(miss)) == (kind, text)
    assert miss.then == parts() and miss.now == parts(**change)


WORDS = st.sampled_from(["1", "2"])
PARTS = st.builds(
    parts,
    inputs=st.dictionaries(st.sampled_from("xy"), WORDS),
    files=st.dictionaries(st.sampled_from("fg"), WORDS),
    upstream=st.dictionaries(st.sampled_from("ab"), WORDS),
)


@given(st.lists(PARTS, min_size=1, max_size=8), PARTS)
def test_a_miss_is_compared_with_the_entry_that_shares_most(found: list[dict[str, Any]], new: dict[str, Any]) -> None:
    """Of several that share as much, with the first, which is the newest."""
    counts = [len(differences(old, new)) for old in found]
    assert nearest(found, new) is found[counts.index(min(counts))]


def test_the_reason_is_what_changed_since_the_same_inputs_were_given(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("1")
    read = {"id": "r", "type": "shell", "params": {"command": "cat data.txt; echo ${city}"}}
    it = Iterating(tmp_path, read, inputs={"city": {"type": "string", "default": "Rome"}})
    it.run()
    it.run({"city": "Oslo"})
    assert it.whys() == {"r": "input changed: city"}
    (tmp_path / "data.txt").write_text("2")
    options = app.Options(home=it.home, workspace=it.folder, types=it.types(), clock=it.clock)
    why = cache.why(it.path, "r", {}, options)
    changed = [name for name, then, now in why.fields if then != now]
    assert changed == [f"file.{tmp_path / 'data.txt'}"] and "input.city" in [name for name, _, _ in why.fields]
    it.run()
    assert it.whys() == {"r": f"file changed: {tmp_path / 'data.txt'}"}


def _hashes(it: Iterating) -> dict[str, str]:
    it.run()
    data = json.loads((folder_of(it.path, it.home) / "metadata.json").read_bytes())
    return {name: entry["config_hash"] for name, entry in data["nodes"].items()}


def test_compute_node_hash_deterministic(abc: Iterating) -> None:
    assert _hashes(abc) == _hashes(abc)


def test_compute_node_hash_changes_on_param_change(abc: Iterating) -> None:
    before = _hashes(abc)
    abc.write(act("a"), act("b", "other"), act("c", "${b.text}"))
    after = _hashes(abc)
    assert before["a"] == after["a"] and before["b"] != after["b"] and before["c"] == after["c"]


def test_should_use_cache_returns_true_when_valid(abc: Iterating) -> None:
    abc.run()
    assert abc.run().visits["a#1"].reused


def test_should_use_cache_returns_false_when_config_changed(abc: Iterating) -> None:
    abc.run()
    abc.write(act("a", "x"), act("b", "${a.text}"), act("c", "${b.text}"))
    assert not abc.run().visits["a#1"].reused


def test_should_use_cache_returns_false_when_upstream_invalidated(abc: Iterating) -> None:
    abc.run()
    abc.write(act("a", "x"), act("b", "${a.text}"), act("c", "${b.text}"))
    result = abc.run()
    assert not result.visits["b#1"].reused and not result.visits["c#1"].reused


def test_handles_100_node_workflow(tmp_path: Path) -> None:
    nodes = [act("n0")] + [act(f"n{i}", f"${{n{i - 1}.text}}") for i in range(1, 100)]
    it = Iterating(tmp_path, *nodes)
    it.run()
    assert it.ran() == "" and len(it.acts) == 100


def test_the_result_says_what_was_saved(abc: Iterating) -> None:
    abc.run()
    result = abc.run()
    assert all("ms" in outcome.saved for outcome in result.visits.values())
    assert result.usage == {}


# The specification bounds these in milliseconds. What can be bounded without a clock is the work: the files that a
# hit or a write opens, whatever the number of nodes and entries beside it. ``make bench`` has the times.


def opened(work: Callable[[], Any]) -> tuple[list[str], list[str]]:
    """The files below the cache that are opened to read, and to write, by what is done."""
    read: list[str] = []
    written: list[str] = []
    active = [True]

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if active and event == "open" and isinstance(args[0], (str, Path)) and "workflow-iterations" in str(args[0]):
            (written if args[2] & (os.O_WRONLY | os.O_RDWR) else read).append(str(args[0]))

    sys.addaudithook(hook)
    try:
        work()
    finally:
        active.clear()
    return read, written


@pytest.mark.parametrize("nodes", [1, 40])
def test_cache_lookup_under_10ms(tmp_path: Path, nodes: int) -> None:
    """A hit reads its entry and writes nothing of it; each further node adds as much, and no more."""
    flow = Iterating(tmp_path, *(act(f"n{i}") for i in range(nodes)))
    flow.run()
    read, written = opened(flow.run)
    entries = [path for path in read if "/entries/" in path]
    assert len(entries) == len(set(entries)) == nodes
    assert not [path for path in written if "/entries/" in path]
    assert len(read) + len(written) <= nodes + 8, "metadata is read and written once a run, not once a node"


@pytest.mark.parametrize("nodes", [1, 40])
def test_cache_write_under_50ms(tmp_path: Path, nodes: int) -> None:
    """What is written is the entry, once; its bytes are the outputs' and a constant; no other entry is touched."""
    flow = Iterating(tmp_path, *(act(f"n{i}") for i in range(nodes)))
    _, written = opened(flow.run)
    entries = [path for path in written if "/entries/" in path]
    assert len(entries) == len(set(entries)) == nodes
    assert len(written) <= 3 * nodes + 8, "a claim, its signature and an entry for each node"
    sizes = [path.stat().st_size for path in flow.home.glob("cache/workflow-iterations/*/entries/*.json")]
    assert len(sizes) == nodes and max(sizes) < 4096


# ── checkpoints ──


def forked(it: Iterating, at: str) -> str:
    """The nodes that acted when a whole run was gone on with from a checkpoint."""
    run_id = it.run().run_id
    before = dict(it.acts)
    options: dict[str, Any] = {"home": it.home, "types": it.types(), "clock": it.clock}
    made = asyncio.run(app.resume(app.fork(run_id, at, home=it.home), **options))
    assert made.status == "completed", made.error
    return "".join(sorted(name * (count - before.get(name, 0)) for name, count in it.acts.items()))


@pytest.mark.parametrize(("at", "again"), [("a", "abc"), ("b", "bc"), ("c", "c"), ("x", "x"), ("b#1", "bc")])
def test_a_checkpoint_is_executed_again_with_what_comes_of_it(tmp_path: Path, at: str, again: str) -> None:
    edges = [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}, {"from": "a", "to": "x"}]
    it = Iterating(tmp_path, act("a"), act("b", "${a.text}"), act("c", "${b.text}"), act("x"), edges=edges)
    assert forked(it, at) == "".join(sorted(again + ("x" if at == "a" else "")))


def test_below_a_pure_checkpoint_nothing_new_came_of_it(tmp_path: Path) -> None:
    it = Iterating(tmp_path, act("a"), pure("p", "${a.text}"), act("c", "${p.text}"))
    assert forked(it, "p") == "p"


@pytest.mark.parametrize(("at", "again"), [("s", "iijz"), ("s/i", "iijz"), ("s/j", "jz")])
def test_a_checkpoint_is_executed_again_with_all_inside_of_it(tmp_path: Path, at: str, again: str) -> None:
    batch = {"items": [1, 2]}
    inner = {"nodes": [act("i", "${item}", batch=batch), act("j", "${i.count}")], "inputs": {}}
    (tmp_path / "inner.json").write_text(json.dumps(inner))
    outer = {"id": "s", "type": "workflow", "params": {"workflow_ref": "inner.json"}}
    assert forked(Iterating(tmp_path, outer, act("z", "${s}")), at) == again

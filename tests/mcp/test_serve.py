"""``pflow mcp serve``, driven by the client of the official SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, types

from pflow.app import cache
from tests.cli.conftest import BROKEN, GREETING, QUESTION

MODES = ["legacy", "auto"]  # the older protocol, and whatever both sides know
PATIENCE = 60
COMMAND = [sys.executable, "-m", "pflow", "mcp", "serve"]


def road(*words: str) -> StdioServerParameters:
    env = {"PFLOW_HOME": os.environ["PFLOW_HOME"]}
    return StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], *words], env=env, cwd=Path.cwd())


def drive(work: Callable[[Client], Awaitable[None]], *words: str, **options: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE), Client(road(*words), **options) as client:
            await work(client)

    asyncio.run(main())


async def call(client: Client, tool: str, **given: Any) -> Any:
    made = await client.call_tool(tool, given)
    assert not made.is_error, made.content
    return made.structured_content


async def refused(client: Client, tool: str, **given: Any) -> str:
    made = await client.call_tool(tool, given)
    assert made.is_error
    block = made.content[0]
    assert isinstance(block, types.TextContent)
    return str(block.text)


@pytest.fixture(autouse=True)
def workflows(here: Path) -> None:
    """Three workflows to work with."""
    (here / "greeting.yaml").write_text(GREETING)
    (here / "broken.yaml").write_text(BROKEN)
    (here / "question.yaml").write_text(QUESTION)


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_builds_runs_and_inspects_a_workflow(mode: str) -> None:
    async def work(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"instructions", "validate", "plan", "run", "trace", "field", "why", "reply", "save"} <= names
        assert (await call(client, "instructions"))["text"].startswith("# Building workflows")
        assert any(line.startswith("shell (impure)") for line in (await call(client, "node_types"))["types"])
        assert (await call(client, "describe_node_type", type="echo"))["main_out"] == "text"
        valid = await call(client, "validate", workflow="greeting.yaml")
        assert valid["valid"] and valid["nodes"] == ["greet", "shout"]
        planned = await call(client, "plan", workflow="greeting.yaml")
        assert planned["nodes"][0]["reason"] == "would run: no earlier result"
        ran = await call(client, "run", workflow="greeting.yaml", inputs={"name": "Ada"})
        assert ran["status"] == "completed" and ran["result"] == "HELLO, ADA!"
        field = await call(client, "field", run=ran["run_id"], path="greet.text")
        assert field == {"value": "Hello, Ada!"}
        trace = await call(client, "trace")
        assert trace["run_id"] == ran["run_id"] and trace["timeline"][-1]["status"] == "completed"
        node = await call(client, "trace", run=ran["run_id"], node="greet")
        assert node["output"]["text"] == "Hello, Ada!"
        status = await call(client, "cache_status", workflow="greeting.yaml")
        assert [one["status"] for one in status["nodes"]] == ["cached", "cached"]
        why = await call(client, "why", workflow="greeting.yaml", node="greet", inputs={"name": "Ada"})
        assert why["would"] == "reuse"
        assert [one["run_id"] for one in (await call(client, "runs"))["runs"]] == [ran["run_id"]]
        await call(client, "save", workflow="greeting.yaml", name="hi")
        assert (await call(client, "workflows"))["workflows"][0]["name"] == "hi"
        assert (await call(client, "run", workflow="hi"))["result"] == "HELLO, WORLD!"

    drive(work, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_run_tells_its_progress(mode: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async def work(client: Client) -> None:
        await client.call_tool("run", {"workflow": "greeting.yaml"}, progress_callback=hear)

    drive(work, mode=mode)
    assert [message for _, _, message in seen if message and "start" not in message] == [
        "greet completed", "shout completed",
    ]  # fmt: skip
    assert [done for done, _, _ in seen] == sorted({done for done, _, _ in seen})  # it always grows
    assert seen[-1][:2] == (2, 2)


def test_a_plan_finds_a_secret_that_the_settings_keep(here: Path) -> None:
    from pflow import settings

    settings.save(settings.Settings(env={"key": "s3cret-key"}))
    document = {
        "inputs": {"key": {"type": "string", "secret": True}},
        "nodes": [{"id": "use", "type": "echo", "params": {"text": "${key}"}}],
    }
    (here / "secret.json").write_text(json.dumps(document))

    async def work(client: Client) -> None:
        planned = await call(client, "plan", workflow="secret.json")
        assert planned["nodes"][0]["id"] == "use" and "s3cret-key" not in json.dumps(planned)

    drive(work)


def test_it_shares_the_cache_with_the_command_line(here: Path) -> None:
    subprocess.run([sys.executable, "-m", "pflow", "greeting.yaml"], check=True, capture_output=True)

    async def work(client: Client) -> None:
        ran = await call(client, "run", workflow="greeting.yaml")
        assert all("cached" in step for step in ran["steps"])
        again = await call(client, "run", workflow="greeting.yaml", rerun=["greet"])
        assert "completed" in again["steps"][0]

    drive(work)
    assert [one.status for one in cache.status(here / "greeting.yaml").nodes] == ["cached", "cached"]


def test_a_failure_comes_with_its_place_and_what_to_do_and_can_be_resumed(here: Path) -> None:
    async def work(client: Client) -> None:
        ran = await call(client, "run", workflow="broken.yaml")
        assert ran["status"] == "failed" and "resume" in ran["next"]
        error = ran["errors"][0]
        assert error["node_id"] == "second" and "not mended" in error["message"] and error["location"]["line"]
        traced = await call(client, "trace", run=ran["run_id"])
        assert traced["failure"]["node_id"] == "second"
        (here / "mended").touch()
        went_on = await call(client, "resume", run=ran["run_id"])
        assert went_on["status"] == "completed" and went_on["result"] == "two and three"

    drive(work)
    assert (here / "first.log").read_text() == "done\n"


def test_problems_of_a_document_are_a_result_with_hints() -> None:
    async def work(client: Client) -> None:
        document = json.dumps({"nodes": [{"id": "a", "type": "shel", "params": {}}]})
        found = await call(client, "validate", document=document)
        assert not found["valid"] and 'did you mean "shell"?' in found["problems"][0]["hint"]
        said = await refused(client, "run", document=document)
        assert 'unknown node type "shel"' in said and "hint: did you mean" in said
        good = json.dumps({"nodes": [{"id": "a", "type": "echo", "params": {"text": "inline"}}]})
        assert (await call(client, "run", document=good))["result"] == "inline"
        await call(client, "save", document=good, name="inline")
        assert (await call(client, "run", workflow="inline"))["result"] == "inline"

    drive(work)


@pytest.mark.parametrize(
    ("tool", "given", "says"),
    [
        ("run", {}, "give either `workflow` or `document`"),
        ("run", {"workflow": "nowhere.yaml"}, "there is no file"),
        ("run", {"workflow": "greeting.yaml", "wrkflow": 1}, 'arguments has "wrkflow", which is not allowed'),
        ("run", {"workflow": 3}, "arguments.workflow is number, not string"),
        ("run", {"workflow": "greeting.yaml", "output": "nope"}, 'has no output "nope"'),
        ("trace", {"run": "nobody"}, "no run 'nobody'"),
        ("trace", {}, "there are no runs here yet"),
        ("reply", {"run": "nobody", "text": "x"}, "no run"),
        ("describe_node_type", {"type": "ech"}, 'did you mean "echo"?'),
        ("why", {"workflow": "greeting.yaml", "node": "x"}, 'there is no node "x"'),
        ("save", {"name": "x"}, "give either"),
        ("runn", {}, 'did you mean "run"?'),
    ],
)
def test_bad_calls_are_answered_with_what_is_wrong(tool: str, given: dict[str, Any], says: str) -> None:
    async def work(client: Client) -> None:
        said = await refused(client, tool, **given)
        assert says in said, said

    drive(work)


def test_paths_stay_inside_the_folder_unless_told(here: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "greeting.yaml").write_text(GREETING)
    (here / "link.yaml").symlink_to(outside / "greeting.yaml")
    words = ("../outside/greeting.yaml", str(outside / "greeting.yaml"), "link.yaml", "../outside", "a/../../outside/x")

    async def work(client: Client) -> None:
        for tool in ("validate", "run", "plan", "cache_status", "save"):
            for word in words:
                said = await refused(client, tool, workflow=word, **({"name": "x"} if tool == "save" else {}))
                assert "is outside of what this server may reach" in said and "--allow" in said

    drive(work)
    foreign = subprocess.run(
        [sys.executable, "-m", "pflow", "greeting.yaml", "--json"], cwd=outside, check=True, capture_output=True
    )
    run_id = json.loads(foreign.stdout)["run_id"]

    async def look(client: Client) -> None:
        assert "was not started in a folder" in await refused(client, "trace", run=run_id)
        assert (await call(client, "runs"))["runs"] == []

    drive(look)

    async def allowed(client: Client) -> None:
        assert (await call(client, "trace", run=run_id))["run_id"] == run_id
        ran = await call(client, "run", workflow=str(outside / "greeting.yaml"))
        assert ran["status"] == "completed"

    drive(allowed, "--allow", str(outside))


def test_results_are_small_and_one_field_is_fetched_whole(here: Path) -> None:
    code = "result = {'text': 'x' * 300000, 'rows': [{'n': n} for n in range(5000)]}"
    document = json.dumps({"nodes": [{"id": "big", "type": "code", "params": {"code": code}}]})

    async def work(client: Client) -> None:
        made = await client.call_tool("run", {"document": document})
        assert isinstance(made.content[0], types.TextContent) and len(made.content[0].text) < 10_000
        run_id = made.structured_content["run_id"]
        assert (await call(client, "field", run=run_id, path="big.result.rows[4999].n"))["value"] == 4999
        first = await call(client, "field", run=run_id, path="big.result.text")
        assert len(first["text"]) == 20_000 and first["characters"] == 300_000 and first["next"] == 20_000
        rest = await call(client, "field", run=run_id, path="big.result.text", start=290_000)
        assert len(rest["text"]) == 10_000 and "next" not in rest
        said = await refused(client, "field", run=run_id, path="big.reslt")
        assert 'did you mean "big.result"?' in said

    drive(work)


@pytest.mark.parametrize("mode", MODES)
def test_a_question_reaches_the_person_behind_the_client(mode: str) -> None:
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "yes"})

    async def work(client: Client) -> None:
        ran = await call(client, "run", workflow="question.yaml")
        assert ran["status"] == "completed" and ran["result"] == "answer: yes"
        assert len((await call(client, "runs"))["runs"]) == 1

    drive(work, mode=mode, elicitation_callback=answer)
    assert asked == ["Deploy?"]


@pytest.mark.parametrize("mode", MODES)
def test_a_question_that_nobody_answers_pauses_the_run_until_there_is_a_reply(mode: str) -> None:
    async def decline(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="decline")

    async def work(client: Client) -> None:
        ran = await call(client, "run", workflow="question.yaml", cache=False)
        assert ran["status"] == "paused" and ran["waiting"][0]["question"] == "Deploy?" and "reply" in ran["next"]
        assert "none of the choices" in await refused(client, "reply", run=ran["run_id"], text="perhaps")
        answered = await call(client, "reply", run=ran["run_id"], text="no")
        assert answered["status"] == "completed" and answered["result"] == "answer: no"
        assert "asks nothing" in await refused(client, "reply", run=ran["run_id"], text="no")

    drive(work, mode=mode)
    drive(work, mode=mode, elicitation_callback=decline)


SLOW = """\
flow: {name: slow}
nodes:
  - {id: first, type: shell, input: {command: "echo once >> log"}}
  - {id: slow, type: shell, input: {command: "test -e hurry || { echo $$ > started; exec sleep 600; }", timeout: 900}}
edges:
  - {from: first, to: slow}
"""


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_gives_up_interrupts_the_run_which_can_be_resumed(here: Path, mode: str) -> None:
    (here / "slow.yaml").write_text(SLOW)
    os.mkfifo(here / "started")

    async def work(client: Client) -> None:
        running = asyncio.create_task(client.call_tool("run", {"workflow": "slow.yaml"}))
        pid = int(await asyncio.to_thread((here / "started").read_text))
        running.cancel()
        await asyncio.wait({running})
        run_id = (await call(client, "runs"))["runs"][0]["run_id"]
        (here / "hurry").touch()
        while True:  # until the run is left
            made = await client.call_tool("resume", {"run": run_id, "on_doubt": "retry"})
            if not made.is_error:
                break
        assert made.structured_content["status"] == "completed"
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    drive(work, mode=mode)
    assert (here / "log").read_text() == "once\n"


def test_what_nodes_print_does_not_disturb_the_protocol(here: Path) -> None:
    folder = here / ".pflow" / "nodes"
    folder.mkdir(parents=True)
    (folder / "loud.py").write_text(
        "from pflow import node\nimport os\n\n@node('loud')\ndef loud() -> str:\n"
        "    print('noise')\n    os.write(1, b'more noise\\n')\n    return 'done'\n"
    )

    async def work(client: Client) -> None:
        document = json.dumps({"nodes": [{"id": "a", "type": "loud"}]})
        assert (await call(client, "run", document=document))["result"] == "done"

    drive(work)

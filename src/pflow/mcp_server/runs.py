"""What a client runs: with progress as nodes end, and questions to the person behind the client.

A client that gives up interrupts the run: what completed is kept, and ``resume`` goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pflow import app
from pflow.app import Result, runs
from pflow.app.outcome import check_key, run_view
from pflow.app.session import Session
from pflow.errors import RunBusy, UsageError
from pflow.mcp_server.bounds import Bounds
from pflow.mcp_server.excerpts import small
from pflow.mcp_server.questions import Asking
from pflow.model.event import Envelope
from pflow.model.typed import choice_of
from pflow.model.visit import is_nested, short

Arguments = dict[str, Any]
Start = Callable[[dict[str, Any]], Awaitable[Result]]
GRACE = 15.0  # seconds that an interrupted run gets to end its nodes
_ENDS = {"task:complete": "completed", "task:failed": "failed", "task:skipped": "skipped"}
_SAYS = ("task:start", "task:retry", "task:progress", "ask")


class Caller:
    """Who is behind a call: told of progress, asked questions."""

    def __init__(self, session: Any, asking: Asking, active: dict[Session, asyncio.Future[Any]]) -> None:
        self.asking = asking
        self._client = session
        self._active = active  # every run that this server drives
        self._total = 0
        self._done = 0
        self._sent = 0.0
        self._news: asyncio.Queue[tuple[float, str] | None] = asyncio.Queue()
        self._task: asyncio.Future[Result] | None = None
        self.session: Session | None = None

    async def drive(self, start: Start) -> Result:
        """Drive a run as far as it goes, or until the client gives up."""
        import anyio

        options = {"on_event": self._hear, "started": self._started, "answer": self.asking.answer}
        task = self._task = asyncio.ensure_future(start(options))
        sender = asyncio.create_task(self._send())
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                if self.session is not None:
                    self.session.interrupt()
                await asyncio.wait({task}, timeout=GRACE)
            raise
        finally:
            self._news.put_nowait(None)
            if self.session is not None:
                self._active.pop(self.session, None)
            with anyio.CancelScope(shield=True):
                await asyncio.wait({sender}, timeout=1)
        return task.result()

    def _started(self, session: Session) -> None:
        self.session = session
        if self._task is not None:
            self._active[session] = self._task
        self._total = session.nodes_total

    def _hear(self, envelope: Envelope) -> None:
        kind, data = envelope.event.type, envelope.event.data
        top = not is_nested(str(data.get("visit", "")))
        node = str(data.get("taskId", "")).removeprefix("node:")
        if kind in _ENDS and top:
            self._done += 1
        if kind in _ENDS:
            how = "cached" if data.get("cached") else _ENDS[kind]
            self._news.put_nowait((self._done, f"{node} {how}"))
        elif kind in _SAYS:
            self._news.put_nowait((self._done, f"{node} {kind.rpartition(':')[2]}"))

    async def _send(self) -> None:
        """Tell the client; its number must grow with every notification."""
        while (news := await self._news.get()) is not None:
            done, message = news
            self._sent = done if done > self._sent else self._sent + 0.001
            await self._client.report_progress(self._sent, max(self._total, self._sent), message)


# The tools.


async def run(bounds: Bounds, given: Arguments, caller: Caller) -> dict[str, Any]:
    """Run a workflow."""
    flow, is_file = bounds.target(given.get("workflow"), given.get("document"))
    key = given.get("output")
    check_key(key, flow)
    cached = given.get("cache", True)
    chosen = {
        "iterate": is_file and cached,
        "rerun": tuple(given.get("rerun") or ()),
        "jobs": given.get("jobs"),
        "workspace": bounds.root,
        **_means(given),
    }
    made = await caller.drive(lambda options: app.run(flow, given.get("inputs") or {}, **chosen, **options))
    assert caller.session is not None
    return _view(made, caller.session, key)


async def resume(bounds: Bounds, given: Arguments, caller: Caller) -> dict[str, Any]:
    """Go on with a run, or with a fork of it."""
    folder = bounds.run(given["run"])
    at = given.get("at")
    if at is not None:
        folder = runs.find(app.fork(folder, at))
    return await _go_on(folder, given, caller)


async def reply(bounds: Bounds, given: Arguments, caller: Caller) -> dict[str, Any]:
    """Answer a question of a run; where nobody drives it, go on with it."""
    folder, node = bounds.run(given["run"]), given.get("node")
    asked = runs.question(folder, node, "`node`")
    value = choice_of(given["text"], asked.choices) if asked.choices else given["text"]
    if value is None:
        raise UsageError(f"{given['text']!r} is none of the choices", f"one of: {', '.join(asked.choices)}")
    app.reply(folder, value, visit=asked.visit)
    return await _taken_up(folder, given, caller)


async def answered(bounds: Bounds, given: Arguments, caller: Caller, run_id: str) -> dict[str, Any]:
    """Go on with a run whose questions the person behind the client was asked."""
    folder = bounds.run(run_id)
    answers = caller.asking.answers(runs.waiting(folder))
    for asked, value in answers:
        app.reply(folder, value, visit=asked.visit)
    if not answers:  # nobody wanted to answer: the run waits on
        caller.asking.given_up = True
    return await _taken_up(folder, given, caller)


async def _taken_up(folder: Path, given: Arguments, caller: Caller) -> dict[str, Any]:
    if runs.driver(folder):
        return {"run_id": folder.name, "status": "running", "next": "the process that drives it takes the answer"}
    try:
        return await _go_on(folder, given, caller)
    except RunBusy:  # somebody took the run over in between, and finds the answer
        return {"run_id": folder.name, "status": "running"}


async def _go_on(folder: Path, given: Arguments, caller: Caller) -> dict[str, Any]:
    chosen = {"on_doubt": given.get("on_doubt"), "secrets": given.get("secrets") or {}, **_means(given)}
    made = await caller.drive(lambda options: app.resume(folder, **chosen, **options))
    return _view(made, caller.session or runs.inspect(folder), None)


def _means(given: Arguments) -> dict[str, Any]:
    return {"model": given.get("model", ""), "budget": given.get("budget")}


# How it went.


def _view(made: Result, session: Session, key: str | None) -> dict[str, Any]:
    """How a run went: what matters, in little space."""
    whole = session.hide(run_view(made, session, key))
    view: dict[str, Any] = {"status": whole["status"], "run_id": whole["run_id"], "duration_ms": whole["duration_ms"]}
    if made.success:
        view["result"] = small(whole["result"], 4000)
    if whole["outputs"] and not (made.success and list(whole["outputs"].values()) == [whole["result"]]):
        view["outputs"] = small(whole["outputs"], 3000)
    view["steps"] = small([_step(step) for step in whole["execution"]["steps"]], 4000)
    if whole["total_cost_usd"]:
        view["total_cost_usd"] = whole["total_cost_usd"]
    if whole["errors"]:
        view["errors"] = [_error(error) for error in whole["errors"][:10]]
    for name in ("waiting", "doubts", "held"):
        if whole.get(name):
            view[name] = whole[name]
    return view | {"next": _next(view)}


def _step(step: dict[str, Any]) -> str:
    how = "cached" if step["cached"] else f"{step['status']}, {step['duration_ms']:.0f} ms"
    tries = f", {step['attempts']} attempts" if step["attempts"] > 1 else ""
    return f"{short(step['visit'])}: {how}{tries}" + (f" ({step['reason']})" if step["reason"] else "")


def _error(error: dict[str, Any]) -> dict[str, Any]:
    kept = ("code", "node_id", "message", "hint", "location", "context", "recovery_suggestions")
    return {key: small(error[key], 1500) for key in kept if error.get(key)}


def _next(view: dict[str, Any]) -> str:
    run_id = view["run_id"]
    if view.get("waiting"):
        return f'reply(run="{run_id}", text=…) answers, and the run goes on'
    if view.get("doubts"):
        return f'a node was cut off and may have taken effect: resume(run="{run_id}", on_doubt="retry"|"skip"|"fail")'
    if view["status"] == "paused":
        return f'resume(run="{run_id}"), with a larger budget if that is why it paused'
    if view["status"] == "completed":
        return f'field(run="{run_id}", path="NODE.OUTPUT") fetches a value whole'
    return (
        f'trace(run="{run_id}", node=…) tells more; correct the workflow and run it again (what did not change is '
        f'reused), or resume(run="{run_id}") if nothing has to be corrected'
    )

"""One attempt: node code is called, and whatever it does becomes outputs or a failure."""

from __future__ import annotations

import asyncio
import contextvars
import traceback
from collections.abc import Coroutine, Generator
from functools import partial
from pathlib import Path
from types import coroutine
from typing import Any

from pflow.errors import InternalError, NodeError, PflowError
from pflow.model.records import Failure
from pflow.model.value import plain
from pflow.model.workflow import Policy, Retry
from pflow.nodes.process.worker import call_in_process
from pflow.nodes.purity import watch, watch_async
from pflow.nodes.step import StepContext
from pflow.nodes.type import NodeType, Routed

_HERE = str(Path(__file__).parent)
GRACE = 5.0  # seconds that cancelled node code gets to clean up before it is abandoned
_UNCHANGING = frozenset({"binding", "validation", "routing", "purity", "budget"})  # another try cannot help


async def attempt(
    kind: NodeType, step: StepContext | None, params: dict[str, Any], timeout: float | None, mark: str
) -> tuple[dict[str, Any], str | None] | Failure:
    """Outputs and route, or why there are none: whatever node code raises is data from here on."""
    try:
        return outputs(await call(kind, step, params, timeout, mark))
    except asyncio.CancelledError:
        if step is not None:
            step.cancelled = True
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the one around node code
        if step is not None:
            step.cancelled = True  # whatever it left running has nothing more to say
        return failure_of(error)


async def call(
    kind: NodeType, step: StepContext | None, params: dict[str, Any], timeout: float | None, mark: str
) -> Any:
    """Call a node type as its kind asks for: awaited, inline, in a thread, or in a process that can be ended."""
    args = () if step is None else (step,)
    if kind.is_async:
        work = kind.call(*args, **params)
        if kind.watched:
            work = watch_async(work)
        return await (in_context(work) if timeout is None else within(work, timeout, None if kind.composite else GRACE))
    function = partial(watch, kind.call) if kind.watched else kind.call
    if kind.declared.inline:
        return contextvars.copy_context().run(function, *args, **params)
    if timeout is None:
        return await asyncio.to_thread(function, *args, **params)
    if step is not None:
        raise NodeError(f'"{kind.name}" is sync and takes a step, so no timeout can stop it', "make it async")
    return await within(call_in_process(kind, params, mark), timeout)


@coroutine
def in_context(work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Drive a coroutine in a copied context of its own, without a task: what it sets stays with it."""
    run = contextvars.copy_context().run
    try:
        pending = run(work.send, None)
    except StopIteration as stop:
        return stop.value
    while True:
        try:
            sent = yield pending
        except GeneratorExit:
            work.close()
            raise
        except BaseException as error:  # noqa: BLE001 - handed on to the coroutine, whose answer is taken
            try:
                pending = run(work.throw, error)
            except StopIteration as stop:
                return stop.value
        else:
            try:
                pending = run(work.send, sent)
            except StopIteration as stop:
                return stop.value


async def within(work: Coroutine[Any, Any, Any], seconds: float, grace: float | None = GRACE) -> Any:
    """The result, if it comes in time; work that ignores its cancellation is abandoned and its result discarded."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _end(task, grace)
        raise
    if task.done():
        return task.result()
    await _end(task, grace)
    raise TimeoutError(f"timed out after {seconds:g} s")


async def _end(task: asyncio.Future[Any], grace: float | None) -> None:
    task.cancel()
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # a late error has no reader
    await asyncio.wait({task}, timeout=grace)


def outputs(returned: Any) -> tuple[dict[str, Any], str | None]:
    """A node's return value as plain outputs, with its route if it chose one."""
    route = None
    if type(returned) is Routed:
        returned, route = returned.outputs, returned.route
    if type(returned) is not dict:
        made = plain(returned)
        returned = made if isinstance(made, dict) else {} if made is None else {"result": made}
        return returned, route
    return plain(returned), route


def failure_of(error: BaseException) -> Failure:
    """An exception of node code, as data."""
    trace = _trace(error)
    name = type(error).__name__
    if isinstance(error, Failed):
        return error.failure
    if isinstance(error, TimeoutError) and str(error).startswith("timed out"):
        return Failure("timeout", str(error), "raise the timeout, or make the work smaller", name)
    if isinstance(error, NodeError):
        details = plain(error.details)
        return Failure(
            error.kind, error.message, error.hint, name, trace, details, suggestions=tuple(error.suggestions)
        )
    if isinstance(error, InternalError):
        return Failure("internal", error.message, "this is a bug in pflow: please report it", name, trace)
    if isinstance(error, PflowError):
        return Failure("validation", error.message, error.hint, name, trace)
    return Failure("node", plain(str(error)) or name, "", name, plain(trace))


def _trace(error: BaseException) -> str:
    """The traceback, from where node code begins."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None and step.tb_frame.f_code.co_filename.startswith(_HERE):
        step = step.tb_next
    return "".join(traceback.format_exception(type(error), error, step))


class Failed(Exception):
    """Carries a failure that is data already, through node code, to whoever awaits it."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def delay_before(policy: Policy, failure: Failure, tried: int) -> float | None:
    """Seconds to wait before the next attempt, or None when this was the last; ``tried`` counts from 1."""
    rule: Retry = policy.by_kind.get(failure.kind, policy.retry)
    if tried >= rule.attempts or failure.kind in _UNCHANGING or failure.details.get("reason") == "unknown":
        return None
    if rule.backoff == "constant":
        return rule.delay
    return min(rule.cap, rule.delay * 2.0 ** min(tried - 1, 60))

"""A plugin of the package llm, as its users write them: one model only sync, one with an async twin."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import llm

seen: list[Any] = []  # prompts, in order
going_on = threading.Event()  # what the model that blocks waits for
ended = threading.Event()  # set when it has noticed that nobody listens


class Options(llm.Options):  # type: ignore[misc]
    temperature: float | None = None
    num_predict: int | None = None


class Sync(llm.Model):  # type: ignore[misc]
    """Answers with the prompt, word by word."""

    model_id = "parrot"
    can_stream = True
    attachment_types = frozenset({"text/plain"})
    Options = Options

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        seen.append(prompt)
        yield from prompt.prompt.split(" ")
        response.set_usage(input=5, output=2)


class Blocking(llm.Model):  # type: ignore[misc]
    """Says something, and then nothing until it is told to go on."""

    model_id = "slow-parrot"
    can_stream = True

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        try:
            yield "a"
            going_on.wait()
            yield "b"
        finally:
            ended.set()


class Async(llm.AsyncModel):  # type: ignore[misc]
    """The same as ``Sync``, and it can call tools and answer in JSON."""

    model_id = "swift-parrot"
    can_stream = True
    supports_tools = True
    supports_schema = True

    async def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> AsyncIterator[str]:
        seen.append(prompt)
        for tool in prompt.tools:
            response.add_tool_call(llm.ToolCall(tool.name, {"at": 1}, "c1"))
        for word in prompt.messages[-1].parts[-1].text.split(" ") if not prompt.tools else ():
            yield word
        response.set_usage(input=5, output=2, details={"prompt_tokens_details": {"cached_tokens": 4}})


class Twin(Sync):
    model_id = "swift-parrot"


class Broken(llm.Model):  # type: ignore[misc]
    """Raises what clients raise."""

    model_id = "sick-parrot"
    needs_key = "parrots"
    key_env_var = "PARROT_KEY"

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        error = RuntimeError(f"no, {self.get_key()}")
        error.status_code = int(prompt.prompt)  # type: ignore[attr-defined]
        yield from _raised(error)


def _raised(error: Exception) -> Iterator[str]:
    raise error


@llm.hookimpl  # type: ignore[untyped-decorator]
def register_models(register: Any) -> None:
    register(Sync(), aliases=("polly",))
    register(Blocking())
    register(Twin(), Async())
    register(Broken())

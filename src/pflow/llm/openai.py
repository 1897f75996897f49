"""Any OpenAI-compatible chat endpoint, over HTTP.

    https://api.groq.com/openai/v1#llama-3.3-70b     the base URL, and the model's name after #
    https://llm.example.org/v1?key=TEAM_KEY#small    with the name of the variable that holds the key
    openai:gpt-4o                                    at OPENAI_BASE_URL, or at OpenAI

Without ``?key=`` the key is looked for under the host's own name (``GROQ_API_KEY`` for api.groq.com), so that no key is
ever sent to a host it was not made for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

import msgspec

from pflow.errors import NodeError
from pflow.http import BACKOFF, LONGEST_WAIT, certificates, package, reason, retry_after
from pflow.llm.answer import DONE, Completion, document, events, message_of
from pflow.llm.errors import ModelError, excerpt
from pflow.llm.interface import Attachment, OnRetry, OnText, Reply, Request, Tool, Turn, Usage
from pflow.llm.prices import cost
from pflow.llm.repeat import patiently
from pflow.model.redact import HIDDEN

if TYPE_CHECKING:
    import httpx

OPENAI = "https://api.openai.com/v1"
TOO_MANY = 2.0  # seconds before the same after a 429 that asks for no time of its own
SILENCE = 600.0  # seconds without a byte after which an answer is given up
CONNECT = 10.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class OpenAI:
    """A model behind a chat completions endpoint."""

    takes_tools = True

    def __init__(
        self, url: str, model: str, key: str = "", key_name: str = "", on_retry: OnRetry | None = None, name: str = ""
    ) -> None:
        self.url = url.rstrip("/")
        self.model = model
        self.name = name or f"{self.url}#{model}"
        self._key = key
        self._key_name = key_name  # the variable in which the key was looked for
        self._on_retry = on_retry

    def price(self, usage: Usage) -> float | None:
        """By the tables."""
        return cost(usage, self.model, self.url)

    async def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """The answer; cancelling closes the connection."""
        body = body_of(self.model, request, hosted=self.url == OPENAI)
        try:
            return await patiently(lambda: self._once(body, on_text), self._on_retry)
        except ModelError as error:
            if error.details.get("status_code") not in (400, 422) or "stream_options" not in error.message:
                raise
        del body["stream_options"]  # a server that does not know how to count tokens
        return await patiently(lambda: self._once(body, on_text), self._on_retry)

    async def _once(self, body: dict[str, Any], on_text: OnText | None) -> Reply:
        httpx = _httpx()
        answer = Completion(self.model)
        try:
            async with self._client() as client, client.stream("POST", "/chat/completions", json=body) as response:
                if not response.is_success:
                    raise await self._refused(response)
                async with aclosing(_pieces(response, answer)) as pieces:
                    async for piece in pieces:
                        if piece and on_text is not None:
                            on_text(piece)
            return answer.reply()
        except httpx.TimeoutException:
            text = f"{self._shown}: no answer in time"
            raise ModelError(text, "is the server overloaded, or the prompt too long?", "timeout") from None
        except (httpx.TransportError, _Cut) as error:
            raise self._dropped(error, answer) from None
        except httpx.InvalidURL as error:
            raise NodeError(f"the model's URL cannot be used: {error}", kind="validation") from None

    def _client(self) -> httpx.AsyncClient:
        secure = self.url.startswith("https:")
        headers = {"User-Agent": "pflow", "Accept-Encoding": "identity"}  # what is compressed has no known size
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return _httpx().AsyncClient(  # type: ignore[no-any-return]
            base_url=self.url,
            headers=headers,
            timeout=_httpx().Timeout(SILENCE, connect=CONNECT),
            verify=certificates() if secure else False,
            trust_env=urlsplit(self.url).hostname not in _LOOPBACK,  # no proxy leads back to this machine
        )

    # ── failures ──

    @property
    def _shown(self) -> str:
        return f"{self.model} at {self.url}"

    def _dropped(self, error: Exception, answer: Completion) -> ModelError:
        text = f"{self._shown}: {reason(error)}"
        if answer.begun:
            return ModelError(f"{text}, in the middle of the answer", "what arrived was thrown away; try again")
        return ModelError(text, "is the server running, and is the URL right?", wait=BACKOFF)

    async def _refused(self, response: httpx.Response) -> ModelError:
        """A status that is no success, with what the server says about it."""
        said = await _beginning(response)
        try:
            error = msgspec.json.decode(said)
        except msgspec.DecodeError:
            error = said.decode("utf-8", "replace")
        status, message = response.status_code, excerpt(message_of(error), 500)
        if self._key:
            message = message.replace(self._key, HIDDEN)
        details: dict[str, object] = {"status_code": status, "url": self.url, "model": self.model}
        text = f"{self._shown}: {status} {response.reason_phrase}".rstrip() + (f": {message}" if message else "")
        if status == 429:
            return too_many(response.headers.get("retry-after", ""), text, "insufficient_quota" in str(error), details)
        kind = "auth" if status in (401, 403) else "timeout" if status in (408, 504) else "model"
        return ModelError(text, self._advice(status, message), kind, details)

    def _advice(self, status: int, message: str) -> str:
        if status in (401, 403):
            where = f"${self._key_name}" if self._key_name else "the variable that ?key=NAME in its URL names"
            return f"the key in {where} is not accepted" if self._key else f"put a key into {where}"
        if status == 404:
            return "check the URL and the model's name"
        if "context" in message.lower():
            return "the prompt is too long for this model: shorten it, or take another model"
        return "the server failed, not the request" if status >= 500 else ""


# ── names ──


def endpoint(name: str, env: Mapping[str, str], on_retry: OnRetry | None = None) -> OpenAI:
    """The model that a URL, or ``openai:MODEL``, stands for."""
    if name.startswith("openai:"):
        url, model = env.get("OPENAI_BASE_URL") or OPENAI, name.removeprefix("openai:")
        return _checked(url, model, "OPENAI_API_KEY", env, on_retry, name)
    try:
        parts = urlsplit(name)
    except ValueError as error:
        raise NodeError(f"the model's URL cannot be used: {error}", kind="validation") from None
    url = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    named = parse_qs(parts.query).get("key", [""])[0]
    return _checked(url, parts.fragment, named or _key_name(parts.hostname or "", env), env, on_retry, name)


def _checked(
    url: str, model: str, key_name: str, env: Mapping[str, str], on_retry: OnRetry | None, name: str
) -> OpenAI:
    if not model:
        raise NodeError("the model's URL names no model", f"write {url}#MODEL", kind="validation")
    if "@" in urlsplit(url).netloc:
        hint = "put the key into an environment variable, and its name behind the URL: ?key=NAME#MODEL"
        raise NodeError("a model's URL holds no user or password", hint, kind="validation")
    return OpenAI(url, model, env.get(key_name, "").strip(), key_name, on_retry, name)


def _key_name(host: str, env: Mapping[str, str]) -> str:
    """The variable with the key for a host: the one that bears its name."""
    if host == urlsplit(env.get("OPENAI_BASE_URL") or OPENAI).hostname:
        return "OPENAI_API_KEY"
    labels = host.split(".")
    if len(labels) < 2 or labels[-1].isdecimal():
        return ""
    return f"{labels[-2].upper().replace('-', '_')}_API_KEY"


# ── what is sent ──


def body_of(model: str, request: Request, hosted: bool = False) -> dict[str, Any]:
    """A request, as the API has it; ``hosted``: OpenAI itself calls one thing differently."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    limit = "max_completion_tokens" if hosted else "max_tokens"
    given = {"temperature": request.temperature, limit: request.max_tokens, "seed": request.seed}
    body |= {key: value for key, value in given.items() if value is not None}
    if request.schema is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": request.schema},
        }
    if request.tools:
        body["tools"] = [{"type": "function", "function": _function(tool)} for tool in request.tools]
    return body | request.options


def _function(tool: Tool) -> dict[str, Any]:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _message(message: Turn) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.attachments:
        texts = [{"type": "text", "text": message.content}] if message.content else []
        made["content"] = texts + [_part(attachment) for attachment in message.attachments]
    if message.tool_call_id:
        made["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
            }
            for call in message.tool_calls
        ]
    return made


def _part(attachment: Attachment) -> dict[str, Any]:
    """An attachment in the form that its type asks for."""
    from base64 import b64encode

    name, type_ = attachment.path.rpartition("/")[2] or "file", attachment.type
    if type_.startswith("text/") or type_ == "application/json":
        return {"type": "text", "text": f"{name}:\n{attachment.data.decode('utf-8', 'replace')}"}
    data = b64encode(attachment.data).decode()
    if type_.startswith("audio/"):
        form = "mp3" if type_ == "audio/mpeg" else type_.rpartition("/")[2].removeprefix("x-")
        return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    url = f"data:{type_};base64,{data}"
    if type_.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": name, "file_data": url}}


# ── what is received ──


class _Cut(Exception):
    """A stream ended before the answer did."""


async def _pieces(response: httpx.Response, answer: Completion) -> AsyncGenerator[str]:
    """The texts of an answer as they arrive; ends when the answer is whole."""
    type_ = response.headers.get("content-type", "")
    if "json" in type_ or "html" in type_:  # a server that does not stream, or something else altogether
        yield answer.take(await document(response.aiter_bytes()))
        return
    async with aclosing(events(response.aiter_bytes())) as received:
        async for data in received:
            if data == DONE:
                return
            yield answer.take(data)
    if not answer.finish:
        raise _Cut("the connection was closed")


async def _beginning(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > 20_000:
            break
    return bytes(body)


def too_many(header: str, text: str, spent: bool, details: dict[str, object]) -> ModelError:
    """A 429: when it may be tried again, unless there is no credit left to do so."""
    if spent:
        return ModelError(text, "the account has no credit left", "rate_limit", details)
    asked = retry_after(header)
    wait = TOO_MANY if asked is None else asked
    hint = f"the server asks to wait {wait:g} s" if wait > LONGEST_WAIT else "ask less often: fewer jobs at once"
    return ModelError(text, hint, "rate_limit", {**details, "retry_after": wait}, wait=wait)


def _httpx() -> Any:
    return package("a model behind a URL", "models")

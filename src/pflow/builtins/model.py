"""Models: a question and its answer.

Looking any type up may import this module, so it imports what only a call needs where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pflow.nodes import NodeError, StepContext, node, to_text

if TYPE_CHECKING:
    from pflow.llm.interface import Attachment, Reply, Request, Turn, Usage

LARGEST = 20_000_000  # bytes of an attachment
_KEPT = 2000  # characters of an answer that are shown with a failure


def _depends(params: Mapping[str, Any], workspace: Path, folder: Path | None) -> dict[str, str]:
    """What an answer goes by beside the params: the default model, where none is named, and the files attached."""
    from pflow.nodes.models import default_model

    made = {} if params.get("model") else {"model": default_model()}
    attached = _listed(params.get("attachments"))
    named = [item.get("path") if isinstance(item, dict) else item for item in attached]
    for path in (workspace / Path(name).expanduser() for name in named if isinstance(name, str) and "\0" not in name):
        made |= _file(path)
    return made


def _file(path: Path) -> dict[str, str]:
    import hashlib

    try:
        with path.open("rb") as file:
            return {str(path): hashlib.file_digest(file, "sha256").hexdigest()}
    except OSError:
        return {}


@node(
    "llm",
    version="1",
    effect="quiet",
    main_in="prompt",
    main_out="response",
    outputs=("response", "llm_usage"),
    aliases={"images": "attachments"},
    depends=_depends,
    examples=[
        {"prompt": "Name three rivers.", "model": "local"},
        {
            "prompt": "Is this text friendly?",
            "schema": {"type": "object", "properties": {"friendly": {"type": "boolean"}}, "required": ["friendly"]},
            "attachments": ["letter.txt"],
        },
    ],
)
async def llm(
    step: StepContext,
    prompt: str,
    system: str = "",
    model: str = "",
    temperature: float | None = None,
    max_tokens: int | None = None,
    seed: int | None = None,
    schema: Any = None,
    schema_repair: int = 1,
    attachments: Any = None,
) -> dict[str, Any]:
    """Ask a model; ``response`` is its text, or with a JSON ``schema`` a value that fits it.

    An answer that does not fit is sent back with what is wrong with it, ``schema_repair`` times at most. What is
    attached are files. ``model`` is ``local``, ``http://host/v1#MODEL`` for any OpenAI-compatible server, or a name
    that the package llm knows; without one, the setting ``model.default`` counts.
    """
    from pflow.documents.schema import check
    from pflow.llm.interface import Request, Turn

    if not prompt.strip():
        raise NodeError("prompt is empty", "say what is asked", kind="validation")
    attached = tuple(_attachment(step, item) for item in _listed(attachments))
    messages = [Turn("system", system)] if system else []
    messages.append(Turn("user", prompt, attachments=attached))
    wanted = None if schema is None else check(schema)
    request = Request(tuple(messages), temperature, max_tokens, seed, wanted)
    if wanted is None:
        reply = await _asked(step, model, request, 1)
        return {"response": reply.text, "llm_usage": _usage([reply])}
    return await _fitting(step, model, request, max(0, schema_repair))


@node(
    "summarize",
    version="1",
    effect="quiet",
    main_in="text",
    main_out="summary",
    outputs=("summary", "llm_usage"),
    depends=_depends,
    examples=[{"text": "A long text …", "words": 50, "model": "local"}],
)
async def summarize(step: StepContext, text: str, words: int = 150, model: str = "") -> dict[str, Any]:
    """Say what a text says, in at most ``words`` words."""
    from pflow.llm.interface import Request, Turn

    if words < 1:
        raise NodeError(f"words is {words}", "give a number above 0", kind="validation")
    if not text.strip():
        return {"summary": "", "llm_usage": _usage([])}
    system = f"Summarize the user's text in at most {words} words. Answer with the summary and nothing else."
    request = Request((Turn("system", system), Turn("user", text)))
    reply = await _asked(step, model, request, 1)
    return {"summary": reply.text.strip(), "llm_usage": _usage([reply])}


async def _asked(step: StepContext, model: str, request: Request, call: int) -> Reply:
    from pflow.nodes.models import ask_model

    reply = await ask_model(step, model, request, call=call)
    if reply.finish == "length":
        step.log.warn("the answer was cut off: it has as many tokens as it may have", max_tokens=request.max_tokens)
    return reply


async def _fitting(step: StepContext, model: str, request: Request, repairs: int) -> dict[str, Any]:
    """An answer that fits the request's schema, with further calls where it does not."""
    from pflow.llm.errors import ModelError, excerpt

    replies: list[Reply] = []
    asked = request.messages
    while True:
        reply = await _asked(step, model, _with(request, asked), len(replies) + 1)
        replies.append(reply)
        value, wrong = _read(reply, request.schema or {})
        if not wrong:
            return {"response": value, "llm_usage": _usage(replies)}
        if len(replies) > repairs:
            break
        step.emit("llm:repair", call=len(replies) + 1, problem=wrong)
        asked = (*request.messages, *_sent_back(reply.text, wrong))
    raise ModelError(
        f"the answer does not fit the schema: {wrong}",
        "a simpler schema, a stronger model, or more schema_repair",
        details={"response": excerpt(reply.text, _KEPT), "calls": len(replies)},
    )


def _with(request: Request, messages: tuple[Turn, ...]) -> Request:
    import msgspec

    return msgspec.structs.replace(request, messages=messages)


def _read(reply: Reply, schema: dict[str, Any]) -> tuple[Any, str]:
    """The value in an answer, and what is wrong with it."""
    from pflow.documents.json_in_text import extract
    from pflow.documents.schema import problem

    try:
        value = extract(reply.text)
    except ValueError as error:
        return None, "it was cut off before its end" if reply.finish == "length" else f"it is no JSON: {error}"
    return value, problem(value, schema)


def _sent_back(text: str, wrong: str) -> list[Turn]:
    from pflow.llm.interface import Turn

    return [
        Turn("assistant", text),
        Turn("user", f"This does not fit the schema: {wrong}. Answer again, with nothing but JSON that fits."),
    ]


def _usage(replies: list[Reply]) -> dict[str, Any]:
    """What all calls used together; a price that is not known makes the sum unknown."""
    used: list[Usage] = [reply.usage for reply in replies]
    taken, made = sum(usage.input_tokens for usage in used), sum(usage.output_tokens for usage in used)
    costs = [usage.cost_usd for usage in used]
    return {
        "model": used[-1].model if used else "",
        "input_tokens": taken,
        "output_tokens": made,
        "total_tokens": taken + made,
        "cost_usd": None if None in costs else sum(cost for cost in costs if cost is not None),
        "calls": len(used),
    }


# ── attachments ──


def _listed(given: Any) -> list[Any]:
    return [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]


def _attachment(step: StepContext, item: Any) -> Attachment:
    """A path, bytes, or an object with ``path`` or ``data``, and a ``type`` where it cannot be guessed."""
    from pflow.llm.interface import Attachment

    given: dict[str, Any] = item if isinstance(item, dict) else {"data" if isinstance(item, bytes) else "path": item}
    path, data, type_ = to_text(given.get("path") or ""), given.get("data"), to_text(given.get("type") or "")
    if not path and data is None:
        raise NodeError("an attachment has neither path nor data", 'write {"path": "image.png"}', "validation")
    if "://" in path:
        raise NodeError(f"the attachment {path} is no file", "fetch it with http first, and attach that", "validation")
    content = _read_file(step.workspace / Path(path).expanduser()) if data is None else _bytes(data)
    if len(content) > LARGEST:
        raise NodeError(f"the attachment {path} is over {LARGEST:,} bytes", kind="validation")
    return Attachment(type_ or _type(path, content), path, content)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise NodeError(f"the attachment {path} cannot be read: {error.strerror}", kind="validation") from None


def _bytes(data: Any) -> bytes:
    return data if isinstance(data, bytes) else to_text(data).encode("utf-8", "replace")


def _type(path: str, content: bytes) -> str:
    """The MIME type: by the file's name, by its first bytes, and whatever is text is text."""
    import mimetypes

    known = mimetypes.guess_type(path)[0]
    if known:
        return known
    for start, type_ in ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"),
                         (b"%PDF", "application/pdf")):  # fmt: skip
        if content.startswith(start):
            return type_
    try:
        content.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain"

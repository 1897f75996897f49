"""HTTP requests.

Looking any type up may import this module, so it imports what only a request needs where it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from pflow.builtins.transport import SAFE, HttpRequest, Received, check_timeout, check_url, send
from pflow.nodes import NodeError, StepContext, node, to_text

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
KEY = "Idempotency-Key"
_QUIET = frozenset({"GET", "HEAD"})
_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # of a header
_VALUE = r"[\t\x20-\x7e]*"
# Types besides text/… that are texts.
_TEXTUAL = (
    r"text/.*|.*\+(xml|yaml)|application/(xml|yaml|x-yaml|toml|sql|graphql|javascript|ecmascript|"
    r"x-javascript|x-ndjson|ndjson|jsonl|x-sh|x-www-form-urlencoded)"
)
_JSON = r"(application|text)/(x-)?json|.*\+json"


def _effect(params: Mapping[str, Any]) -> Literal["quiet", "impure"]:
    method = params.get("method", "GET")
    return "quiet" if isinstance(method, str) and method.strip().upper() in _QUIET else "impure"


@node(
    "http",
    version="1",
    effect_of=_effect,
    main_in="url",
    main_out="response",
    outputs=("response", "status_code", "response_headers", "response_time"),
    examples=[
        {"url": "https://example.org/items", "params": {"page": 2}},
        {"url": "https://example.org/items", "method": "POST", "json": {"name": "new"}, "auth_token": "…"},
    ],
)
async def http(
    step: StepContext,
    url: str,
    method: str = "GET",
    body: Any = None,
    json: Any = None,
    form: dict[str, Any] | None = None,
    headers: dict[str, Any] | None = None,
    params: dict[str, Any] | None = None,
    auth_token: str | None = None,
    timeout: float | None = 30,
    max_bytes: int = 50_000_000,
    follow_redirects: bool = True,
) -> dict[str, Any]:
    """Send an HTTP request; ``response`` is the parsed JSON, the text or the bytes of the answer.

    One of ``body``, ``json`` and ``form`` may be given; an object or list as ``body`` is sent as JSON. ``params`` go
    into the query. A status other than 2xx is a failure, and so is an answer above ``max_bytes``.
    """
    method, url = _method(method), check_url(url)
    check_timeout(timeout)
    if max_bytes < 1:
        raise NodeError(f"max_bytes is {max_bytes}", "give a number above 0", kind="validation")
    content, content_type = _content(body, json, form)
    sent = _headers(headers or {})
    _authorize(sent, url, auth_token)
    if content is not None and not _has(sent, "Content-Type"):
        sent["Content-Type"] = content_type
    if method not in SAFE and not _has(sent, KEY):
        sent[KEY] = quote(step.idempotency_key, safe="!#$&'()*+,/:;=?@[]~")
    if content is not None and method in _QUIET:
        step.log.warn(f"a body is sent with {method}, which most servers ignore; was method: POST meant?")
    asked = HttpRequest(method, _with_query(url, params), sent, content, timeout, max_bytes, follow_redirects)
    answer = await send(step, asked)
    return {
        "response": _decoded(step, answer),
        "status_code": answer.status,
        "response_headers": answer.headers,
        "response_time": answer.seconds,
    }


def _method(given: str) -> str:
    method = given.strip().upper()
    if method not in METHODS:
        import difflib

        close = difflib.get_close_matches(method, METHODS, 1)
        hint = (f'did you mean "{close[0]}"? ' if close else "") + f"known: {', '.join(METHODS)}"
        raise NodeError(f'unknown method "{given}"', hint, kind="validation")
    return method


def _content(body: Any, json: Any, form: dict[str, Any] | None) -> tuple[bytes | None, str]:
    """What to send, and its type."""
    given = [name for name, value in (("body", body), ("json", json), ("form", form)) if value is not None]
    if len(given) > 1:
        raise NodeError(
            f"{' and '.join(given)} are given", "a request has one body: keep one of them", kind="validation"
        )
    if not given:
        return None, ""
    if form is not None:
        return urlencode(_pairs(form)).encode(), "application/x-www-form-urlencoded"
    if isinstance(body, bytes):
        return body, "application/octet-stream"
    if json is None and not isinstance(body, (dict, list)):
        return to_text(body).encode("utf-8", "replace"), "text/plain; charset=utf-8"
    import json as jsons

    try:
        return jsons.dumps(body if json is None else json, allow_nan=False).encode(), "application/json"
    except (TypeError, ValueError, RecursionError) as error:
        hint = "JSON has no bytes, NaN or infinity"
        raise NodeError(f"{given[0]} cannot be written as JSON: {error}", hint, kind="validation") from None


def _pairs(fields: dict[str, Any]) -> list[tuple[str, str]]:
    """Fields of a query or form: a list repeats its field, null leaves it out."""
    every = [(name, item) for name, value in fields.items() for item in (value if isinstance(value, list) else [value])]
    return [(name, to_text(item)) for name, item in every if item is not None]


def _with_query(url: str, params: dict[str, Any] | None) -> str:
    """The URL with params added to its query."""
    added = urlencode(_pairs(params or {}))
    if not added:
        return url
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=f"{parts.query}&{added}" if parts.query else added))


def _headers(given: dict[str, Any]) -> dict[str, str]:
    """Headers that can be sent; a message never shows a value, which may be secret."""
    made = {name.strip(): to_text(value).strip() for name, value in given.items() if value is not None}
    for name, value in made.items():
        if not re.fullmatch(_NAME, name):
            raise NodeError(f'"{name}" cannot be the name of a header', kind="validation")
        if not re.fullmatch(_VALUE, value):
            hint = "a header is one line of ASCII characters"
            raise NodeError(f'the value of the header "{name}" cannot be sent', hint, kind="validation")
    return made


def _authorize(headers: dict[str, str], url: str, token: str | None) -> None:
    """Add the token; there can be only one credential."""
    given = {
        "auth_token": bool(token),
        "the Authorization header": _has(headers, "Authorization"),
        "the user in the URL": "@" in urlsplit(url).netloc,
    }
    named = [name for name, there in given.items() if there]
    if len(named) > 1:
        raise NodeError("more than one credential is given", f"keep one of {' and '.join(named)}", kind="validation")
    if token:
        if not re.fullmatch(_VALUE, token.strip()):
            raise NodeError("auth_token cannot be sent", "it is one line of ASCII characters", kind="validation")
        headers["Authorization"] = f"Bearer {token.strip()}"


def _has(headers: dict[str, str], name: str) -> bool:
    return any(given.lower() == name.lower() for given in headers)


def _decoded(step: StepContext, answer: Received) -> Any:
    """The answer's value, by its content type."""
    import json

    mime = answer.mime
    if re.fullmatch(_JSON, mime):
        if not answer.body.strip():
            return None
        try:
            return json.loads(answer.body)
        except (ValueError, RecursionError):
            step.log.warn(f"the answer calls itself {mime} and is not: it is handed on as text")
            return text_of(answer)
    if mime:
        return text_of(answer) if re.fullmatch(_TEXTUAL, mime) else answer.body
    try:
        return answer.body.decode()
    except UnicodeDecodeError:
        return answer.body


def is_text(mime: str) -> bool:
    """Whether content of this type is text."""
    return bool(re.fullmatch(_TEXTUAL, mime) or re.fullmatch(_JSON, mime))


def text_of(answer: Received, charset: str = "") -> str:
    """The body as text, in its charset; what does not fit is replaced."""
    try:
        return answer.body.decode(answer.charset or charset or "utf-8-sig", "replace")
    except (LookupError, ValueError):
        return answer.body.decode("utf-8", "replace")

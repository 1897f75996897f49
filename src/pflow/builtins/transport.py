"""Sending one HTTP request and reading its answer: limits, redirects, a few retries, and no secret in any message."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from pflow.http import BACKOFF, causes, certificates, package, patiently, reason, retry_after
from pflow.model.redact import HIDDEN
from pflow.nodes import NodeError, StepContext

if TYPE_CHECKING:
    import httpx

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that ask and change nothing
REDIRECTS = 20
_EXCERPT = 500
_CREDENTIAL = (
    "(?i)auth|token|secret|passw|pwd|cookie|credential|signature|session|api[-_]?key|access[-_]?key|private|^(sig|key)$"
)


class HttpRequest(NamedTuple):
    """What to send, checked."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None
    timeout: float | None = 30
    max_bytes: int = 50_000_000
    follow_redirects: bool = True

    @property
    def shown(self) -> str:
        """The request, as messages may show it."""
        return self.hide(f"{self.method} {shown_url(self.url)}")

    def hide(self, text: str) -> str:
        """A text with every credential of this request blotted out."""
        for secret in sorted(set(_secrets(self)), key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text


class Received(NamedTuple):
    """A whole answer."""

    status: int
    headers: dict[str, str]
    body: bytes
    url: str
    seconds: float

    @property
    def mime(self) -> str:
        """The content type without its parameters; empty where there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The charset that the answer declares, if any."""
        found = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", self.headers.get("content-type", ""), re.I)
        return found[1] if found else ""


async def send(step: StepContext, asked: HttpRequest) -> Received:
    """Send a request; raises ``NodeError`` for anything but a whole answer with a good status."""
    httpx = _httpx()
    started = perf_counter()
    try:
        async with (
            asyncio.timeout(asked.timeout),
            httpx.AsyncClient(verify=certificates(), timeout=None, headers={"User-Agent": "pflow"}) as client,
        ):
            request = client.build_request(asked.method, asked.url, headers=asked.headers, content=asked.content)
            answer = await _exchange(step, client, request, asked)
    except (TimeoutError, httpx.TimeoutException):
        details: dict[str, object] = {"method": asked.method, "url": asked.hide(shown_url(asked.url))}
        text = f"{asked.shown}: timed out after {asked.timeout:g} s" if asked.timeout else f"{asked.shown}: timed out"
        raise NodeError(text, "raise its timeout", "timeout", details) from None
    except httpx.InvalidURL as error:
        raise NodeError(f"the URL cannot be used: {asked.hide(str(error))}", kind="validation") from None
    except httpx.HTTPError as error:
        raise _failed(error, asked) from None
    return answer._replace(seconds=round(perf_counter() - started, 6))


def check_url(url: str, param: str = "url") -> str:
    """The URL without blanks around it; refused unless it can be sent to."""
    url = url.strip()
    if not url:
        raise NodeError(f"{param} is empty", "give a URL: https://…", kind="validation")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise NodeError(f"{shown_url(url)} is no URL: {error}", kind="validation") from None
    if parts.scheme.lower() not in ("http", "https"):
        named = "://" in url
        hint = (
            "only http and https can be fetched; read-file reads files" if named else f"write https://{shown_url(url)}"
        )
        text = f'the URL has the scheme "{parts.scheme}"' if named else f"the URL has no scheme: {shown_url(url)}"
        raise NodeError(text, hint, kind="validation")
    if not host:
        raise NodeError(f"the URL names no host: {shown_url(url)}", kind="validation")
    return url


def check_timeout(timeout: float | None) -> None:
    """Refuse what is no span of time."""
    if timeout is not None and not timeout > 0:
        raise NodeError(f"timeout is {timeout:g}", "give seconds above 0", kind="validation")


def looks_secret(name: str) -> bool:
    """Whether a header or query param of this name holds a credential."""
    return re.search(_CREDENTIAL, name) is not None


def shown_url(url: str) -> str:
    """A URL as it may be shown: no user and password, and nothing in the query that looks like a credential."""
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return "the URL"
    query = parts.query
    if any(looks_secret(name) for name, _ in pairs):
        query = urlencode([(name, HIDDEN if looks_secret(name) else value) for name, value in pairs], safe="[]")
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))


# ── the exchange ──


async def _exchange(
    step: StepContext, client: httpx.AsyncClient, request: httpx.Request, asked: HttpRequest
) -> Received:
    """Send, and follow redirects."""
    for _ in range(REDIRECTS + 1):
        response = await _send(step, client, request, asked)
        try:
            following = response.next_request if asked.follow_redirects else None
            if following is None:
                return await _received(response, asked)
        finally:
            await response.aclose()
        request = _followed(request, following)
    raise NodeError(f"{asked.shown}: more than {REDIRECTS} redirects", "does it redirect in a circle?", "http")


async def _send(
    step: StepContext, client: httpx.AsyncClient, request: httpx.Request, asked: HttpRequest
) -> httpx.Response:
    """One request, until an answer begins; repeated only where nothing can have happened yet."""

    async def once() -> httpx.Response:
        response = await client.send(request, stream=True)
        if response.status_code == 429:
            try:
                raise await _refused(response, asked)
            finally:
                await response.aclose()
        return response

    def pause(error: Exception, attempt: int) -> float | None:
        if not isinstance(error, NodeError):
            return BACKOFF * 2 ** (attempt - 1) if _repeatable(error, request.method) else None
        wait = error.details.get("retry_after", 2.0 ** (attempt - 1))
        if request.method not in SAFE or not isinstance(wait, float):
            return None
        return wait if asked.timeout is None or wait < asked.timeout else None

    def tell(error: Exception, attempt: int, delay: float) -> None:
        why = "429 Too Many Requests" if isinstance(error, NodeError) else asked.hide(reason(error))
        url = asked.hide(shown_url(str(request.url)))
        step.emit("http:retry", attempt=attempt, method=request.method, url=url, reason=why, delay=delay)

    return await patiently(once, (_httpx().TransportError, NodeError), pause, tell)


async def _received(response: httpx.Response, asked: HttpRequest) -> Received:
    """Read the answer, if it is a good one; a redirect is when it was asked not to be followed."""
    if not (response.is_success or (response.is_redirect and not asked.follow_redirects)):
        raise await _refused(response, asked)
    announced = response.headers.get("content-length", "")
    if asked.method != "HEAD" and announced.isdecimal() and int(announced) > asked.max_bytes:
        raise _too_long(response, asked)
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > asked.max_bytes:
            raise _too_long(response, asked)
    return Received(response.status_code, dict(response.headers), bytes(body), str(response.url), 0.0)


def _followed(before: httpx.Request, after: httpx.Request) -> httpx.Request:
    """The next request of a redirect, which carries no credential to another server."""
    if after.url.scheme not in ("http", "https"):
        text = f"{shown_url(str(before.url))} redirects to {shown_url(str(after.url))}"
        raise NodeError(text, "only http and https are followed", "http")
    if (before.url.scheme, before.url.netloc) != (after.url.scheme, after.url.netloc):
        for name in [name for name in after.headers if looks_secret(name)]:
            del after.headers[name]
    return after


# ── failures ──


def _repeatable(error: Exception, method: str) -> bool:
    """Whether the request cannot have been acted upon, or may be acted upon twice."""
    httpx = _httpx()
    if any(isinstance(cause, ssl.SSLError) for cause in causes(error)):
        return False
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        return True
    lost = isinstance(error, (httpx.ReadError, httpx.WriteError)) or "disconnected" in str(error)
    return lost and method in SAFE


async def _refused(response: httpx.Response, asked: HttpRequest) -> NodeError:
    """A status that is no success, with the beginning of what the server says about it."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > 8 * _EXCERPT:
            break
    said = " ".join(bytes(body).decode("utf-8", "replace").split())
    said = asked.hide(said)[:_EXCERPT]
    phrase, status, url = response.reason_phrase, response.status_code, shown_url(str(response.url))
    text = asked.hide(f"{asked.method} {url}: {status} {phrase}".rstrip()) + (f": {said}" if said else "")
    details: dict[str, object] = {
        "status_code": status, "reason": phrase, "method": asked.method, "url": asked.hide(url), "body": said,
    }  # fmt: skip
    wait = retry_after(response.headers.get("retry-after", ""))
    if wait is not None:
        details["retry_after"] = wait
    return NodeError(text, _advice(status, wait), "http", details)


def _advice(status: int, wait: float | None) -> str:
    if wait is not None:
        return f"the server asks to wait {wait:g} s"
    match status:
        case 401:
            return "check the credentials: auth_token, or an Authorization header"
        case 403:
            return "the credentials do not allow this"
        case 404:
            return "check the URL"
        case 405:
            return "check the method"
        case 413:
            return "send less at once"
    return "the server failed, not the request" if status >= 500 else ""


def _too_long(response: httpx.Response, asked: HttpRequest) -> NodeError:
    details: dict[str, object] = {"status_code": response.status_code, "max_bytes": asked.max_bytes}
    text = f"{asked.shown}: the answer is over {asked.max_bytes:,} bytes"
    return NodeError(text, "raise max_bytes, or ask for less", "http", details)


def _failed(error: httpx.HTTPError, asked: HttpRequest) -> NodeError:
    """A request without a whole answer."""
    details: dict[str, object] = {"method": asked.method, "url": asked.hide(shown_url(asked.url))}
    found = list(causes(error))
    hint = ""
    if any(isinstance(cause, ssl.SSLError) for cause in found):
        hint = "the server's certificate, or what it speaks, is not trusted"
    elif any(isinstance(cause, socket.gaierror) for cause in found):
        hint = "check the host's name, and the network"
    elif isinstance(error, _httpx().ConnectError):
        hint = "is the server running, and is the port right?"
    return NodeError(f"{asked.shown}: {asked.hide(reason(error))}", hint, "http", details)


def _secrets(asked: HttpRequest) -> Iterator[str]:
    """Every text in a request that nobody else should see."""
    from base64 import b64encode

    parts = urlsplit(asked.url)
    userinfo = parts.netloc.rpartition("@")[0]
    values = [userinfo.partition(":")[2] or userinfo, b64encode(unquote(userinfo).encode()).decode()]
    values += [value for name, value in parse_qsl(parts.query) if looks_secret(name)]
    values += [value for name, value in asked.headers.items() if looks_secret(name)]
    for value in filter(None, values):
        yield value
        yield quote(value)
        yield from (piece for piece in re.split(r"[\s=;,\"]+", value) if len(piece) > 5)


def _httpx() -> Any:
    return package("this type", "http")

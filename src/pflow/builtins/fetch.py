"""Web pages, as something to read."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from pflow.builtins.http import is_text, text_of
from pflow.builtins.transport import HttpRequest, Received, check_timeout, check_url, send
from pflow.nodes import NodeError, StepContext, node

FORMS = ("text", "markdown", "raw")
LARGEST = 20_000_000  # bytes of a page
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_META = rb"(?i)<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]{1,40})"
_ACCEPT = "text/html,application/xhtml+xml;q=0.9,text/plain;q=0.8,*/*;q=0.5"


@node(
    "fetch_url",
    version="1",
    effect="quiet",
    main_in="url",
    main_out="text",
    outputs=("text", "title", "status_code"),
    examples=[{"url": "https://example.org"}, {"url": "https://example.org", "as": "markdown"}],
)
async def fetch_url(step: StepContext, url: str, timeout: float | None = 30, as_: str = "text") -> dict[str, Any]:
    """Fetch a page ``as`` plain text, as ``markdown``, or ``raw`` as it was sent, with its title."""
    form = as_.strip().lower()
    if form not in FORMS:
        raise NodeError(f'as is "{as_}"', f"one of {', '.join(FORMS)}", kind="validation")
    check_timeout(timeout)
    asked = HttpRequest("GET", check_url(url), {"Accept": _ACCEPT}, timeout=timeout, max_bytes=LARGEST)
    answer = await send(step, asked)
    if answer.mime and not is_text(answer.mime):
        hint = "take http instead, which hands bytes on"
        raise NodeError(f"{asked.shown} is {answer.mime}, which is no text", hint, "http")
    html = text_of(answer, _sniffed(answer))
    if not _is_html(answer, html):
        return {"text": html, "title": "", "status_code": answer.status}
    from pflow.builtins.markup import convert

    page = await asyncio.to_thread(convert, html, answer.url, form == "markdown")
    return {"text": html if form == "raw" else page.text, "title": page.title, "status_code": answer.status}


def _sniffed(answer: Received) -> str:
    """The charset that a page itself declares; older pages that declare none and are not UTF-8 are Western."""
    found = re.search(_META, answer.body[:2048])
    if found:
        return found[1].decode("ascii")
    try:
        answer.body.decode()
    except UnicodeDecodeError:
        return "cp1252"
    return ""


def _is_html(answer: Received, text: str) -> bool:
    return answer.mime in _HTML or (
        not answer.mime and text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))
    )

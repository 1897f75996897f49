from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
from typing import Any

import pytest

from pflow.http import retry_after
from pflow.model.workflow import Node, Policy
from pflow.nodes import UNKNOWN
from pflow.nodes.registry import Registry
from tests.builtins.running import NODE, VISIT, driven, failure, outputs
from tests.builtins.server import Handler, Server
from tests.kernel.driving import RUN, Driven, workflow

TOKEN = "s3cr3t-t0ken"


@pytest.fixture
def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


# ── requests ──


def test_a_get_gives_value_status_headers_and_time(server: Server) -> None:
    made = outputs("http", url=f"{server.url}/echo")
    assert made["status_code"] == 200 and made["response"]["method"] == "GET"
    assert made["response_headers"]["content-type"] == "application/json"
    assert 0 < made["response_time"] < 30
    assert "idempotency-key" not in made["response"]["headers"]


@pytest.mark.parametrize("method", ["post", "PUT", "Patch", "DELETE"])
def test_unsafe_methods_carry_the_key_of_the_visit(server: Server, method: str) -> None:
    sent = outputs("http", url=f"{server.url}/echo", method=method)["response"]
    assert sent["method"] == method.upper() and sent["headers"]["idempotency-key"] == f"{RUN}:{VISIT}"
    own = outputs("http", url=f"{server.url}/echo", method=method, headers={"idempotency-key": "mine"})["response"]
    assert own["headers"]["idempotency-key"] == "mine"


def test_a_key_that_no_header_can_hold_is_encoded(server: Server) -> None:
    flow = workflow(Node("größe", "http", {"url": f"{server.url}/echo", "method": "POST"}))
    sent = Driven(flow).drive().outputs["größe"]["response"]
    assert sent["headers"]["idempotency-key"] == f"{RUN}:gr%C3%B6%C3%9Fe#1"


@pytest.mark.parametrize(
    ("params", "body", "content_type"),
    [
        ({"json": {"a": [1, "é"]}}, json.dumps({"a": [1, "é"]}), "application/json"),
        ({"body": [1]}, "[1]", "application/json"),
        ({"json": 0}, "0", "application/json"),
        ({"body": "text"}, "text", "text/plain; charset=utf-8"),
        ({"body": b"\xff\0"}, "\xff\0", "application/octet-stream"),
        ({"form": {"a": "x y", "b": [1, True], "c": None}}, "a=x+y&b=1&b=true", "application/x-www-form-urlencoded"),
        ({"body": "<a/>", "headers": {"content-type": "text/xml"}}, "<a/>", "text/xml"),
    ],
)
def test_bodies(server: Server, params: dict[str, Any], body: str, content_type: str) -> None:
    sent = outputs("http", url=f"{server.url}/echo", method="POST", **params)["response"]
    assert sent["body"] == body and sent["headers"]["content-type"] == content_type


def test_headers_query_and_token(server: Server) -> None:
    params = {"b": 2, "c": ["x", "y z"], "d": None, "e": True}
    sent = outputs(
        "http",
        url=f" {server.url}/echo?a=%201#part ",
        params=params,
        headers={"X-N": 1, "X-None": None},
        auth_token=TOKEN,
    )["response"]
    assert sent["path"] == "/echo?a=%201&b=2&c=x&c=y+z&e=true"
    assert sent["headers"]["x-n"] == "1" and "x-none" not in sent["headers"]
    assert sent["headers"]["authorization"] == f"Bearer {TOKEN}"


def test_a_user_in_the_url_is_sent_as_basic_credentials(server: Server) -> None:
    sent = outputs("http", url=f"http://me:word@{server.netloc}/echo")["response"]
    assert sent["headers"]["authorization"].startswith("Basic ")


def test_a_body_with_get_is_sent_and_doubted(server: Server) -> None:
    run = driven("http", url=f"{server.url}/echo", json={"a": 1})
    assert run.outputs[NODE]["response"]["body"] == '{"a": 1}'
    assert any("POST" in event.event.data.get("message", "") for event in run.events if event.event.type == "log")


# ── answers ──


@pytest.mark.parametrize(
    ("body", "type_", "value"),
    [
        (b'{"a": 1}', "application/json; charset=utf-8", {"a": 1}),
        (b"[1]", "application/problem+json", [1]),
        (b"", "application/json", None),
        (b"{not json", "application/json", "{not json"),
        ("é".encode(), "text/plain", "é"),
        ("é".encode("latin-1"), 'text/html; charset="ISO-8859-1"', "é"),
        (b"a\xff", "text/plain; charset=nonsense", "a\ufffd"),
        (b"<a/>", "image/svg+xml", "<a/>"),
        (b"\x89PNG", "image/png", b"\x89PNG"),
        (b"plain", "", "plain"),
        (b"\xff\xfe", "", b"\xff\xfe"),
    ],
)
def test_answers_are_decoded_by_their_type(server: Server, body: bytes, type_: str, value: Any) -> None:
    server.routes["/"] = lambda handler: handler.answer(200, body, type_)
    assert outputs("http", url=f"{server.url}/")["response"] == value


def test_an_answer_to_head_has_no_body(server: Server) -> None:
    server.routes["/"] = lambda handler: handler.answer(200, b"x" * 100, "text/plain")
    made = outputs("http", url=server.url, method="head", max_bytes=10)
    assert made["response"] == "" and made["response_headers"]["content-length"] == "100"


def test_compressed_answers_are_unpacked(server: Server) -> None:
    packed = gzip.compress(b"x" * 1000)
    server.routes["/"] = lambda handler: handler.answer(200, packed, "text/plain", Content_Encoding="gzip")
    assert outputs("http", url=f"{server.url}/")["response"] == "x" * 1000
    assert "over 999 bytes" in failure("http", url=f"{server.url}/", max_bytes=999).message


def test_an_answer_over_the_limit_is_not_read(server: Server) -> None:
    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            stopped.set()

    stopped = threading.Event()
    server.routes["/endless"] = endless
    server.routes["/announced"] = lambda handler: handler.answer(200, b"x" * 2000)
    for path in ("endless", "announced"):
        failed = failure("http", url=f"{server.url}/{path}", max_bytes=1000)
        assert failed.kind == "http" and "over 1,000 bytes" in failed.message and "max_bytes" in failed.hint
        assert failed.details["status_code"] == 200
    stopped.wait()


# ── redirects ──


def test_redirects_are_followed_or_handed_on(server: Server) -> None:
    server.routes["/go"] = lambda handler: handler.answer(302, b"there", "text/plain", Location="/echo")
    assert outputs("http", url=f"{server.url}/go", method="POST", json=1)["response"]["method"] == "GET"
    made = outputs("http", url=f"{server.url}/go", follow_redirects=False)
    assert made["status_code"] == 302 and made["response_headers"]["location"] == "/echo"
    assert made["response"] == "there"


def test_a_redirect_keeps_method_and_body_when_told(server: Server) -> None:
    server.routes["/go"] = lambda handler: handler.answer(307, Location="/echo")
    sent = outputs("http", url=f"{server.url}/go", method="PUT", body="x", auth_token=TOKEN)["response"]
    assert (sent["method"], sent["body"]) == ("PUT", "x")
    assert TOKEN in sent["headers"]["authorization"]


def test_credentials_are_not_carried_to_another_server(server: Server) -> None:
    other = Server()
    try:
        server.routes["/go"] = lambda handler: handler.answer(302, Location=f"{other.url}/echo")
        sent = outputs("http", url=f"{server.url}/go", auth_token=TOKEN, headers={"X-Api-Key": TOKEN, "X-A": "1"})
        assert TOKEN not in json.dumps(sent["response"]) and sent["response"]["headers"]["x-a"] == "1"
    finally:
        other.stop()


@pytest.mark.parametrize(
    ("location", "said"), [("/go", "more than 20 redirects"), ("ftp://x/y", "redirects to ftp://x/y")]
)
def test_redirects_that_lead_nowhere(server: Server, location: str, said: str) -> None:
    server.routes["/go"] = lambda handler: handler.answer(302, Location=location)
    failed = failure("http", url=f"{server.url}/go")
    assert failed.kind == "http" and said in failed.message and len(server.requests) < 30


# ── failures ──


def test_a_status_that_is_no_success_fails_with_what_the_server_says(server: Server) -> None:
    server.routes["/"] = lambda handler: handler.json({"error": "no  such\nthing", "long": "x" * 2000}, 404)
    failed = failure("http", url=f"{server.url}/?a=1")
    assert failed.kind == "http"
    assert failed.message.startswith(f'GET {server.url}/?a=1: 404 Not Found: {{"error": "no such\\nthing"')
    assert len(failed.message) < 700 and failed.hint == "check the URL"
    assert failed.details["status_code"] == 404 and failed.details["reason"] == "Not Found"
    assert len(server.requests) == 1


def test_no_credential_is_shown_anywhere(server: Server) -> None:
    """Not in messages, traces or events, even when the server sends the whole request back."""
    server.routes["/"] = lambda handler: handler.json(
        {"path": handler.path, "auth": handler.headers["Authorization"], "key": handler.headers["X-Api-Key"]}, 400
    )
    server.routes["/busy"] = lambda handler: handler.answer(429, handler.path.encode(), Retry_After="0")
    cases: list[dict[str, Any]] = [
        {"url": f"{server.url}/", "auth_token": TOKEN},
        {"url": f"{server.url}/busy", "params": {"access_token": TOKEN}},
        {"url": f"{server.url}/hang-up?api_key={TOKEN}"},
        {"url": f"http://me:{TOKEN}@{server.netloc}/"},
        {"url": f"{server.url}/", "headers": {"X-Api-Key": TOKEN, "Cookie": f"session={TOKEN}"}},
        {"url": f"{server.url}/", "headers": {"X-Api-Key": TOKEN + "\n"} | {"Authorization": f"é {TOKEN}"}},
        {"url": f"{server.url}/", "auth_token": f"{TOKEN}\nX: y"},
        {"url": f"https://{server.netloc}/?token={TOKEN}", "auth_token": TOKEN},
        {"url": f"ftp://me:{TOKEN}@{server.netloc}/"},
        {"url": f"http://me:{TOKEN}@[::1/"},
        {"url": f"{server.url}:99999/?token={TOKEN}"},
    ]
    for params in cases:
        run = driven("http", **params)
        failed = run.ended[VISIT].failure
        assert failed is not None, params
        shown = f"{failed} {[event.event for event in run.events]}"
        assert TOKEN not in shown and "bWU6czNjcjN0" not in shown, shown


def test_nobody_there_is_tried_three_times_whatever_the_method(closed_port: int, server: Server) -> None:
    for method in ("GET", "POST"):
        run = driven("http", url=f"http://127.0.0.1:{closed_port}/?key={TOKEN}", method=method)
        failed = run.ended[VISIT].failure
        assert failed is not None and failed.kind == "http" and "connection refused" in failed.message and failed.hint
        retries = [event.event.data for event in run.events if event.event.type == "http:retry"]
        assert [retry["attempt"] for retry in retries] == [1, 2]
        assert retries[0]["reason"] == "connection refused" and TOKEN not in str(retries)


def test_an_unknown_host_is_named(server: Server) -> None:
    failed = failure("http", url="http://no-such-host.invalid/")
    assert failed.kind == "http" and "http://no-such-host.invalid/" in failed.message


def test_a_lost_connection_is_tried_again_only_where_nothing_can_have_happened(server: Server) -> None:
    def once(handler: Handler) -> None:
        handler.hang_up() if len(server.requests) == 1 else handler.echo()

    server.routes["/once"] = once
    run = driven("http", url=f"{server.url}/once")
    assert run.outputs[NODE]["status_code"] == 200 and run.kinds.count("http:retry") == 1
    server.requests.clear()
    failed = failure("http", url=f"{server.url}/once", method="POST")
    assert failed.kind == "http" and len(server.requests) == 1


def test_an_answer_that_breaks_off_is_a_failure(server: Server) -> None:
    def half(handler: Handler) -> None:
        handler.answer(200, b"half", Content_Length="100")
        handler.close_connection = True

    server.routes["/half"] = half
    assert failure("http", url=f"{server.url}/half").kind == "http"
    assert len(server.requests) == 1


def test_too_many_requests_are_repeated_as_the_server_asks(server: Server) -> None:
    def busy(handler: Handler) -> None:
        handler.echo() if len(server.requests) == 3 else handler.answer(429, Retry_After="0")

    server.routes["/busy"] = busy
    run = driven("http", url=f"{server.url}/busy")
    assert run.outputs[NODE]["status_code"] == 200 and run.kinds.count("http:retry") == 2
    server.requests.clear()
    failed = failure("http", url=f"{server.url}/busy", method="POST")
    assert failed.details["status_code"] == 429 and len(server.requests) == 1


@pytest.mark.parametrize("wait", ["31", "Fri, 31 Dec 2999 23:59:59 GMT"])
def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for(server: Server, wait: str) -> None:
    server.routes["/busy"] = lambda handler: handler.answer(429, Retry_After=wait)
    failed = failure("http", url=f"{server.url}/busy")
    assert failed.details["status_code"] == 429 and "asks to wait" in failed.hint
    assert len(server.requests) == 1


@pytest.mark.parametrize(("said", "seconds"), [("2", 2.0), (" 0.5 ", 0.5), ("soon", None), (".", None), ("", None)])
def test_a_wait_is_a_number_or_a_date(said: str, seconds: float | None) -> None:
    assert retry_after(said) == seconds


def test_a_date_that_is_past_is_no_wait(server: Server) -> None:
    server.routes["/busy"] = lambda handler: handler.answer(429, Retry_After="Fri, 31 Dec 1999 23:59:59 GMT")
    failure("http", url=f"{server.url}/busy")
    assert len(server.requests) == 3


@pytest.mark.parametrize("how", ["param", "policy", "cancel"])
def test_a_server_that_does_not_answer_can_be_left(server: Server, how: str) -> None:
    asked, over = threading.Event(), threading.Event()

    def hang(handler: Handler) -> None:
        asked.set()
        over.wait()
        handler.hang_up()

    server.routes["/hang"] = hang
    params = {"url": f"{server.url}/hang", "timeout": 0.3 if how == "param" else 600}
    run = Driven(workflow(Node(NODE, "http", params, policy=Policy(timeout=0.3 if how == "policy" else None))))

    async def main() -> None:
        driving = asyncio.ensure_future(run.run.drive())
        if how == "cancel":
            await asyncio.to_thread(asked.wait)
            run.run.cancel("enough")
        await driving

    try:
        asyncio.run(main())
    finally:
        over.set()
    failed = run.ended[VISIT].failure
    assert failed is not None and failed.kind == ("cancelled" if how == "cancel" else "timeout")
    if how == "param":
        assert failed.message == f"GET {server.url}/hang: timed out after 0.3 s"


@pytest.mark.parametrize(
    ("params", "said", "hint"),
    [
        ({"url": " "}, "url is empty", "https://"),
        ({"url": "example.org/x"}, "no scheme", "write https://example.org/x"),
        ({"url": "file:///etc/passwd"}, 'scheme "file"', "only http and https"),
        ({"url": "http:///x"}, "no host", ""),
        ({"url": "http://x:port/"}, "no URL", ""),
        ({"url": "http://x/", "method": "FETCH"}, 'unknown method "FETCH"', "known: GET"),
        ({"url": "http://x/", "method": "PSOT"}, "unknown method", 'did you mean "POST"?'),
        ({"url": "http://x/", "body": "a", "json": 1}, "body and json", "one of them"),
        ({"url": "http://x/", "json": {}, "form": {}}, "json and form", "one of them"),
        ({"url": "http://x/", "json": {"a": b"x"}}, "as JSON", "bytes"),
        ({"url": "http://x/", "headers": {"a b": "c"}}, '"a b" cannot be', ""),
        ({"url": "http://x/", "headers": {"a": "c\r\nd: e"}}, 'header "a" cannot', "one line"),
        ({"url": "http://x/", "headers": {"authorization": "x"}, "auth_token": "y"}, "more than one", "keep one"),
        ({"url": "http://a:b@x/", "auth_token": "y"}, "more than one", "keep one"),
        ({"url": "http://x/", "timeout": -1}, "timeout is -1", "above 0"),
        ({"url": "http://x/", "max_bytes": 0}, "max_bytes is 0", "above 0"),
    ],
)
def test_bad_params(params: dict[str, Any], said: str, hint: str) -> None:
    failed = failure("http", **params)
    assert failed.kind == "validation" and said in failed.message and hint in failed.hint


def test_only_asking_is_quiet() -> None:
    kind = Registry().get("http")
    given = [{}, {"method": "get"}, {"method": "HEAD"}, {"method": "POST"}, {"method": UNKNOWN}, {"method": None}]
    assert [kind.effect_for(params) for params in given] == ["quiet"] * 3 + ["impure"] * 3

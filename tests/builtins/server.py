"""A real HTTP server on the loopback interface, for tests: routes are functions of the handler."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Route = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Hands a request to its route, and keeps it."""

    server: Server
    protocol_version = "HTTP/1.1"
    body = b""

    def handle_any(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.requests.append(self)
        self.server.routes[self.path.partition("?")[0]](self)

    do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

    def answer(self, status: int = 200, body: bytes = b"", type_: str = "", **headers: str) -> None:
        """Send an answer; ``Retry_After`` is the header Retry-After."""
        self.send_response(status)
        if type_:
            self.send_header("Content-Type", type_)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def json(self, value: Any, status: int = 200) -> None:
        self.answer(status, json.dumps(value).encode(), "application/json")

    def echo(self) -> None:
        """Send the request back."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.json({"method": self.command, "path": self.path, "headers": headers, "body": self.body.decode("latin-1")})

    def hang_up(self) -> None:
        """Close the connection without an answer."""
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Listens on a port of its own until it is stopped."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.routes: dict[str, Route] = {"/echo": Handler.echo, "/hang-up": Handler.hang_up}
        self.requests: list[Handler] = []
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    @property
    def netloc(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.netloc}"

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self.thread.join()

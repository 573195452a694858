"""An answer that is not as the document says is found."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from testing.torture.documented import OPERATIONS, Documented, send_all

_EMPTY = b"{}"


@contextmanager
def _answering(status: int, content: bytes) -> Iterator[str]:
    """A server that has one answer to everything."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (418, _EMPTY, "418"),
        (500, _EMPTY, "Server error"),
        (200, b'{"status": 7}', "schema"),
        (200, b"Traceback (most recent call last)", "traceback"),
    ],
)
def test_what_is_not_documented_is_found(status: int, content: bytes, said: str) -> None:
    """Another status, a defect, another shape, a stack trace; each is kept, and what follows is played all the same."""
    found = Documented()
    with _answering(status, content) as url:
        send_all(found, url, OPERATIONS["healthz"].as_strategy(), 2, ("a", "b"))
    assert found.cases > 0
    assert any(said in violation for violation in found.violations)

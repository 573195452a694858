"""Connections that send more while requests wait for their turn."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest

from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.memory import most_memory
from testing.server import Server

pytestmark = [pytest.mark.process, pytest.mark.serial]
_OFFERED, _MOST_KEPT = 60_000_000, 25_000_000
_PADDING = b"x-padding: " + b"x" * 1_000 + b"\r\n"
_STREAM = b"GET /v1/experiments/flooded/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
_LOOK = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n" + _PADDING + b"\r\n"
_TOLD = b'{"observations": []}'
_TELL = (
    b"POST /v1/experiments/flooded/observations HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n%b\r\n%b" % (len(_TOLD), _PADDING, _TOLD)
)


@pytest.mark.parametrize(("first", "flood"), [(_STREAM, _LOOK), (b"", _TELL)], ids=["behind a stream", "with bodies"])
def test_what_would_have_to_wait_is_not_read(sqlite_databases: NewDatabase, first: bytes, flood: bytes) -> None:
    """However much is sent behind a request that takes long, or waits for its body, the service keeps a bounded part of it."""
    with (
        Server(sqlite_databases(), measured=True) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=1) as link,
    ):
        with JsonClient(server.url) as client:
            client.create("flooded", arms=arms(2))
        before, many = most_memory(server), memoryview(flood * 100)
        link.sendall(first)
        sent = 0
        with suppress(TimeoutError):
            while sent < _OFFERED:
                sent += link.send(many[sent % len(flood) :])
        assert most_memory(server) - before < _MOST_KEPT
        with JsonClient(server.url) as client:
            assert client.send("GET", "/readyz").status == 200

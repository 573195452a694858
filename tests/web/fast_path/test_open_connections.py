"""No connection outlives what its client does not do, not even while it closes."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
import uvloop
from fastapi import FastAPI

from service.main import create_app
from service.settings import Settings
from service.web.fast_path.open_connections import ConnectionLimits, OpenConnections
from service.web.fast_path.protocol import FastPathProtocol
from testing.databases import NewDatabase
from testing.processes import wait_until

_VALUE = "x" * 16_000
_CREATE = b'{"key":"kept","arms":[{"key":"a","value":"%b"},{"key":"b"}]}' % _VALUE.encode()
_POST = b"POST /v1/experiments%b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
_LOOK = b"GET /v1/experiments/kept/arms/a HTTP/1.1\r\nHost: localhost\r\n%b\r\n"
_HIGH_WATER = 64 * 1024


@contextmanager
def _serving(url: str) -> Iterator[tuple[FastAPI, int]]:
    """The application on the loop of production in a thread of its own; one connection, little patience, small buffers."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
    app = create_app(Settings(database_url=url, connection_limit=1, body_seconds=1, keep_alive_seconds=1))
    server = uvicorn.Server(uvicorn.Config(app, http=FastPathProtocol, log_level="warning", proxy_headers=False, lifespan="on"))
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined,unused-ignore] # signals are for main threads

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve([listening]))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield app, listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()


def _answer(port: int, request: bytes) -> bytes:
    """The beginning of the answer to a client that reads it, once there is room for one."""
    until = time.monotonic() + 10
    while True:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            client.sendall(request)
            answer = client.recv(65536)
        if b" 503 " not in answer or time.monotonic() > until:
            return answer
        time.sleep(0.1)


@pytest.fixture(scope="module")
def served(sqlite_databases: NewDatabase) -> Iterator[tuple[FastAPI, int]]:
    """A service with an experiment whose arm has a long value."""
    with _serving(sqlite_databases()) as (app, port):
        assert b" 201 " in _answer(port, _POST % (b"", len(_CREATE), _CREATE))
        yield app, port


@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"], ids=["kept alive", "closed"])
def test_a_client_that_reads_nothing_does_not_keep_its_connection(served: tuple[FastAPI, int], last: bytes) -> None:
    """Nor when so little is left unread that nobody waits for it to be read, and the transport for ever when it closes."""
    app, port = served
    assert b" 200 " in _answer(port, _LOOK % b"Connection: close\r\n")
    never = socket.socket()
    never.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    never.connect(("127.0.0.1", port))
    try:
        until = time.monotonic() + 30
        while not (unread := _unread(app)):
            assert time.monotonic() < until
            never.sendall(_LOOK % b"")
            time.sleep(0.02)
        if last:
            never.sendall(_LOOK % last)
        assert 0 < unread < _HIGH_WATER
        assert b" 200 " in _answer(port, _LOOK % b"Connection: close\r\n")
    finally:
        never.close()


def _unread(app: FastAPI) -> int:
    """What waits in the only connection to be read."""
    return sum(connection.transport.get_write_buffer_size() for connection in list(app.state.connections.open))


class _Late:
    """A connection whose deadline has passed."""

    def __init__(self, *, broken: bool) -> None:
        self.deadline, self.unread_deadline = 0.0, math.inf
        self.times, self._broken = 0, broken
        self.given_up = 0

    def time_out(self) -> None:
        """Fails, or is done."""
        self.times += 1
        if self._broken:
            raise RuntimeError("gone already")

    def leave_unread(self) -> None:
        """Not its turn."""

    def give_up(self) -> None:
        """Not even that works."""
        self.given_up += 1
        raise RuntimeError("gone already")


def test_one_connection_that_fails_is_not_the_end_of_all_deadlines() -> None:
    """Others have theirs, in the same round and in the next ones."""
    broken, others = _Late(broken=True), [_Late(broken=False) for _ in range(20)]

    async def some_rounds() -> None:
        connections = OpenConnections(ConnectionLimits(head_seconds=0.04))
        connections.open.update([broken, *others])
        connections.start()
        await asyncio.to_thread(wait_until, lambda: all(other.times > 1 for other in others), "they are looked after again")
        connections.close()

    asyncio.run(some_rounds())
    assert (broken.times, broken.given_up) == (1, 1)
    assert not any(other.given_up for other in others)

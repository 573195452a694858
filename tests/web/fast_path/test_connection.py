"""How long a client may keep a connection, and how much of it."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from service.web.fast_path.connection import SingleWriteTransport
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.memory import most_memory
from testing.server import Server

pytestmark = pytest.mark.serial
_LIMIT = 20
_SENT_AHEAD = 10_000
_ASK = b"POST /v1/experiments/kept/assignments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
_CREATE = b"POST /v1/experiments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
_LOOK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def strict(new_database: NewDatabase) -> Iterator[Server]:
    """A service that waits for nobody for long."""
    with Server(
        new_database(),
        BESTARM_HEAD_SECONDS="1",
        BESTARM_BODY_SECONDS="2",
        BESTARM_KEEP_ALIVE_SECONDS="3",
        BESTARM_CONNECTION_LIMIT=str(_LIMIT),
    ) as running:
        with JsonClient(running.url) as client:
            client.create("kept", arms=arms(2))
        yield running
        logged = running.log.read_text()
    assert "Traceback" not in logged, logged


class Wire:
    """A bare connection."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self.began = time.monotonic()

    def send(self, data: bytes) -> None:
        """Part of a request, as far as the service still listens."""
        self.socket.sendall(data)

    def read_until_closed(self) -> tuple[float, bytes]:
        """When the service hung up, counted from the beginning, and what it had said."""
        said = bytearray()
        while data := self.socket.recv(65536):
            said += data
        self.socket.close()
        return time.monotonic() - self.began, bytes(said)


def _problem(said: bytes) -> dict[str, Any]:
    """The one problem that was said, whole."""
    head, _, body = said.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    problem: dict[str, Any] = json.loads(body)
    assert f"content-length: {len(body)}" in lines
    assert {"content-type: application/problem+json", "connection: close"} <= set(lines)
    assert f"x-request-id: {problem['request_id']}" in lines
    assert head.startswith(f"HTTP/1.1 {problem['status']} {problem['title']}".encode())
    return problem


_HALVES = {
    "nothing": (b"", 1, None),
    "half a head": (b"GET /healthz HTTP/1.1\r\nHost: loc", 1, "request_timeout"),
    "half an ask": (_ASK, 1, "request_timeout"),
    "an ask's head": (_ASK + b"Content-Length: 10\r\n\r\n", 2, "request_timeout"),
    "half an ask's body": (_ASK + b'Content-Length: 10\r\n\r\n{"u', 2, "request_timeout"),
    "half a chunk": (_ASK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n", 2, "request_timeout"),
    "half a body": (_CREATE + b"Content-Length: 9\r\n\r\n{", 2, "request_timeout"),
}
_WHOLE = {
    "look": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "ask": _ASK + b"Content-Length: 2\r\n\r\n{}",
}


def _half_sent(server: Server, sent: bytes) -> tuple[float, bytes]:
    """How a connection ends on which this is all that comes."""
    wire = Wire(server)
    wire.send(sent)
    return wire.read_until_closed()


def _idle(server: Server, request_: bytes) -> tuple[float, bytes]:
    """How a connection ends that is idle after the third answer, counted from that answer; it was idle between them, too."""
    wire = Wire(server)
    for _ in range(3):
        wire.send(request_)
        assert wire.socket.recv(65536).startswith(b"HTTP/1.1 20")
        wire.began = time.monotonic()
        time.sleep(1.2)
    return wire.read_until_closed()


@pytest.fixture(scope="module")
def endings(strict: Server) -> Iterator[dict[str, Future[tuple[float, bytes]]]]:
    """How each of these connections ends: they wait beside each other, because waiting is all that they do."""
    with ThreadPoolExecutor(len(_HALVES) + len(_WHOLE)) as threads:
        halves = {name: threads.submit(_half_sent, strict, sent) for name, (sent, *_) in _HALVES.items()}
        yield halves | {name: threads.submit(_idle, strict, request_) for name, request_ in _WHOLE.items()}


@pytest.mark.parametrize("name", _HALVES)
def test_half_a_request_is_given_up_in_time(endings: dict[str, Future[tuple[float, bytes]]], name: str) -> None:
    """The head and the body have their time; whoever sent something learns why."""
    _, seconds, code = _HALVES[name]
    after, said = endings[name].result()
    assert seconds <= after < seconds + 2.5
    if code is None:
        assert said == b""
    else:
        problem = _problem(said)
        assert (problem["status"], problem["code"]) == (408, code)


@pytest.mark.parametrize("name", _WHOLE)
def test_an_idle_connection_is_kept_for_its_time(endings: dict[str, Future[tuple[float, bytes]]], name: str) -> None:
    """Counted anew from every answer, on both ways; then it is closed without a word."""
    after, said = endings[name].result()
    assert (3 <= after < 5.5, said) == (True, b"")


def test_a_drop_at_a_time_does_not_help(strict: Server) -> None:
    """The time is the whole head's, not each byte's."""
    wire = Wire(strict)
    try:
        for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n":
            wire.send(bytes([byte]))
            time.sleep(0.1)
    except OSError:
        pass
    wire.socket.close()
    assert time.monotonic() - wire.began < 4


def test_half_sent_requests_lock_nobody_out(strict: Server) -> None:
    """Whoever is connected is served all the while; one too many is told so, and is let in when the others have been given up."""
    with JsonClient(strict.url) as inside:
        assert inside.ask("kept")
        half = [Wire(strict) for _ in range(2 * _LIMIT)]
        for wire in half:
            try:
                wire.send(_ASK[:20])
            except OSError:
                continue  # turned away and gone already
        outside = Wire(strict)
        refused = _problem(outside.read_until_closed()[1])
        assert (refused["status"], refused["code"]) == (503, "too_many_connections")
        assert inside.ask("kept")
        for wire in half:
            after, _ = _read_all(wire)
            assert after < 4
        assert inside.ask("kept")
    with JsonClient(strict.url) as new:
        assert new.ask("kept")


def _read_all(wire: Wire) -> tuple[float, bytes]:
    try:
        return wire.read_until_closed()
    except ConnectionResetError:
        return time.monotonic() - wire.began, b""


@pytest.mark.process
def test_as_many_connections_as_the_system_allows(new_database: NewDatabase) -> None:
    """With 128 open files to a process, 200 half-sent requests end like any others: the service has files for its own work."""
    limited = ("sh", "-c", 'ulimit -n 128; exec "$0" "$@"', sys.executable, "-m", "service")
    with Server(new_database(), program=limited, BESTARM_HEAD_SECONDS="1") as running:
        with JsonClient(running.url) as inside:
            inside.create("kept", arms=arms(2))
            half = []
            for _ in range(200):
                wire = Wire(running)
                half.append(wire)
                try:
                    wire.send(_ASK[:20])
                except OSError:
                    continue
            assert inside.ask("kept")
            assert inside.send("GET", "/v1/experiments/kept/recommendation").status == 200
            assert max(_read_all(wire)[0] for wire in half) < 6
        with JsonClient(running.url) as new:
            assert new.ask("kept")
        assert "Traceback" not in running.log.read_text()


@pytest.mark.parametrize(
    ("before", "piece", "times"),
    [
        (_LOOK, b"X-Odd: " + b"x" * 990 + b"\r\n", 40),
        (_LOOK + b"X-Odd: ", b"x" * 1000, 40),
        (b"GET /", b"x" * 1000, 40),
        (_ASK, b"X-Odd: " + b"x" * 990 + b"\r\n", 40),
        (_LOOK, b"ab:cd\r\n", 110),
        (_ASK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Odd: ", b"x" * 1000, 400),
    ],
    ids=["many headers", "one header", "a path", "an ask", "many lines", "a trailer"],
)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "in pieces"])
def test_a_head_has_its_limit(strict: Server, before: bytes, piece: bytes, times: int, at_once: bool) -> None:  # noqa: FBT001 - parametrized
    """32 KiB and 100 lines: what goes on beyond it is refused before it is whole."""
    wire = Wire(strict)
    try:
        wire.send(before)
        if at_once:
            wire.send(piece * times)
        else:
            for _ in range(times):
                wire.send(piece)
                time.sleep(0.002)
    except OSError:
        pass  # refused already
    problem = _problem(wire.read_until_closed()[1])
    assert (problem["status"], problem["code"]) == (431, "head_too_large")


@pytest.mark.parametrize(
    ("before", "piece"),
    [
        (_LOOK, b"X-Odd: " + b"x" * 65_000 + b"\r\n"),
        (_LOOK + b"X-Odd: ", b"x" * 65_000),
        (b"GET /", b"x" * 65_000),
        (_ASK, b"X-Odd: " + b"x" * 65_000 + b"\r\n"),
        (_ASK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Odd: ", b"x" * 65_000),
    ],
    ids=["many headers", "one header", "a path", "an ask", "a trailer"],
)
def test_a_head_of_any_size_takes_no_memory(strict: Server, before: bytes, piece: bytes) -> None:
    """60 MB, from five clients at once: all processes of the service together grow by less than one of them sent."""
    at_first = most_memory(strict)
    wires = [Wire(strict) for _ in range(5)]
    for wire in wires:
        with suppress(OSError):  # refused already
            wire.send(before)
            for _ in range(60_000_000 // len(piece)):
                wire.send(piece)
    for wire in wires:
        wire.socket.close()
    assert most_memory(strict) - at_first < 8 * 1024 * 1024


def test_a_large_head_within_its_limit_is_read(strict: Server) -> None:
    """On both ways."""
    odd = b"X-Odd: " + b"x" * 30_000 + b"\r\n"
    for request_ in (
        _LOOK + odd + b"\r\n",
        _ASK + odd + b"Content-Length: 2\r\n\r\n{}",
    ):
        wire = Wire(strict)
        wire.send(request_)
        assert wire.socket.recv(65536).startswith(b"HTTP/1.1 20")
        wire.socket.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"GET / HTTP/3.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        _ASK + b"Content-Length: nine\r\n\r\n{}",
        _ASK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        _ASK + b"Transfer-Encoding: chunked\r\n\r\nnine\r\n{}",
    ],
)
def test_what_is_not_http_is_a_problem(strict: Server, sent: bytes) -> None:
    """In the shape of every other, with a request's id."""
    wire = Wire(strict)
    wire.send(sent)
    problem = _problem(wire.read_until_closed()[1])
    assert (problem["status"], problem["code"]) == (400, "malformed_request")


def test_answers_come_before_a_refusal_of_what_follows(strict: Server) -> None:
    """A good request is answered, whatever was sent behind it."""
    wire = Wire(strict)
    wire.send(_ASK + b"Content-Length: 2\r\n\r\n{}" + b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"nonsense\r\n\r\n")
    assert re.findall(rb"HTTP/1.1 (\d+)", wire.read_until_closed()[1]) == [b"201", b"200", b"400"]


def test_a_client_that_never_reads_is_given_up(strict: Server) -> None:
    """What waits for it is not kept for ever; a slow reader that goes on is."""
    with JsonClient(strict.url) as client:
        client.create("heavy", arms=[{"key": f"a{place}", "value": "x" * 16_000} for place in range(400)])
        look = b"GET /v1/experiments/heavy HTTP/1.1\r\nHost: localhost\r\n\r\n"
        never, slowly = Wire(strict), Wire(strict)
        for wire in (never, slowly):
            wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            wire.send(look)
        read = 0
        while read < 6_400_000:
            got = slowly.socket.recv(60_000)
            assert got
            read += len(got)
            time.sleep(0.05)
        _, said = _read_all(never)
        assert len(said) < 6_400_000
        slowly.socket.close()


def test_a_body_whose_turn_has_not_come_is_not_too_late(strict: Server) -> None:
    """It is we who do not read it, while another request's answer is under way: nothing is said in between."""
    wire = Wire(strict)
    late = _ASK + b"Content-Length: 9000\r\n\r\n" + b" " * 8_990
    wire.send(_LOOK + b"\r\n" + b"GET /v1/experiments/kept/stream HTTP/1.1\r\nHost: localhost\r\n\r\n" + late)
    said, until = b"", time.monotonic() + 4
    wire.socket.settimeout(0.5)
    while time.monotonic() < until:
        with suppress(TimeoutError):
            said += wire.socket.recv(65536)
    wire.socket.close()
    assert said.count(b"HTTP/1.1 200 OK") == 2
    assert b" 408 " not in said


@pytest.mark.process
def test_requests_that_wait_for_their_answers_are_not_read_on(sqlite_databases: NewDatabase) -> None:
    """A client that sends faster than it is answered, and reads every answer, takes no more memory the longer it goes on."""
    padded = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-padding: " + b"x" * 1_000 + b"\r\n\r\n"
    with Server(sqlite_databases()) as server, socket.create_connection(("127.0.0.1", server.port), timeout=60) as link:
        before = most_memory(server)
        sending = threading.Thread(target=link.sendall, args=(padded * _SENT_AHEAD,))
        sending.start()
        answered = 0
        with link.makefile("rb") as answers:
            while answered < _SENT_AHEAD:
                answered += answers.readline().endswith(b"HTTP/1.1 200 OK\r\n")
        sending.join()
        assert most_memory(server) - before < 1_500 * _SENT_AHEAD


class Written(asyncio.Transport):
    """A transport that keeps each write."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """One more."""
        self.pieces.append(bytes(data))

    def is_closing(self) -> bool:
        """It stays open."""
        return False


def _written(*pieces: bytes) -> list[bytes]:
    async def write() -> list[bytes]:
        below = Written()
        transport = SingleWriteTransport(below, asyncio.get_running_loop(), lambda: None)
        for piece in pieces:
            transport.write(piece)
        await asyncio.sleep(0)
        return below.pieces

    return asyncio.run(write())


def test_a_head_waits_for_its_body() -> None:
    """One system call instead of two; a head without a body leaves when the loop comes round."""
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
    assert _written(head, b"{}") == [head + b"{}"]
    assert _written(head) == [head]


def test_a_client_that_waits_is_told_to_go_on_at_once() -> None:
    """And not together with the head of the answer: haproxy would lose its body."""
    assert _written(_GO_ON, b"head", b"body") == [_GO_ON, b"headbody"]

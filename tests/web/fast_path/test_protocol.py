"""Asks on the wire in every shape that HTTP allows: the short way must not be told from the long one."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from testing.json_client import JsonClient
from testing.server import Server

_HEAD = "POST /v1/experiments/{key}/assignments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class Connection:
    """A bare socket that reads whole answers."""

    def __init__(self, server: Server) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self._read = self.socket.makefile("rb")

    def answer(self) -> tuple[int, dict[str, str], Any]:
        """The next answer: status, headers, body."""
        status = int(self._read.readline().split()[1])
        headers = {}
        while line := self._read.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        body = self._read.read(int(headers.get("content-length", 0)))
        return status, headers, json.loads(body) if body else None

    def close(self) -> None:
        """Hang up."""
        self._read.close()
        self.socket.close()

    def is_closed(self) -> bool:
        """Did the service hang up?"""
        return self._read.read(1) == b""


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    """A connection of its own."""
    opened = Connection(server)
    yield opened
    opened.close()


def ask(key: str, body: str = "{}", extra: str = "") -> bytes:
    """A plain ask."""
    return f"{_HEAD.format(key=key)}{extra}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def test_asks_in_one_packet_are_answered_in_order(connection: Connection, experiment: str) -> None:
    """Pipelined asks, and looks in between, come back in the order they were sent."""
    look = f"GET /v1/experiments/{experiment} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    bad = ask(experiment, '{"unit": 7}')
    connection.socket.sendall(ask(experiment) + look + ask(experiment) + bad + ask(experiment) + look)
    answers = [connection.answer() for _ in range(6)]
    assert [status for status, _, _ in answers] == [201, 200, 201, 422, 201, 200]
    assert [answers[place][2]["draw"] for place in (0, 2, 4)] == [1, 2, 3]
    assert answers[1][2]["version"] == 2


def test_a_body_in_pieces(connection: Connection, experiment: str) -> None:
    """Byte by byte, head and body."""
    for byte in ask(experiment, '{"unit": "slow"}'):
        connection.socket.sendall(bytes([byte]))
    status, _, body = connection.answer()
    assert (status, body["unit"]) == (201, "slow")


@pytest.mark.parametrize("pieces", [2, 3])
def test_a_body_after_its_head(connection: Connection, experiment: str, pieces: int) -> None:
    """Many clients send them one after the other; what comes in still more pieces takes the long way."""
    for turn in range(3):
        whole = ask(experiment, f'{{"unit": "turn {turn}"}}')
        body = whole.index(b"\r\n\r\n") + 4
        cuts = [0, body, body + 5, len(whole)] if pieces == 3 else [0, body, len(whole)]
        for start, end in pairwise(cuts):
            connection.socket.sendall(whole[start:end])
            time.sleep(0.05)
        status, _, answer = connection.answer()
        assert (status, answer["unit"], answer["draw"]) == (201, f"turn {turn}", turn + 1)


def test_a_look_between_asks(connection: Connection, experiment: str) -> None:
    """The short way and the long one take turns on a connection."""
    look = f"GET /v1/experiments/{experiment} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    for turn in range(1, 4):
        connection.socket.sendall(ask(experiment))
        assert connection.answer()[2]["draw"] == turn
        connection.socket.sendall(look)
        assert connection.answer()[2]["version"] == turn + 1


def test_a_body_of_chunks_takes_the_long_way(connection: Connection, experiment: str) -> None:
    """Its length is not known beforehand."""
    head = _HEAD.format(key=experiment) + "Transfer-Encoding: chunked\r\n\r\n"
    connection.socket.sendall(head.encode() + b"8\r\n" + b'{"unit":' + b"\r\n4\r\n" + b'"u"}' + b"\r\n0\r\n\r\n")
    status, _, body = connection.answer()
    assert (status, body["unit"]) == (201, "u")


def test_a_client_that_expects_to_be_told_to_go_on(connection: Connection, experiment: str) -> None:
    """100 Continue before the body is sent."""
    head = _HEAD.format(key=experiment) + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    connection.socket.sendall(head.encode())
    assert connection.socket.recv(64).startswith(b"HTTP/1.1 100 Continue")
    connection.socket.sendall(b"{}")
    assert connection.answer()[0] == 201


def test_a_body_too_large_for_the_short_way(connection: Connection, experiment: str) -> None:
    """It is read in pieces, and refused for what it holds."""
    connection.socket.sendall(ask(experiment, json.dumps({"unit": "u" * 300_000})))
    status, headers, body = connection.answer()
    assert (status, headers["content-type"], body["code"]) == (422, "application/problem+json", "validation_failed")
    connection.socket.sendall(ask(experiment))
    assert connection.answer()[0] == 201


@pytest.mark.parametrize("extra", ["Connection: close\r\n", ""])
def test_the_connection_closes_when_the_client_wants_it(connection: Connection, experiment: str, extra: str) -> None:
    """By its header, or by speaking HTTP/1.0."""
    version = "HTTP/1.1" if extra else "HTTP/1.0"
    connection.socket.sendall(ask(experiment, extra=extra).replace(b"HTTP/1.1", version.encode()))
    status, headers, _ = connection.answer()
    assert (status, headers["connection"]) == (201, "close")
    assert connection.is_closed()


def test_a_repeated_key_and_a_refusal_on_one_connection(connection: Connection, experiment: str) -> None:
    """What takes longer is answered on the same connection, and the next ask after it."""
    keyed = ask(experiment, extra="Idempotency-Key: once\r\nX-Request-Id: mine\r\n")
    connection.socket.sendall(keyed + keyed + ask("nobody-made-this") + ask(experiment))
    first, again, missing, last = [connection.answer() for _ in range(4)]
    assert (first[0], again[0], missing[0], last[0]) == (201, 201, 404, 201)
    assert (again[2], again[1]["idempotency-replayed"], again[1]["x-request-id"]) == (first[2], "true", "mine")
    assert (missing[2]["code"], last[2]["draw"]) == ("experiment_not_found", 2)


def test_clients_that_leave_before_their_answer(server: Server, wire: JsonClient, experiment: str) -> None:
    """Their asks may count or not, but whole, and nobody else is disturbed."""
    for turn in range(50):
        leaving = Connection(server)
        leaving.socket.sendall(ask(experiment) if turn % 2 else ask(experiment)[:-1])
        leaving.close()
    drawn = wire.ask(experiment)["draw"]
    page = wire.send("GET", f"/v1/experiments/{experiment}/assignments?page_size=100").body["assignments"]
    assert sorted(one["draw"] for one in page) == list(range(1, len(page) + 1))
    assert drawn <= len(page) <= 26


def test_a_client_that_does_not_read_is_not_answered_for_ever(connection: Connection, wire: JsonClient, key: str) -> None:
    """What it leaves in the socket's buffers is all that is kept for it; when it reads again it gets every answer, in order."""
    asks = 1_000
    wire.create(key, arms=[{"key": "a", "value": "x" * 16_000}, {"key": "b", "value": "y" * 16_000}])
    sending = threading.Thread(target=connection.socket.sendall, args=(ask(key) * asks,))
    sending.start()
    path, drawn = f"/v1/experiments/{key}/recommendation", [-1, 0]
    while drawn[-1] != drawn[-2]:
        time.sleep(1)
        drawn.append(wire.send("GET", path).body["draws"])
    assert 0 < drawn[-1] < asks
    assert [connection.answer()[2]["draw"] for _ in range(asks)] == list(range(1, asks + 1))
    sending.join()


def test_every_answer_carries_the_time(connection: Connection, experiment: str) -> None:
    """As the long way's answers do; the server's name is nobody's business."""
    connection.socket.sendall(ask(experiment))
    headers = connection.answer()[1]
    assert {"date", "content-type", "x-request-id", "content-length"} == set(headers)

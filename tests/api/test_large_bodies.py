"""Large and hostile bodies: what they cost the service is bounded, in memory and in the time of others."""

from __future__ import annotations

import json
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.memory import most_memory
from testing.processes import wait_until
from testing.server import Server

pytestmark = pytest.mark.serial
_JSON = {"content-type": "application/json"}
# Of 300 KB: a long name over many items, each of which once had a pointer of its own.
_LONG_NAME = b'{"' + b"n" * 150_000 + b'": ["\\\\"' + b",0" * 75_000 + b"]}"
# Of 16 MB: as many items as fit.
_MANY_ITEMS = b'{"rewards":["\\\\"' + b",0" * 8_000_000 + b"]}"
# Of 4 MB and more, each to be told from others by a key: what is long only when it is written out, and what is nothing but many.
_KEYED = {
    "large numbers": b'{"rewards":[' + b"1e300," * 650_000 + b"0]}",
    "items": b'{"rewards":[' + b"0," * 2_000_000 + b"0]}",
    "lists": b'{"rewards":[' + b"[],[[]]," * 500_000 + b"0]}",
    "names": b'{"rewards":[{' + b",".join(b'"%d":0' % number for number in range(400_000)) + b"}]}",
    "names of texts": b'{"rewards":[{' + b",".join(b'"%d":""' % number for number in range(1_300_000)) + b"}]}",
}
_CROWD = json.dumps({f"typo-{number}": 0 for number in range(60_000)}).encode()


@pytest.fixture(scope="module")
def alone(new_database: NewDatabase) -> Iterator[Server]:
    """A service that nobody else uses."""
    with Server(new_database()) as running:
        with JsonClient(running.url) as client:
            client.create("large", arms=arms(2))
        yield running


@pytest.mark.parametrize("body", [_LONG_NAME, _CROWD], ids=["a long name over many items", "a crowd of unknown fields"])
def test_a_small_body_takes_no_large_memory(alone: Server, body: bytes) -> None:
    """A hundred times its size at most, however often it is sent and to which route."""
    before = most_memory(alone)
    with alone.client() as client:
        for path in (
            "",
            "/large/assignments",
            "/large/assignments/batch",
            "/large/rewards",
            "/large/observations",
            "/large/arms",
        ) * 2:
            answer = client.post(f"/v1/experiments{path}", content=body, headers=_JSON)
            assert (answer.status_code, len(answer.content) < len(body)) == (422, True)
    assert most_memory(alone) - before <= 100 * len(body)


def _sent_beside_looks(server: Server, body: bytes, headers: dict[str, str]) -> list[float]:
    """How long others waited while the service read a body, and refused it."""
    waited, done = list[float](), threading.Event()

    def look() -> None:
        with JsonClient(server.url) as client:
            while not done.is_set():
                start = time.perf_counter()
                assert client.send("GET", "/healthz").status == 200
                waited.append(time.perf_counter() - start)

    looking = threading.Thread(target=look)
    looking.start()
    with server.client() as client:
        assert client.post("/v1/experiments/large/rewards", content=body, headers=_JSON | headers).status_code == 422
    done.set()
    looking.join()
    return waited


def _others_get_their_turn(server: Server, body: bytes, headers: dict[str, str], *, at_once: float) -> bool:
    """True if nobody waits much longer than what is done at once takes: in one of three tries, on a busy machine."""
    tries = (_sent_beside_looks(server, body, headers) for _ in range(3))
    return any(max(waited) <= at_once + 50 * statistics.median(waited) for waited in tries)


def test_a_large_body_does_not_stop_the_others(alone: Server) -> None:
    """While it is read others get their turn, and its memory is a few times its size."""
    began = time.perf_counter()
    json.loads(_MANY_ITEMS)
    parsing = time.perf_counter() - began
    before = most_memory(alone)
    assert _others_get_their_turn(alone, _MANY_ITEMS, {}, at_once=parsing)
    assert most_memory(alone) - before <= 25 * len(_MANY_ITEMS)


@pytest.mark.parametrize("body", _KEYED.values(), ids=_KEYED)
def test_a_body_with_an_idempotency_key_costs_as_little(alone: Server, body: bytes) -> None:
    """To tell it from others is no more than to read it: a number of five characters has no three hundred digits."""
    before = most_memory(alone)
    assert _others_get_their_turn(alone, body, {"idempotency-key": "large"}, at_once=0.1)
    assert most_memory(alone) - before <= 25 * len(body)


def test_a_large_body_is_validated_like_a_small_one(alone: Server) -> None:
    """With a pointer to what is wrong; and what is right is taken."""
    new: dict[str, Any] = {"key": "validated", "arms": [{"key": f"arm-{number}", "value": "x" * 3_000} for number in range(100)]}
    wrong = new | {"arms": [*new["arms"], {"key": "No key"}]}
    with alone.client() as client:
        refused = client.post("/v1/experiments", json=wrong, headers={"idempotency-key": "validated"})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/arms/100/key")
        for replayed in (None, "true"):
            made = client.post("/v1/experiments", json=new, headers={"idempotency-key": "validated"})
            assert (made.status_code, made.headers.get("idempotency-replayed")) == (201, replayed)


def _in_the_kernel(server: Server) -> int:
    """How many bytes were sent and not read yet, at either end of its connections."""
    fields = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    queues = [one[4].split(":") for one in fields if f":{server.port:04X}" in {one[1][-5:], one[2][-5:]}]
    return sum(int(waiting, 16) for queue in queues for waiting in queue)


def test_uploads_that_never_end_shut_nobody_out(alone: Server) -> None:
    """Nine leave no room for another large body: 130.5 of 134.2 million bytes. A change of a few bytes needs none of it."""
    head = b"POST /v1/experiments/large/rewards HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: 15000000\r\n\r\n"
    slow = [socket.create_connection(("127.0.0.1", alone.port), timeout=60) for _ in range(9)]
    try:
        for upload in slow:
            upload.sendall(head + b" " * 14_500_000)
        wait_until(lambda: _in_the_kernel(alone) == 0, "the service has read all of them")
        with alone.client() as client:
            assert client.patch("/v1/experiments/large", json={"description": "x" * 10_000}).status_code == 200
            refused = client.post("/v1/experiments/large/rewards", content=b" " * 14_500_000, headers=_JSON)
            assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
    finally:
        for upload in slow:
            upload.close()

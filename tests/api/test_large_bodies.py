"""Large and hostile bodies: what they cost the service is bounded, in memory and in the time of others."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator

import pytest

from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.memory import most_memory
from testing.server import Server

pytestmark = pytest.mark.serial
_JSON = {"content-type": "application/json"}
# Of 300 KB: a long name over many items, each of which once had a pointer of its own.
_LONG_NAME = b'{"' + b"n" * 150_000 + b'": ["\\\\"' + b",0" * 75_000 + b"]}"
# Of 16 MB: as many items as fit.
_MANY_ITEMS = b'{"rewards":["\\\\"' + b",0" * 8_000_000 + b"]}"
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


def test_a_large_body_does_not_stop_the_others(alone: Server) -> None:
    """While it is read others get their turn, and its memory is a few times its size."""
    began = time.perf_counter()
    json.loads(_MANY_ITEMS)
    parsing = time.perf_counter() - began
    before, waited, done = most_memory(alone), list[float](), threading.Event()

    def look() -> None:
        with JsonClient(alone.url) as client:
            while not done.is_set():
                start = time.perf_counter()
                assert client.send("GET", "/healthz").status == 200
                waited.append(time.perf_counter() - start)

    looking = threading.Thread(target=look)
    looking.start()
    with alone.client() as client:
        assert client.post("/v1/experiments/large/rewards", content=_MANY_ITEMS, headers=_JSON).status_code == 422
    done.set()
    looking.join()
    assert max(waited) <= parsing + 50 * statistics.median(waited)
    assert most_memory(alone) - before <= 25 * len(_MANY_ITEMS)

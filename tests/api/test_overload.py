"""More expensive requests than may wait: some are answered, the others told when to come again, and nothing is left behind."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import httpx
import pytest

from testing.databases import NewDatabase, keep_writers_waiting
from testing.json_client import JsonClient, arms
from testing.server import Server
from testing.torture.open_loop import OpenLoop

pytestmark = pytest.mark.process
_E = "/v1/experiments"
_TOLD = {"observations": [{"arm": f"arm-{number % 3}", "reward": number % 2} for number in range(500)]}


def test_beyond_the_queue_the_answer_is_503(untraced_server: Server, key: str) -> None:
    """Of far more expensive reads than may wait, some are answered and the others told when to come again; then it is over."""
    with JsonClient(untraced_server.url) as wire:
        wire.create(key, arms=arms(3))
        for _ in range(20):
            assert wire.send("POST", f"{_E}/{key}/observations", _TOLD).status == 200

    async def study() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(base_url=untraced_server.url, timeout=300, limits=limits) as client:
            return await asyncio.gather(*(client.get(f"{_E}/{key}/history?points={2 + one}") for one in range(100)))

    answers = asyncio.run(study())
    refused = [answer for answer in answers if answer.status_code == 503]
    assert {answer.status_code for answer in answers} == {200, 503}
    assert {answer.json()["code"] for answer in refused} == {"overloaded"}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert httpx.get(f"{untraced_server.url}{_E}/{key}/history", timeout=60).status_code == 200


def test_forecasts_beyond_the_queue_are_503(untraced_server: Server, key: str) -> None:
    """Of far more forecasts than may wait, of experiments of their own, some are answered and the others told to come again."""
    count = 60
    with JsonClient(untraced_server.url) as client:
        for number in range(count):
            client.create(f"{key}-{number}", arms=arms(60))
            told = [{"arm": f"arm-{position}", "reward": turn % 2} for position in range(60) for turn in range(4)]
            assert client.send("POST", f"{_E}/{key}-{number}/observations", {"observations": told}).status == 200

    async def study() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=count)
        async with httpx.AsyncClient(base_url=untraced_server.url, timeout=300, limits=limits) as client:
            return await asyncio.gather(*(client.get(f"{_E}/{key}-{number}/forecast") for number in range(count)))

    answers = asyncio.run(study())
    assert {(answer.status_code, answer.json().get("code")) for answer in answers} == {(200, None), (503, "overloaded")}
    assert httpx.get(f"{untraced_server.url}{_E}/{key}-0/forecast", timeout=60).status_code == 200


@pytest.mark.serial
def test_refusing_leaves_time_to_serve(sqlite_databases: NewDatabase) -> None:
    """With sixteen times as many clients as may wait the others are told to come again, and those that may are served."""
    with Server(sqlite_databases(), BESTARM_QUEUE_LIMIT="16") as server:
        with JsonClient(server.url) as wire:
            wire.create("crowded", arms=arms(3))
        few = asyncio.run(OpenLoop(server.port, "crowded", 16).offer(8_000, 3.0))
        # For a moment nothing can be written, and a queue of sixteen is full however fast the machine.
        keeper = threading.Timer(1.0, keep_writers_waiting, (server.database_url, 0.3))
        keeper.start()
        many = asyncio.run(OpenLoop(server.port, "crowded", 256).offer(8_000, 3.0))
        keeper.join()
    assert not few.refused
    assert many.refused
    assert many.bare_refusals == 0
    assert set(many.statuses) == {201, 503}
    assert len(many.answered) > len(few.answered) / 2


def test_the_readers_end_with_their_worker(new_database: NewDatabase) -> None:
    """A worker that is killed leaves no process behind, though nobody tells them."""
    server = Server(new_database())
    with JsonClient(server.url) as client:
        client.create("small", arms=arms(2))
        assert client.send("GET", "/v1/experiments/small/history").status == 200
    readers = _readers(server.process.pid)
    assert readers
    server.process.kill()
    server.process.wait(30)
    deadline = time.monotonic() + 30
    while any(_alive(reader) for reader in readers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(reader) for reader in readers)


def _readers(process: int) -> list[int]:
    """The processes that its threads started to read, told from the tracker that multiprocessing starts beside them."""
    started = (path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children"))
    children = [int(child) for listed in started for child in listed]
    return [child for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]


def _alive(process: int) -> bool:
    """There, and not only waiting for somebody to ask how it ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

"""Expensive reads and cheap requests side by side: the cheap ones must not notice."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import httpx
import pytest

from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.server import Server

pytestmark = [pytest.mark.process, pytest.mark.serial]
_ARMS = 10_000
_ROUNDS = 60
_CURL = shutil.which("curl") or "curl"


@pytest.fixture(scope="module")
def loaded(new_database: NewDatabase) -> Iterator[Server]:
    """A service with an experiment of 10,000 arms that has a course already, and a small one."""
    with Server(new_database()) as running, JsonClient(running.url) as client:
        client.create("large", arms=arms(_ARMS))
        client.create("small", arms=arms(3))
        for turn in range(6):
            told = [{"arm": f"arm-{position}", "reward": int((position * turn) % 3 == 0)} for position in range(_ARMS)]
            assert client.send("POST", "/v1/experiments/large/observations", {"observations": told}).status == 200
        yield running
        logged = running.log.read_text()
    assert "Traceback" not in logged, logged


def _seconds(doing: Callable[[], object]) -> float:
    began = time.perf_counter()
    doing()
    return time.perf_counter() - began


def test_expensive_reads_do_not_delay_cheap_requests(loaded: Server) -> None:
    """Under 20 parallel histories of 10,000 arms, probes, asks and other looks stay below 10 times their quiet median."""
    with JsonClient(loaded.url) as client:
        requests: dict[str, Callable[[], object]] = {
            "/healthz": lambda: client.send("GET", "/healthz"),
            "/readyz": lambda: client.send("GET", "/readyz"),
            "ask": lambda: client.ask("small"),
            "recommendation": lambda: client.send("GET", "/v1/experiments/small/recommendation"),
        }

        def medians() -> dict[str, float]:
            seen = [{name: _seconds(doing) for name, doing in requests.items()} for _ in range(_ROUNDS)]
            return {name: median(one[name] for one in seen) for name in requests}

        assert client.send("GET", "/v1/experiments/large/history?points=2").status == 200, "the lane is open"
        quiet = medians()
        histories = [f"{loaded.url}/v1/experiments/large/history?points={1000 - number}" for number in range(20)]
        # Clients of their own, so that reading what comes is no work of this process.
        heavy = [subprocess.Popen([_CURL, "-s", "-o", "/dev/null", "--max-time", "300", url]) for url in histories]
        try:
            busy = medians()
            assert any(one.poll() is None for one in heavy), "the load ended before the measurement"
        finally:
            for one in heavy:
                one.kill()
                one.wait()
    slower = {name: busy[name] / quiet[name] for name in requests}
    assert max(slower.values()) < 10, slower


def test_beyond_the_queue_the_answer_is_503(loaded: Server) -> None:
    """Of far more expensive reads than may wait, some are answered and the others told when to come again; then it is over."""

    async def study() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(base_url=loaded.url, timeout=300, limits=limits) as client:
            return await asyncio.gather(*(client.get(f"/v1/experiments/small/history?points={2 + one}") for one in range(100)))

    answers = asyncio.run(study())
    refused = [answer for answer in answers if answer.status_code == 503]
    assert {answer.status_code for answer in answers} == {200, 503}
    assert {answer.json()["code"] for answer in refused} == {"overloaded"}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert httpx.get(f"{loaded.url}/v1/experiments/small/history", timeout=60).status_code == 200


def test_a_history_has_fewer_points_where_there_are_many_arms(loaded: Server) -> None:
    """At most 100,000 entries; the last point is now, and every point has every arm."""
    with httpx.Client(base_url=loaded.url, timeout=60) as client:
        points = client.get("/v1/experiments/large/history?points=1000").json()["points"]
        now = client.get("/v1/experiments/large/recommendation").json()
    assert 2 <= len(points) <= 100_000 // _ARMS
    assert [len(point["arms"]) for point in points] == [_ARMS] * len(points)
    assert (points[-1]["version"], points[-1]["arm"]) == (now["version"], now["arm"])


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

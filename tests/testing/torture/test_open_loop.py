"""A load that does not wait counts what it offered, what was answered, and what was refused."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from testing.databases import NewDatabase, keep_writers_waiting
from testing.json_client import JsonClient, arms
from testing.server import Server
from testing.torture.open_loop import Offered, OpenLoop

pytestmark = pytest.mark.process


def test_everything_offered_is_accounted_for(sqlite_databases: NewDatabase) -> None:
    """Answered, refused or not sent; those of an experiment that is paused are neither."""
    with Server(sqlite_databases(), BESTARM_QUEUE_LIMIT="4") as server, JsonClient(server.url) as client:
        client.create("offered", arms=arms(2))
        # For longer than a request waits for a place in a full queue.
        keeper = threading.Timer(0.3, keep_writers_waiting, (server.database_url, 0.3))
        keeper.start()
        many = asyncio.run(OpenLoop(server.port, "offered", 64).offer(3_000, 1.0))
        keeper.join()
        drawn = client.send("GET", "/v1/experiments/offered/recommendation").body["draws"]
        assert client.send("POST", "/v1/experiments/offered/pause").status == 200
        paused = asyncio.run(OpenLoop(server.port, "offered", 4).offer(50, 1.0))
    assert all(due >= sent for due, sent in zip(many.answered, many.answered_since_sent, strict=True))
    longest = max(many.answered_since_sent + many.refused)
    assert many.summary()["waited_worst_ms"] == round(longest * 1_000, 1)
    assert many.offered == len(many.answered) + len(many.refused) + many.unsent
    assert drawn == len(many.answered) == many.statuses[201]
    assert many.refused
    assert many.bare_refusals == 0
    assert set(paused.statuses) == {409}
    assert not paused.answered


def test_who_waits_for_a_connection_waits(sqlite_databases: NewDatabase) -> None:
    """One connection, and a service that stands still for a moment: what was due meanwhile has waited, though it was not sent."""
    with Server(sqlite_databases()) as server, JsonClient(server.url) as client:
        client.create("offered", arms=arms(2))
        loop = OpenLoop(server.port, "offered", 1)

        async def study() -> Offered:
            offering = asyncio.create_task(loop.offer(50, 1.5))
            await asyncio.sleep(0.3)
            os.killpg(server.process.pid, signal.SIGSTOP)
            await asyncio.sleep(0.8)
            os.killpg(server.process.pid, signal.SIGCONT)
            return await offering

        found = asyncio.run(study())
    assert sum(waited > 0.2 for waited in found.answered) > 5 * sum(waited > 0.2 for waited in found.answered_since_sent)

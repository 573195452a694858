"""A load that does not wait counts what it offered, what was answered, and what was refused."""

from __future__ import annotations

import asyncio

import pytest

from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.server import Server
from testing.torture.open_loop import OpenLoop

pytestmark = pytest.mark.process


def test_everything_offered_is_accounted_for(sqlite_databases: NewDatabase) -> None:
    """Answered, refused or not sent; those of an experiment that is paused are neither."""
    with Server(sqlite_databases(), BESTARM_QUEUE_LIMIT="4") as server, JsonClient(server.url) as client:
        client.create("offered", arms=arms(2))
        many = asyncio.run(OpenLoop(server.port, "offered", 64).offer(3_000, 1.0))
        drawn = client.send("GET", "/v1/experiments/offered/recommendation").body["draws"]
        assert client.send("POST", "/v1/experiments/offered/pause").status == 200
        paused = asyncio.run(OpenLoop(server.port, "offered", 4).offer(50, 1.0))
    assert many.offered == len(many.answered) + len(many.refused) + many.unsent
    assert drawn == len(many.answered) == many.statuses[201]
    assert many.refused
    assert many.bare_refusals == 0
    assert set(paused.statuses) == {409}
    assert not paused.answered

"""Hosts whose clocks differ: nobody's draws end before their time."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.processes import wait_until
from testing.server import NO_CERTIFICATES, Server
from testing.torture.stage import fake_clock

pytestmark = pytest.mark.process


def _settled_at(server: Server) -> float:
    """Up to when a worker has ended what was due."""
    shown = httpx.get(f"{server.url}/metrics", verify=NO_CERTIFICATES).text
    name = "bestarm_expiries_settled_timestamp_seconds"
    return max((float(line.split()[1]) for line in shown.splitlines() if line.startswith(name)), default=0.0)


def test_a_worker_an_hour_ahead_ends_nothing_early(postgresql_databases: NewDatabase, tmp_path: Path) -> None:
    """It has looked for what is due, and left what is due in ten minutes; what is due ends all the same."""
    clock, url = tmp_path / "clock", postgresql_databases()
    clock.write_text("+3600")
    with Server(url) as right, Server(url, **fake_clock(clock)) as ahead, JsonClient(right.url) as client:
        for name, seconds in (("long", 600), ("short", 1)):
            client.create(name, arms=arms(2), expiry={"after_seconds": seconds, "reward": 0})
        drawn = client.ask("long")
        client.ask("short")
        asked_at = time.time()
        wait_until(lambda: min(map(_settled_at, (right, ahead))) > asked_at + 2, "both have looked for what is due")
        assert client.send("GET", f"/v1/experiments/long/assignments/{drawn['id']}").body["status"] == "pending"
        look = client.send("GET", "/v1/experiments/short/recommendation").body
        assert (look["pending"], sum(arm["expired"] for arm in look["arms"])) == (0, 1)
        with JsonClient(ahead.url) as other:
            assert other.ask("long")["created_at"] > drawn["expires_at"]
        assert _settled_at(ahead) < time.time() + 60

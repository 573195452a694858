"""The state of the database as operators see it in the numbers, with and without it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from testing.databases import migrate_now
from testing.json_client import JsonClient, arms
from testing.postgres import Postgres
from testing.server import Server, free_port

pytestmark = pytest.mark.process


def _gauge(port: int, name: str) -> float:
    """One number of the port for metrics, which answers while the database is away."""
    lines = httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()
    return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), float("nan"))


def _eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_database_that_goes_and_comes_back_shows() -> None:
    """In `bestarm_ready` and on `/readyz`, in both workers, without anybody's doing; counting goes on meanwhile."""
    port = free_port()
    with Postgres() as postgres:
        postgres.sql("CREATE DATABASE vital")
        url = postgres.url("vital")
        migrate_now(url)
        with Server(url, workers=2, BESTARM_METRICS_PORT=str(port)) as server, server.client() as client:
            _eventually(lambda: _gauge(port, "bestarm_ready") == 1)
            _eventually(lambda: _gauge(port, "bestarm_pool_size") == 16)
            assert 0 <= _gauge(port, "bestarm_pool_in_use") < 16
            _eventually(lambda: _gauge(port, "bestarm_database_bytes") > 1_000_000)
            postgres.stop()
            _eventually(lambda: client.get("/readyz").status_code == 503)
            _eventually(lambda: _gauge(port, "bestarm_ready") == 0)
            assert client.get("/healthz").status_code == 200
            postgres.start()
            _eventually(lambda: client.get("/readyz").status_code == 200)
            _eventually(lambda: _gauge(port, "bestarm_ready") == 1)


def test_what_is_settled_follows_the_clock(tmp_path: Path) -> None:
    """Each sweep moves the time on; the embedded database has a size, too."""
    port = free_port()
    url = f"sqlite:///{tmp_path}/bestarm.db"
    with (
        Server(url, BESTARM_METRICS_PORT=str(port), BESTARM_SWEEP_SECONDS="0.1", measured=True) as server,
        JsonClient(server.url) as wire,
    ):
        wire.create("settled", arms=arms(2), expiry={"after_seconds": 1, "reward": 0})
        wire.ask("settled")
        began = time.time()
        _eventually(lambda: _gauge(port, "bestarm_expiries_settled_timestamp_seconds") > began)
        _eventually(lambda: wire.send("GET", "/v1/experiments/settled/recommendation").body["pending"] == 0)
        _eventually(lambda: _gauge(port, "bestarm_database_bytes") >= (tmp_path / "bestarm.db").stat().st_size // 2 > 0)

"""The metrics on a port of their own: for whoever reaches it, whatever becomes of keys and database."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from service.serving import bound_sockets
from service.web.hosts import AllowedHosts
from service.web.metrics_server import MetricsServer
from testing.json_client import JsonClient, arms
from testing.server import ADMIN_KEY, Server, free_port


@pytest.fixture
def address() -> Iterator[str]:
    """Where a server of this process shows its numbers."""
    sockets = bound_sockets("127.0.0.1", 0)
    with closing(MetricsServer(sockets, AllowedHosts("127.0.0.1", []))) as server:
        server.start()
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [
        ("/metrics", "localhost", 200),
        ("/metrics?debug=1", "127.0.0.1:9000", 200),
        ("/metrics", "evil.example", 421),
        ("/metrics", "10.1.2.3:9464", 200),
        ("/metrics", "[fd00::1]:9464", 200),
        ("/metrics", "10.1.2.3.evil.example", 421),
        ("/", "localhost", 404),
        ("/v1/experiments", "localhost", 404),
        ("/metrics/more", "localhost", 404),
    ],
)
def test_there_is_one_page(address: str, path: str, host: str, status: int) -> None:
    """For names of this machine, and nothing else."""
    answer = httpx.get(f"{address}{path}", headers={"Host": host})
    assert answer.status_code == status
    assert ("bestarm_problems_total" in answer.text or "# HELP" in answer.text) == (status == 200)


def test_it_only_reads(address: str) -> None:
    """Other methods are not known."""
    assert httpx.post(f"{address}/metrics").status_code == 501


@pytest.mark.process
def test_it_stays_open_when_the_database_is_away(tmp_path: Path) -> None:
    """All workers added up, without a key, also when no key can be looked at any more."""
    port = free_port()
    with (
        Server(
            f"sqlite:///{tmp_path}/bestarm.db", workers=2, measured=True, key=ADMIN_KEY, BESTARM_METRICS_PORT=str(port)
        ) as server,
        JsonClient(server.url, key=ADMIN_KEY) as wire,
    ):
        wire.create("counted", arms=arms(2))
        for _ in range(5):
            wire.ask("counted")
        with closing(sqlite3.connect(tmp_path / "bestarm.db")) as rows, rows:
            rows.execute("ALTER TABLE api_keys RENAME TO elsewhere")
        drawn = 'bestarm_request_seconds_count{method="POST",route="/v1/experiments/{key}/assignments",status="201"} 5.0'
        deadline = time.monotonic() + 10
        while True:
            shown = httpx.get(f"http://127.0.0.1:{port}/metrics")
            if drawn in shown.text and 'bestarm_key_requests_total{key="admin"} 6.0' in shown.text:
                break
            assert time.monotonic() < deadline, shown.text
            time.sleep(0.05)
        assert httpx.get(f"{server.url}/metrics").status_code in {401, 503}
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{port}/metrics")

"""A program that keeps the embedded database's only write lock: callers are told to come again in time, and served afterwards."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from service.domain.limits import LOCK_SECONDS
from testing.databases import NewDatabase
from testing.json_client import JsonClient, Reply, arms
from testing.server import Server

pytestmark = pytest.mark.process
_E = "/v1/experiments"
# What a busy machine adds.
_SLACK_SECONDS = 3.0


def test_whoever_keeps_the_lock_holds_nobody_up_for_long(sqlite_databases: NewDatabase) -> None:
    """All that writes is 503 within the limit, the next ones soon; looks go on; nothing is done twice afterwards."""
    with Server(sqlite_databases(), workers=2) as server, JsonClient(server.url) as client, ThreadPoolExecutor() as threads:
        for name in ("one", "other"):
            client.create(name, arms=arms(2))
            client.ask(name)

        def sent(request: tuple[str, str, object]) -> tuple[Reply, float]:
            began = time.monotonic()
            with JsonClient(server.url) as own:
                return own.send(*request), time.monotonic() - began

        writes = [
            ("POST", f"{_E}/one/assignments", {}),
            ("POST", f"{_E}/other/assignments", {"unit": "u"}),
            ("POST", f"{_E}/one/assignments/batch", {"count": 20}),
            ("PATCH", f"{_E}/one", {"name": "another"}),
            ("POST", _E, {"key": "third", "arms": arms(2)}),
        ]
        with closing(sqlite3.connect(server.database_url.removeprefix("sqlite:///"), isolation_level=None)) as keeper:
            keeper.execute("BEGIN IMMEDIATE")
            for most in (LOCK_SECONDS, LOCK_SECONDS / 2):
                for told, seconds in threads.map(sent, writes[: None if most == LOCK_SECONDS else 2] * 2):
                    assert (told.status, told.body["code"], told.headers["Retry-After"]) == (503, "database_locked", "1"), told
                    assert seconds < most + _SLACK_SECONDS
            assert client.send("GET", f"{_E}/one/recommendation").body["draws"] == 1
            keeper.execute("ROLLBACK")
        assert [client.ask(name)["draw"] for name in ("one", "other")] == [2, 2]
        assert [client.send(*write).status for write in writes] == [201, 201, 201, 200, 201]
        assert "Traceback" not in server.log.read_text()

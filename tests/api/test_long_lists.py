"""Lists with very many entries, of which few are looked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from service.domain.limits import MOST_VISITED_DELIVERIES, MOST_VISITED_EVENTS
from service.engine.clock import now_microseconds
from service.storage.database import Database
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.server import Server

_PAGES = 3
_ENTRIES = _PAGES * MOST_VISITED_EVENTS
_NUMBERS = {
    True: f"WITH RECURSIVE numbers(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < {_ENTRIES})",
    False: f"WITH numbers(n) AS (SELECT generate_series(2, {_ENTRIES}))",
}
# The creation of the experiment is the first of its events.
_FILL = (
    "INSERT INTO events (experiment_id, sequence, kind, at, arm) {numbers} SELECT 1, n, 'correction', n, 0 FROM numbers",
    f"UPDATE experiments SET version = {_ENTRIES}",
    """INSERT INTO webhook_deliveries (id, webhook, event, message, status, created_at, attempts)
    {numbers} SELECT 'msg_' || n, '{webhook}', 'webhook.test', '{{}}',
    CASE WHEN n = 2 THEN 'failed' ELSE 'delivered' END, {now}, 1
    FROM numbers ORDER BY n""",
)
_HOOK = {"url": "https://hooks.example.com/bestarm", "events": ["experiment.concluded"]}


@pytest.fixture(scope="module")
def long(new_database: NewDatabase) -> Iterator[tuple[Server, str]]:
    """An experiment with 60,000 corrections, and a webhook with as many messages."""
    assert MOST_VISITED_DELIVERIES == MOST_VISITED_EVENTS
    with Server(new_database()) as server:
        with JsonClient(server.url) as client:
            client.create("long", arms=arms(2))
            webhook = client.send("POST", "/v1/webhooks", _HOOK).body["id"]

        async def fill() -> None:
            database = Database(server.database_url, pool_size=1)
            async with database.writing() as connection:
                for statement in _FILL:
                    filled = statement.format(numbers=_NUMBERS[database.is_sqlite], webhook=webhook, now=now_microseconds())
                    await connection.execute(text(filled))
            await database.close()

        asyncio.run(fill())
        yield server, webhook


def _walk(server: Server, path: str, name: str) -> tuple[list[dict[str, Any]], int]:
    """All that a list holds, and on how many pages."""
    found, pages, page = list[dict[str, Any]](), 0, dict[str, Any](next_page_token="")
    with server.client() as client:
        while page["next_page_token"] is not None:
            page = client.get(f"{path}&page_token={page['next_page_token']}" if pages else path).json()
            found, pages = found + page[name], pages + 1
    return found, pages


def test_entries_of_a_rare_kind_are_found_page_by_page(long: tuple[Server, str]) -> None:
    """Each page looks at a bounded number of entries, and says where to go on."""
    server, _ = long
    found, pages = _walk(server, "/v1/experiments/long/events?kind=created", "events")
    assert ([entry["sequence"] for entry in found], pages) == ([1], _PAGES)
    with server.client() as client:
        full = client.get("/v1/experiments/long/events?kind=correction&page_size=2").json()
    assert [entry["sequence"] for entry in full["events"]] == [_ENTRIES, _ENTRIES - 1]


def test_messages_of_a_rare_status_are_found_page_by_page(long: tuple[Server, str]) -> None:
    """Of one webhook, likewise."""
    server, webhook = long
    found, pages = _walk(server, f"/v1/webhooks/{webhook}/deliveries?status=failed", "deliveries")
    assert ([one["id"] for one in found], pages) == (["msg_2"], _PAGES)
    assert _walk(server, f"/v1/webhooks/{webhook}/deliveries?status=waiting", "deliveries")[0] == []

"""Groups under faults: connections cut, a queue that is full, a table that is changed. Killed processes: tests/test_cli.py."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.storage import access_tables, webhook_tables
from service.storage.groups.statements import row_type
from service.storage.tables import instance_log, metadata, prunings
from testing.json_client import JsonClient, Reply, arms
from testing.postgres import Postgres
from testing.rows import Rows
from testing.server import Server

_CLIENTS, _ASKS = 16, 25


@pytest.fixture
def database(postgres: Postgres, key: str) -> str:
    """The name of a PostgreSQL database for this test alone."""
    name = key.replace("-", "_")
    postgres.copy_of("template_bestarm", name)
    return name


def _ask_until_answered(wire: JsonClient, experiment: str, idempotency_key: str) -> Reply:
    """As a careful client does: after a 503 the same key again."""
    for _ in range(200):
        reply = wire.send("POST", f"/v1/experiments/{experiment}/assignments", {}, idempotency_key=idempotency_key)
        if reply.status != 503:
            return reply
        assert reply.headers["retry-after"]
        time.sleep(0.02)
    raise AssertionError(reply)


@pytest.mark.parametrize("workers", [1, 2])
def test_cut_connections_lose_nothing_and_repeat_nothing(postgres: Postgres, database: str, key: str, workers: int) -> None:
    """The database cuts every connection again and again while clients ask, and tell what they were given."""
    url = postgres.url(database)
    cut = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{database}'"
    done = threading.Event()
    cuts = 0

    def cut_again_and_again() -> None:
        nonlocal cuts
        while not done.wait(0.15):
            cuts += int(postgres.sql(cut))

    def ask_and_tell(client: int) -> list[int]:
        drawn = []
        with JsonClient(server.url) as wire:
            for turn in range(_ASKS):
                reply = _ask_until_answered(wire, key, f"{client}-{turn}")
                assert reply.status == 201, server.log.read_text()[-6000:]
                drawn.append(reply.body["draw"])
                path = f"/v1/experiments/{key}/assignments/{reply.body['id']}/reward"
                while (told := wire.send("POST", path, {"reward": 1})).status == 503:
                    time.sleep(0.02)
                assert told.status == 200, told
        return drawn

    with Server(url, workers=workers) as server:
        with JsonClient(server.url) as wire:
            wire.create(key, arms=arms(3))
        cutting = threading.Thread(target=cut_again_and_again)
        cutting.start()
        try:
            with ThreadPoolExecutor(_CLIENTS) as clients:
                drawn = [draw for some in clients.map(ask_and_tell, range(_CLIENTS)) for draw in some]
        finally:
            done.set()
            cutting.join()
        assert "Traceback" not in server.log.read_text(), server.log.read_text()
    assert cuts > 0
    assert sorted(drawn) == list(range(1, _CLIENTS * _ASKS + 1))
    with Rows(url) as stored:
        assert [row[0] for row in stored.assignments_of(key)] == sorted(drawn)
        assert [int(total) for *_, total in stored.arms_of(key)] == [observed for _, _, observed, _ in stored.arms_of(key)]
        assert sum(observed for _, _, observed, _ in stored.arms_of(key)) == len(drawn)


@pytest.mark.serial
def test_a_full_queue_says_when_to_come_back(postgres: Postgres, database: str, key: str) -> None:
    """While the experiment's row is locked by somebody else, a few wait and the rest are sent away; then all is well."""
    limit = 5
    with Server(postgres.url(database), BESTARM_QUEUE_LIMIT=str(limit)) as server, JsonClient(server.url) as wire:
        wire.create(key, arms=arms(2))
        wire.ask(key)
        held = "BEGIN; SELECT 1 FROM experiments FOR UPDATE; SELECT pg_sleep(3); COMMIT"
        holding = threading.Thread(target=postgres.sql, args=(held, database))
        holding.start()
        time.sleep(0.7)

        def ask(_client: int) -> Reply:
            with JsonClient(server.url) as own:
                return own.send("POST", f"/v1/experiments/{key}/assignments", {})

        with ThreadPoolExecutor(40) as clients:
            replies = list(clients.map(ask, range(40)))
        holding.join()
        refused = [reply for reply in replies if reply.status == 503]
        drawn = sorted(reply.body["draw"] for reply in replies if reply.status == 201)
        assert len(refused) + len(drawn) == 40
        assert len(refused) >= 40 - 2 * limit - 2
        assert {(one.body["code"], one.headers["retry-after"].isdigit()) for one in refused} == {("overloaded", True)}
        assert drawn == list(range(2, len(drawn) + 2))
        assert wire.ask(key)["draw"] == len(drawn) + 2


def test_a_column_added_under_a_running_service(postgres: Postgres, database: str, key: str) -> None:
    """A migration of the next release runs while this one serves: rows travel by the tables' own types, which change."""
    with Server(postgres.url(database)) as server, JsonClient(server.url) as wire:
        wire.create(key, arms=arms(2))
        first = wire.ask(key)
        postgres.sql("ALTER TABLE assignments ADD COLUMN of_the_next_release integer", database)
        statuses = []
        for turn in range(20):
            reply = _ask_until_answered(wire, key, f"later-{turn}")
            statuses.append(reply.status)
        assert statuses == [201] * 20
        assert wire.tell(key, first["id"], 1)["status"] == "rewarded"


def test_rows_travel_by_types_that_fit_the_tables(postgres: Postgres) -> None:
    """The columns that the code writes, in its order."""
    query = (
        "SELECT string_agg(a.attname, ',' ORDER BY a.attnum) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
        "WHERE c.relname = '{name}' AND a.attnum > 0"
    )
    # The log of the instance, keys, sessions, webhooks and how far a pruning has come are written row by row, beside the engine.
    row_by_row = {*access_tables.__all__, *webhook_tables.__all__} - {"metadata"}
    beside = {instance_log, prunings, *(metadata.tables[name] for name in row_by_row)}
    for table in set(metadata.sorted_tables) - beside:
        typed = postgres.sql(query.format(name=row_type(table)), "template_bestarm").strip()
        assert typed.split(",") == list(table.columns.keys())

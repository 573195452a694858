"""A pooler between the service and PostgreSQL: one of sessions is supported, one of transactions is refused at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from service.errors import DatabaseUnavailable
from service.storage.database import Database
from service.storage.pooling import refuse_pooled_transactions
from testing.databases import NewDatabase
from testing.json_client import JsonClient, arms
from testing.pooler import Pooler
from testing.postgres import Postgres
from testing.program import typed
from testing.server import Server, free_port

pytestmark = pytest.mark.process


@pytest.fixture
def database_name(postgresql_databases: NewDatabase) -> str:
    """A database of the test's own."""
    return postgresql_databases().partition("?")[0].rpartition("/")[2]


@pytest.fixture
def pooling_sessions(postgres: Postgres) -> Iterator[Pooler]:
    """A pooler that keeps a session for each client."""
    with Pooler(postgres, "session") as running:
        yield running


def _refuse(url: str) -> None:
    async def run() -> None:
        database = Database(url)
        try:
            await refuse_pooled_transactions(database)
        finally:
            await database.close()

    asyncio.run(run())


def test_sessions_may_be_pooled(pooling_sessions: Pooler, postgres: Postgres, database_name: str) -> None:
    """Migrated, started, asked and told through it; after every session was ended, too."""
    with Server(pooling_sessions.url(database_name), workers=2) as server, JsonClient(server.url) as client:
        client.create("pooled", arms=arms(3))
        drawn = [client.ask("pooled") for _ in range(50)]
        for one in drawn[:20]:
            client.tell("pooled", one["id"], 1)
        postgres.drop_connections(database_name)
        drawn += [client.ask("pooled") for _ in range(20)]
        assert [one["draw"] for one in drawn] == list(range(1, 71))
        look = client.send("GET", "/v1/experiments/pooled/recommendation").body
        assert (look["draws"], look["observations"]) == (70, 20)


@pytest.mark.parametrize("processes", [1, 20])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_which_poolers_are_refused(
    postgres: Postgres, database_name: str, mode: Literal["session", "transaction"], processes: int
) -> None:
    """However many processes there are to pool; without a pooler nothing is refused."""
    _refuse(postgres.url(database_name))
    with Pooler(postgres, mode, processes=processes + 1 if mode == "session" else processes) as pooler:
        if mode == "session":
            _refuse(pooler.url(database_name))
            return
        with pytest.raises(DatabaseUnavailable, match="transaction mode"):
            _refuse(pooler.url(database_name))


def test_a_service_does_not_start_behind_pooled_transactions(postgres: Postgres, database_name: str) -> None:
    """It says why in one sentence."""
    with Pooler(postgres, "transaction") as pooler:
        started = subprocess.run(
            [sys.executable, "-m", "service", "serve", "--port", str(free_port())],
            env=os.environ | {"BESTARM_DATABASE_URL": pooler.url(database_name)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert started.returncode == 1
    assert "pool_mode = session" in started.stderr
    assert "Traceback" not in started.stderr


_COMMANDS = (
    ("replay", "--all"),
    ("prune", "--older-than", "90d"),
    ("forget", "--unit", "u"),
    ("export", "any"),
    ("keys", "list"),
    ("experiment", "dump", "any"),
    ("import", "any", "past.csv"),
)


def test_no_command_runs_on_pooled_transactions(
    postgres: Postgres, database_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would fail in the middle of its work, in words of the driver's; it says so before it begins."""
    monkeypatch.chdir(tmp_path)
    Path("past.csv").write_text("arm,reward\na,1\n")
    with Pooler(postgres, "transaction", processes=1) as pooler:
        for command in _COMMANDS:
            ended = typed(*command, on=pooler.url(database_name))
            assert ended.returncode in {1, 2}, command
            assert "pool_mode = session" in ended.stderr, command

"""The reader of versions: what goes wrong for one statement is over with it, and leaves no connection behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from service.errors import DatabaseUnavailable
from service.storage.database import Database
from testing.postgres import Postgres
from testing.workers import Workers

Result = TypeVar("Result")
_HOSTILE = ["\x00", "a\x00b", "\ud800"]
_OURS = "FROM pg_stat_activity WHERE datname = '{name}'"


def _read(url: str, reading: Callable[[Database], Coroutine[Any, Any, Result]]) -> Result:
    async def run() -> Result:
        database = Database(url)
        try:
            return await reading(database)
        finally:
            await database.close()

    return asyncio.run(run())


@pytest.fixture
def postgres_name(postgres: Postgres) -> str:
    """A database of PostgreSQL's for this test alone."""
    name = "reader_of_versions"
    postgres.sql(f"DROP DATABASE IF EXISTS {name}")
    postgres.sql(f"CREATE DATABASE {name} TEMPLATE template_bestarm")
    return name


def test_what_the_database_refuses_leaves_no_connection_behind(postgres: Postgres, postgres_name: str) -> None:
    """Fifty refused statements, and one connection at the end."""

    async def refused(database: Database) -> str:
        for turn in range(50):
            with pytest.raises(Exception, match=r"0x00|surrogates|utf-8"):
                await database.version_reader.versions_of([_HOSTILE[turn % len(_HOSTILE)]])
        assert await database.version_reader.versions_of(["nobody"]) == {}
        return await asyncio.to_thread(postgres.sql, f"SELECT count(*) {_OURS.format(name=postgres_name)}")

    assert _read(postgres.url(postgres_name), refused) == "1"


def test_a_connection_lost_while_idle_is_replaced_at_once(postgres: Postgres, postgres_name: str) -> None:
    """The next look is answered by a new one, and nobody learns of it."""

    async def looked_again(database: Database) -> None:
        for _ in range(3):
            assert await database.version_reader.versions_of(["nobody"]) == {}
            await asyncio.to_thread(postgres.sql, f"SELECT pg_terminate_backend(pid) {_OURS.format(name=postgres_name)}")

    _read(postgres.url(postgres_name), looked_again)


def test_a_database_that_is_away_is_said_to_be(postgres: Postgres) -> None:
    """A new connection that cannot be had is not tried for ever."""

    async def away(database: Database) -> None:
        with pytest.raises(DatabaseUnavailable):
            await database.version_reader.versions_of(["nobody"])

    _read(postgres.url("nobody_made_this"), away)


def test_unknown_keys_are_left_out(workers: Workers) -> None:
    """Those that exist have their version."""
    workers.create("one", [("a", 0), ("b", 0)])
    reader = workers.contexts[0].database.version_reader
    assert workers.run(reader.versions_of(["one", "none"])) == {"one": (1, 1)}

"""Connections of the pool: one that is silent when it is given back harms nobody, and the one that was used last is used next."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from service.storage.database import Database
from testing.databases import NewDatabase
from testing.postgres import Postgres
from testing.tcp_proxy import TcpProxy, postgres_socket

pytestmark = pytest.mark.process
_READ_SECONDS = 1.0


def test_a_connection_that_falls_silent_at_the_end_fails_nobody(postgres: Postgres, postgresql_databases: NewDatabase) -> None:
    """The read that used it has its rows; giving it back takes its time and no more, and another one takes its place."""
    name = postgresql_databases().partition("?")[0].rpartition("/")[2]

    async def study(proxy: TcpProxy) -> list[int]:
        database, found = Database(proxy.url(name), pool_size=1, read_seconds=_READ_SECONDS), []
        try:
            for turn in range(2):
                async with database.reading() as connection:
                    found.append(int((await connection.execute(text("SELECT :turn + 0"), {"turn": turn})).scalar_one()))
                    if turn == 0:
                        proxy.cuts.append("silence")
        finally:
            await database.close()
        return found

    with TcpProxy(postgres_socket(postgres.folder)) as proxy:
        assert asyncio.run(asyncio.wait_for(study(proxy), 30)) == [0, 1]
        assert proxy.injected == 1


def test_the_connection_that_was_used_last_is_used_next(postgresql_databases: NewDatabase) -> None:
    """Its statements are prepared, and it was there a moment ago; the others lie idle."""
    session = text("SELECT pg_backend_pid()")

    async def study() -> tuple[set[int], set[int]]:
        database = Database(postgresql_databases(), pool_size=2)
        try:
            async with database.reading() as one, database.reading() as other:
                both = {(await connection.execute(session)).scalar_one() for connection in (one, other)}
            used = set[int]()
            for _ in range(4):
                async with database.reading() as connection:
                    used.add((await connection.execute(session)).scalar_one())
            return both, used
        finally:
            await database.close()

    both, used = asyncio.run(study())
    assert (len(both), len(used)) == (2, 1)
    assert used < both

"""A connection through which nothing passes any more when it is given back: what was read is whole, and the next one works."""

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

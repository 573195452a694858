"""Rows of PostgreSQL, in one snapshot after the other."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from service.domain.limits import READ_SECONDS
from service.errors import DatabaseUnavailable
from service.storage.postgres_failures import AWAY
from service.storage.postgres_hosts import PostgresHosts

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from service.storage.row_streams.row_snapshot import Row

# Rows are read in the order of an index: nothing is gathered first, and compiling the statement would cost more than it spares.
_OFF = ("jit", "enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_sort")
_SESSION = {"application_name": "bestarm export", **dict.fromkeys(_OFF, "off")}


class PostgresRows:
    """A connection, and the snapshot of its transaction."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection
        self.waited = 0.0
        """Seconds without work of our own, until rows were there."""

    async def fetch(self, statement: str, *values: object) -> Sequence[Row]:
        """All rows of a statement."""
        began, worked = time.monotonic(), time.process_time()
        found: list[Row] = await self._connection.fetch(statement, *values)
        self.waited += max(0.0, time.monotonic() - began - (time.process_time() - worked))
        return found

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[PostgresRows]:
        """A read-only transaction, which ends with the block."""
        async with self._connection.transaction(isolation="repeatable_read", readonly=True):
            yield self


@asynccontextmanager
async def postgres_connection(arguments: Mapping[str, Any]) -> AsyncIterator[PostgresRows]:
    """A connection of its own, which ends with the block."""
    settings = {**arguments.get("server_settings", {}), **_SESSION}
    try:
        bounded = {**arguments, "server_settings": settings, "command_timeout": READ_SECONDS}
        connection = await PostgresHosts(bounded).connect()
    except (*AWAY, asyncpg.PostgresError, ValueError) as refused:
        raise DatabaseUnavailable("The database does not answer.") from refused
    try:
        yield PostgresRows(connection)
    except AWAY as lost:
        raise DatabaseUnavailable("The database does not answer.") from lost
    finally:
        connection.terminate()  # nothing was written: there is nothing to say goodbye for

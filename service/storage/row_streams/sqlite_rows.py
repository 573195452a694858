"""Rows of SQLite, in one snapshot after the other, read where they are needed: in WAL mode a reader waits for nobody."""

from __future__ import annotations

import re
import sqlite3
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING

from service.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from service.storage.row_streams.row_snapshot import Row

_PARAMETER = re.compile(r"\$(\d)")


class SqliteRows:
    """A connection, and the snapshot of its transaction."""

    waited = 0.0
    """For nobody: the work of reading is this process's own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def fetch(self, statement: str, *values: object) -> Sequence[Row]:
        """All rows of a statement."""
        found: list[Row] = self._connection.execute(_PARAMETER.sub(r"?\1", statement), values).fetchall()
        return found

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[SqliteRows]:
        """A transaction, which ends with the block; the snapshot is that of its first statement."""
        self._connection.execute("BEGIN").close()
        try:
            yield self
        finally:
            self._connection.execute("ROLLBACK").close()  # nothing was written


@asynccontextmanager
async def sqlite_connection(path: str, timeout: float) -> AsyncIterator[SqliteRows]:  # noqa: ASYNC109 - SQLite's own
    """A connection of its own, which ends with the block."""
    try:
        with closing(sqlite3.connect(path, timeout=timeout, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA query_only=ON").close()
            yield SqliteRows(connection)
    except sqlite3.OperationalError as trouble:
        raise DatabaseUnavailable("The database does not answer.") from trouble

"""Rows of one snapshot on SQLite, read where they are needed: in WAL mode a reader waits for nobody."""

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
    """A connection with a transaction that reads one snapshot."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def fetch(self, statement: str, *values: object) -> Sequence[Row]:
        """All rows of a statement."""
        return self._run(statement, values).fetchall()

    async def stream(self, statement: str, *values: object, at_once: int) -> AsyncIterator[Sequence[Row]]:
        """The rows of a statement, at most so many at once."""
        with closing(self._run(statement, values)) as cursor:
            while rows := cursor.fetchmany(at_once):
                yield rows

    def _run(self, statement: str, values: tuple[object, ...]) -> sqlite3.Cursor:
        return self._connection.execute(_PARAMETER.sub(r"?\1", statement), values)


@asynccontextmanager
async def sqlite_snapshot(path: str, timeout: float) -> AsyncIterator[SqliteRows]:  # noqa: ASYNC109 - SQLite's own
    """A transaction of a connection of its own, which ends with the block; the snapshot is that of its first statement."""
    try:
        with closing(sqlite3.connect(path, timeout=timeout, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA query_only=ON").close()
            connection.execute("BEGIN").close()
            yield SqliteRows(connection)
    except sqlite3.OperationalError as trouble:
        raise DatabaseUnavailable("The database does not answer.") from trouble

"""A connection to SQLite of which a statement with its rows is one trip to the connection's thread.

Left to itself the driver goes there for every part of a statement: to make a cursor, to execute, to fetch, to close. Each trip is
a turn of the event loop and a wait for the interpreter; beside a busy loop that takes longer than the statement itself.
"""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import aiosqlite

from service.storage.sqlite_turns import begin_writing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from sqlalchemy.engine import URL

# More rows than this are fetched as they are asked for, so that a long result is never in memory at once.
_AHEAD = 200


class _Cursor:
    """As the driver's, but made, executed, read and closed in one go where the result is short."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._open: sqlite3.Cursor | None = None
        self._ahead: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self.arraysize = 1

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, statement: str, parameters: Iterable[Any] = ()) -> Self:
        """Run it, with the first rows."""
        await self._connection.in_thread(self._run, sqlite3.Cursor.execute, statement, parameters)
        return self

    async def executemany(self, statement: str, parameters: Iterable[Iterable[Any]]) -> Self:
        """Run it for each of these parameters."""
        await self._connection.in_thread(self._run, sqlite3.Cursor.executemany, statement, parameters)
        return self

    async def fetchone(self) -> object:
        """The next row, None at the end."""
        found = await self.fetchmany(1)
        return found[0] if found else None

    async def fetchmany(self, size: int | None = None) -> list[Any]:
        """The next rows."""
        wanted = size or self.arraysize
        if len(self._ahead) < wanted and self._open is not None:
            await self._connection.in_thread(self._fetch, wanted - len(self._ahead))
        found, self._ahead = self._ahead[:wanted], self._ahead[wanted:]
        return found

    async def fetchall(self) -> list[Any]:
        """The rows that are left."""
        if self._open is not None:
            await self._connection.in_thread(self._fetch, None)
        found, self._ahead = self._ahead, []
        return found

    async def close(self) -> None:
        """Let go of the result; there is nothing to do where all of it was read."""
        if self._open is not None:
            await self._connection.in_thread(self._close)

    # What follows runs in the connection's thread.

    def _run(self, run: Callable[..., sqlite3.Cursor], statement: str, parameters: object) -> None:
        self._close()
        self._open = self._connection.sqlite.cursor()
        try:
            run(self._open, statement, parameters)
        except BaseException:
            self._close()
            raise
        self.description = self._open.description
        self._fetch(_AHEAD if self.description else 0)

    def _fetch(self, most: int | None) -> None:
        """Rows up to so many, or all; at the end the cursor is closed."""
        if self._open is None:
            return
        rows = self._open.fetchall() if most is None else self._open.fetchmany(most)
        self._ahead += rows
        self.rowcount, self.lastrowid = self._open.rowcount, self._open.lastrowid
        if not most or len(rows) < most:
            self._close()

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


class _Connection(aiosqlite.Connection):
    """The driver's, with other cursors."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=_AHEAD)
        self._thread.daemon = True  # a process that ends does not wait for it

    def cursor(self) -> Any:  # noqa: ANN401 - the driver says it is its own kind
        """A cursor; nothing is done for it before it executes."""
        return _Cursor(self)

    async def begin_writing(self) -> None:
        """Begin a transaction with the write lock in hand."""
        await self.in_thread(begin_writing, self.sqlite)

    async def in_thread(self, doing: Callable[..., None], *arguments: object) -> None:
        """Do it in the connection's thread."""
        await self._execute(doing, *arguments)  # type: ignore[no-untyped-call]

    @property
    def sqlite(self) -> sqlite3.Connection:
        """The library's own connection, for use in its thread."""
        return self._conn


def connecting(url: URL, busy_seconds: float) -> Callable[[], Awaitable[Any]]:
    """What makes a connection to the database that the URL names, as the engine wants it; it waits so long for other writers."""
    (path,), options = url.get_dialect()().create_connect_args(url)
    return lambda: _Connection(partial(sqlite3.connect, path, timeout=busy_seconds, **options))

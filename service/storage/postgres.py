"""Groups on PostgreSQL: one asyncpg connection per process, lists as arrays.

asyncpg is used directly here, because on this path SQLAlchemy's share of the work would be the largest (docs/decisions).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from service.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from service.storage.groups import Column, Query, Write

AWAY = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
)


def connecting(engine: AsyncEngine) -> Callable[[], Awaitable[asyncpg.Connection[Any]]]:
    """How to open a connection of asyncpg's own to the engine's database."""
    _, arguments = engine.dialect.create_connect_args(engine.url)
    arguments.pop("async_fallback", None)
    return lambda: asyncpg.connect(**arguments, timeout=10)


@contextmanager
def _named_failures() -> Iterator[None]:
    try:
        yield
    except AWAY as lost:
        raise DatabaseUnavailable("The database does not answer.") from lost


class PostgresGroup:
    """An open transaction."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection

    async def rows(self, query: Query, *columns: Column) -> Sequence[Any]:
        """Fetch."""
        with _named_failures():
            found: Sequence[Any] = await self._connection.fetch(query.postgres, *columns)
            return found

    async def write(self, writes: Sequence[tuple[Write, Sequence[Column]]]) -> None:
        """One statement per table."""
        with _named_failures():
            for write, columns in writes:
                await self._connection.execute(write.postgres, *columns)


class PostgresGroups:
    """Keeps its connection from group to group; after any failure it takes a new one."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._open = connecting(engine)
        self._connection: asyncpg.Connection[Any] | None = None

    @asynccontextmanager
    async def group(self) -> AsyncIterator[PostgresGroup]:
        """Begin; commit when the block ends well."""
        connection = self._connection or await self._connect()
        self._connection = None
        try:
            with _named_failures():
                await connection.execute("BEGIN")
            yield PostgresGroup(connection)
            with _named_failures():
                await connection.execute("COMMIT")
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection

    async def _connect(self) -> asyncpg.Connection[Any]:
        try:
            return await self._open()
        except (*AWAY, asyncpg.PostgresError) as refused:  # a wrong password, no such database: as good as away
            raise DatabaseUnavailable("The database does not answer.") from refused

    async def close(self) -> None:
        """Close the connection."""
        if self._connection:
            await self._connection.close()
            self._connection = None

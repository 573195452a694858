"""Groups on PostgreSQL: one asyncpg connection per process, lists as arrays.

asyncpg is used directly here, because on this path SQLAlchemy's share of the work would be the largest (docs/decisions).
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from service.errors import DatabaseUnavailable, WriteRefused
from service.storage.groups import one_statement

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from service.storage.groups import Column, Guard, Query, Stage

AWAY = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
    asyncpg.InternalClientError,  # the server said goodbye while the connection was idle, and the driver lost count
    asyncpg.exceptions.DeadlockDetectedError,  # rolled back for sure, like the next one: it is tried again
    asyncpg.exceptions.SerializationError,
    asyncpg.exceptions.InvalidCachedStatementError,  # a migration changed a table under us: a new connection knows it
)

# Another worker wrote the same row a moment before.
_OUTRUN = (asyncpg.UniqueViolationError,)
# The statements are few and always the same, each finds its rows by a key, and planning one anew costs more than running it. The
# plans are made anew when twice as many groups were served, at the latest after so many groups or seconds.
_PLANNED_FOR_GROUPS = 1_024
_PLANNED_FOR_SECONDS = 10.0
_PLANNING = """
SET plan_cache_mode = force_generic_plan; SET jit = off;
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off
"""


def connecting(engine: AsyncEngine) -> Callable[[], Awaitable[asyncpg.Connection[Any]]]:
    """How to open a connection of asyncpg's own to the engine's database."""
    _, arguments = engine.dialect.create_connect_args(engine.url)
    arguments.pop("async_fallback", None)
    return lambda: asyncpg.connect(**arguments, timeout=10)


class _named_failures:  # noqa: N801 - reads as the statement it is used as
    """Turns the driver's words for "the database is away" into ours. A class, because a generator costs more than it does."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, failure: BaseException | None, _trace: object) -> None:
        if failure is None or isinstance(failure, _OUTRUN):
            return
        if isinstance(failure, AWAY) and not isinstance(failure, ValueError):  # which is a value that the driver cannot send
            raise DatabaseUnavailable("The database does not answer.") from failure
        if isinstance(failure, (asyncpg.PostgresError, ValueError)):
            raise WriteRefused from failure


class PostgresGroup:
    """An open transaction."""

    def __init__(self, connection: asyncpg.Connection[Any]) -> None:
        self._connection = connection

    async def rows(self, query: Query, *columns: Column) -> Sequence[Any]:
        """Fetch."""
        statement, given = query.postgres, columns
        if query.of_one and len(set(columns[0])) == 1:
            statement, given = query.of_one, (columns[0][0], *columns[1:])
        with _named_failures():
            found: Sequence[Any] = await self._connection.fetch(statement, *given)
            return found

    async def write(self, stages: Sequence[Stage]) -> None:
        """One statement per stage."""
        for stage in stages:
            await self._run(stage)

    async def write_if(self, guard: Guard, stages: Sequence[Stage]) -> bool:
        """The guard stands before the first stage; False if it does not hold."""
        if not await self._run(stages[0], guard):
            return False
        if len(stages) > 1:
            await self.write(stages[1:])
        return True

    async def _run(self, stage: Stage, guard: Guard | None = None) -> bool:
        writes, given = (list(part) for part in zip(*stage, strict=True))
        if not guard:
            statement = one_statement(tuple(writes))
        elif len(guard) == 1:
            statement = one_statement(tuple(writes), "by one")
            given.append(guard[0][1])
        else:
            statement = one_statement(tuple(writes), "by several")
            given += zip(*guard, strict=True)
        with _named_failures():
            return bool(await self._connection.fetch(statement, *given))


class PostgresGroups:
    """Keeps its connection from group to group; after any failure it takes a new one."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._open = connecting(engine)
        self._connection: asyncpg.Connection[Any] | None = None
        self._groups = 0
        self._plans_until = (0, 0.0)

    async def rows(self, query: Query, *columns: Column) -> Sequence[Any]:
        """Fetch."""
        async with self._connected() as connection:
            return await PostgresGroup(connection).rows(query, *columns)

    @asynccontextmanager
    async def group(self) -> AsyncIterator[PostgresGroup]:
        """Begin; commit when the block ends well."""
        async with self._connected() as connection:
            await self._renew_plans(connection)
            with _named_failures():
                await connection.execute("BEGIN")
            yield PostgresGroup(connection)
            with _named_failures():
                await connection.execute("COMMIT")

    async def write_if(self, guard: Guard, stages: Sequence[Stage]) -> bool:
        """A single statement is a transaction by itself: it travels once, commit and all."""
        connection, self._connection = self._connection or await self._connect(), None
        try:
            await self._renew_plans(connection)
            done = await self._write_if(connection, guard, stages)
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection
        return done

    @staticmethod
    async def _write_if(connection: asyncpg.Connection[Any], guard: Guard, stages: Sequence[Stage]) -> bool:
        group = PostgresGroup(connection)
        try:
            if len(stages) == 1:
                return await group.write_if(guard, stages)
            with _named_failures():
                async with connection.transaction():
                    return await group.write_if(guard, stages)
        except _OUTRUN:
            return False

    async def _renew_plans(self, connection: asyncpg.Connection[Any]) -> None:
        """A plan that was right for an empty table may be wrong for a full one, so none is kept for long."""
        groups, until = self._plans_until
        self._groups += 1
        if self._groups >= groups or time.monotonic() >= until:
            self._plans_until = (
                min(2 * self._groups, self._groups + _PLANNED_FOR_GROUPS),
                time.monotonic() + _PLANNED_FOR_SECONDS,
            )
            with _named_failures():
                await connection.execute("DISCARD PLANS")

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[asyncpg.Connection[Any]]:
        connection = self._connection or await self._connect()
        self._connection = None
        try:
            yield connection
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection

    async def _connect(self) -> asyncpg.Connection[Any]:
        try:
            connection = await self._open()
            await connection.execute(_PLANNING)
            self._groups = 0
        except (*AWAY, asyncpg.PostgresError) as refused:  # a wrong password, no such database: as good as away
            raise DatabaseUnavailable("The database does not answer.") from refused
        return connection

    async def close(self) -> None:
        """Close the connection."""
        if self._connection:
            await self._connection.close()
            self._connection = None

"""The database: how it is opened, how a transaction begins on it, and how its failures are named."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeAlias, cast

from sqlalchemy import URL, AdaptedConnection, event
from sqlalchemy import engine as sync
from sqlalchemy.exc import DBAPIError, InterfaceError, InvalidatePoolError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, QueuePool

from service.domain.limits import LOCK_SECONDS, READ_SECONDS, STATEMENT_SECONDS
from service.errors import DatabaseUnavailable
from service.storage.database_url import async_url
from service.storage.groups.sqlite import SqliteGroups, prepare
from service.storage.groups.statements import Groups
from service.storage.queries.version_reader import PostgresVersionReader, SqliteVersionReader, VersionReader
from service.storage.row_streams.row_source import RowSource
from service.storage.sqlite_connection import connecting
from service.storage.sqlite_turns import is_read_only

# How long a migration waits for a SQLite file that somebody keeps; whoever serves waits as long as for a row of PostgreSQL. Half
# of it is a try (`begin_writing`).
_SQLITE_MIGRATION_SECONDS = 60.0
# How long somebody may hold a file before it counts as one that cannot be opened.
_SQLITE_OPEN_SECONDS = 10.0
# How long whoever needs a connection waits for one that others have.
_POOL_SECONDS = 10.0
# A connection that was used so lately is not asked whether it is still there: its socket would have said otherwise by now.
_TRUSTED_SECONDS = 1.0


def _file_of(url: str) -> Path | None:
    """Of an embedded database; None of any other."""
    parsed = async_url(url)
    in_a_file = parsed.get_backend_name() == "sqlite" and parsed.database and parsed.database != ":memory:"
    return Path(parsed.database).absolute() if in_a_file and parsed.database else None


def is_missing(url: str) -> bool:
    """Is it an embedded database that has not been made yet?"""
    file = _file_of(url)
    return file is not None and not file.exists()


def require_file(url: str, *, may_be_new: bool) -> None:
    """Raise unless the embedded database that the URL names can be opened; of another database nothing is required.

    SQLite makes an empty one of any name it is given: only where a new one is meant may it be made.
    """
    file = _file_of(url)
    if file is None:
        return
    if not may_be_new and not file.exists():
        raise DatabaseUnavailable(f"There is no database {file}. BESTARM_DATABASE_URL says which one is meant.")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(file, timeout=_SQLITE_OPEN_SECONDS)) as opened:
            opened.execute("PRAGMA schema_version").close()
    except (OSError, sqlite3.Error) as trouble:
        raise DatabaseUnavailable(f"The database {file} cannot be opened.") from trouble


# What the layers above hand around without looking inside.
Connection: TypeAlias = AsyncConnection


class Database:
    """One engine for the process; made inside the event loop that uses it.

    `trusted_seconds` is how long a connection may lie in the pool before it is asked whether it is still there;
    `group_seconds` how long a statement of a group may take on PostgreSQL, `read_seconds` any other, None for a migration.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 8,
        trusted_seconds: float = _TRUSTED_SECONDS,
        group_seconds: float = STATEMENT_SECONDS,
        read_seconds: float | None = READ_SECONDS,
    ) -> None:
        self.url = url
        parsed = async_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self._one_probe = asyncio.Lock()
        if self.is_sqlite:
            if parsed.database and parsed.database != ":memory:":
                Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
            busy_seconds = (_SQLITE_MIGRATION_SECONDS if read_seconds is None else LOCK_SECONDS) / 2
            self.engine, self._apart = (_sqlite_engine(parsed, size, busy_seconds) for size in (pool_size, 1))
            self.groups: Groups = SqliteGroups(parsed.database or ":memory:", busy_seconds)
            self.version_reader: VersionReader = SqliteVersionReader(parsed.database or ":memory:")
            self.row_source = RowSource("sqlite", {"path": parsed.database or ":memory:", "timeout": READ_SECONDS})
        else:
            self.engine, self._apart = (_postgres_engine(parsed, size, read_seconds, trusted_seconds) for size in (pool_size, 1))
            self.groups, self.version_reader, self.row_source = _beside_the_pool(self.engine, group_seconds)

    async def connect(self) -> AsyncConnection:
        """A connection; whatever keeps us out (no server, no such database, a wrong password) is one kind of failure."""
        return await _connected(self.engine)

    def pool_use(self) -> tuple[int, int]:
        """How many connections of the pool for reads are in use, and how many it may have."""
        pool = cast("QueuePool", self.engine.pool)
        return pool.checkedout(), pool.size()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A consistent snapshot: all statements see the same state of the database."""
        async with self._snapshot(self.engine) as connection:
            yield connection

    @asynccontextmanager
    async def reading_apart(self) -> AsyncIterator[AsyncConnection]:
        """The same by a connection that is for what no request may keep waiting: which keys are good, and probes."""
        async with self._snapshot(self._apart) as connection:
            yield connection

    @asynccontextmanager
    async def probing(self) -> AsyncIterator[AsyncConnection]:
        """The same for a probe. They take turns, so that many of them do not keep the keys waiting; none waits for long."""
        try:
            await asyncio.wait_for(self._one_probe.acquire(), _POOL_SECONDS)
        except TimeoutError as stuck:
            raise DatabaseUnavailable("The database does not answer.") from stuck
        try:
            async with self.reading_apart() as connection:
                yield connection
        finally:
            self._one_probe.release()

    @asynccontextmanager
    async def _snapshot(self, engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
        connection = await _connected(engine)
        try:
            with named_failures():
                if not self.is_sqlite:  # a SQLite read transaction is a snapshot by itself
                    await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                yield connection
        finally:
            await asyncio.shield(_give_back(connection))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that commits when the block ends well. On SQLite it takes the write lock at once."""
        connection = await self.connect()
        try:
            with named_failures():
                await connection.execution_options(immediate=True)
                async with connection.begin():
                    yield connection
        finally:
            await asyncio.shield(_give_back(connection))

    async def close(self) -> None:
        """Let go of all connections."""
        await self.groups.close()
        await self.version_reader.close()
        await self.engine.dispose()
        await self._apart.dispose()


async def _connected(engine: AsyncEngine) -> AsyncConnection:
    try:
        return await engine.connect()
    except (DBAPIError, PoolTimeout, OSError, sqlite3.Error) as refused:
        raise DatabaseUnavailable("The database does not answer.") from refused


async def _give_back(connection: AsyncConnection) -> None:
    """Back into the pool. One that was lost meanwhile, or is silent, goes: what it has read or committed is whole."""
    try:
        await connection.close()
    except (DBAPIError, OSError):
        if not connection.closed:
            await connection.invalidate()
            await connection.close()


def _sqlite_engine(url: URL, pool_size: int, busy_seconds: float) -> AsyncEngine:
    connect = connecting(url, busy_seconds)
    engine = create_async_engine(url, async_creator=connect, pool_size=pool_size, max_overflow=0, pool_timeout=_POOL_SECONDS)
    _prepare_sqlite(engine)
    return engine


def _postgres_engine(url: URL, pool_size: int, read_seconds: float | None, trusted_seconds: float) -> AsyncEngine:
    """A pool for everything but the hot path."""
    engine = _postgres_pool(url, pool_size, read_seconds)
    _replace_lost_connections(engine, trusted_seconds)
    if read_seconds is not None:
        _bound_waits_for_locks(engine)
    return engine


def _postgres_pool(url: URL, pool_size: int, read_seconds: float | None) -> AsyncEngine:
    from service.storage import postgres_hosts  # noqa: PLC0415 - its driver is an extra

    # The connection that was used last comes first: its statements are prepared, and it need not be asked whether it is there.
    pool: dict[str, Any] = {
        "pool_size": pool_size, "max_overflow": 0, "pool_timeout": _POOL_SECONDS, "pool_use_lifo": True,
    }  # fmt: skip
    session = {"command_timeout": read_seconds, "server_settings": {"application_name": "bestarm"}}
    if not postgres_hosts.names_several(url):
        return create_async_engine(url, **pool, connect_args={"timeout": 10, **session})

    def connect() -> Awaitable[object]:
        return hosts.connect(**session)

    engine = create_async_engine(url, **pool, async_creator=connect)
    hosts = postgres_hosts.PostgresHosts(postgres_hosts.connection_arguments(engine))
    return engine


def _beside_the_pool(engine: AsyncEngine, statement_seconds: float) -> tuple[Groups, VersionReader, RowSource]:
    """What uses PostgreSQL's driver directly."""
    from service.storage.groups.postgres import PostgresGroups  # noqa: PLC0415 - its driver is an extra
    from service.storage.postgres_failures import AWAY  # noqa: PLC0415 - likewise
    from service.storage.postgres_hosts import PostgresHosts, connection_arguments  # noqa: PLC0415 - likewise

    arguments = connection_arguments(engine)
    hosts = PostgresHosts(arguments)
    return (
        PostgresGroups(hosts, statement_seconds),
        PostgresVersionReader(hosts.connect, AWAY, statement_seconds),
        RowSource("postgresql", arguments),
    )


class named_failures:  # noqa: N801 - reads as the statement it is used as
    """Turns a driver's word for "the database is away" into ours, with its cause."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, failure: BaseException | None, _trace: object) -> None:
        if failure is None:
            return
        lost = isinstance(failure, DBAPIError) and (
            failure.connection_invalidated or isinstance(failure, (OperationalError, InterfaceError)) or _is_away(failure.orig)
        )
        if lost or isinstance(failure, (PoolTimeout, OSError, sqlite3.OperationalError)):
            raise DatabaseUnavailable("The database does not answer.") from failure


def _is_away(refusal: BaseException | None) -> bool:
    """Does PostgreSQL say so itself? SQLAlchemy has fewer words for it: what it translated is the cause."""
    if refusal is None or isinstance(refusal, sqlite3.Error):
        return False
    from service.storage.postgres_failures import AWAY  # noqa: PLC0415 - its driver is an extra

    return isinstance(refusal.__cause__, AWAY)


def _prepare_sqlite(engine: AsyncEngine) -> None:
    """WAL, durable commits, and transactions that begin when and how we say."""

    @event.listens_for(engine.sync_engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver would begin transactions late and read-only
        prepare(connection)

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: sync.Connection) -> None:
        if connection.get_execution_options().get("immediate", False):
            cast("AdaptedConnection", connection.connection.dbapi_connection).run_async(lambda driver_s: driver_s.begin_writing())
        else:
            connection.exec_driver_sql("BEGIN")

    @event.listens_for(engine.sync_engine, "handle_error")
    def forget_read_only(context: sync.ExceptionContext) -> None:
        refused = context.original_exception
        if isinstance(refused, sqlite3.OperationalError) and is_read_only(refused):
            context.is_disconnect = True


def _replace_lost_connections(engine: AsyncEngine, trusted_seconds: float) -> None:
    """A connection that the server closed while nobody used it is noticed when it is taken, and the whole pool is made anew.

    One that is known to be closed costs no look; one that lay there for a while is asked, which is a round trip.
    """

    @event.listens_for(engine.sync_engine, "checkin")
    def note(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info["left_at"] = time.monotonic()

    @event.listens_for(engine.sync_engine, "checkout")
    def require_open(connection: PoolProxiedConnection, record: ConnectionPoolEntry, _proxy: object) -> None:
        driver_s = record.driver_connection
        left_at = record.info.get("left_at", math.inf)  # a new one was there a moment ago
        if driver_s is None or driver_s.is_closed():
            raise InvalidatePoolError
        if time.monotonic() - left_at > trusted_seconds and not _answers(engine, connection):
            raise InvalidatePoolError


def _bound_waits_for_locks(engine: AsyncEngine) -> None:
    """What an operator's session holds for long is not waited for; what a stopped worker of ours holds is let go of."""

    @event.listens_for(engine.sync_engine, "connect")
    def configure(connection: PoolProxiedConnection, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{READ_SECONDS}s'")
        cursor.close()
        connection.commit()


def _answers(engine: AsyncEngine, connection: PoolProxiedConnection) -> bool:
    dialect = engine.sync_engine.dialect
    try:
        return dialect.do_ping(connection)
    except Exception:  # noqa: BLE001 - whatever it says, it is not what an open connection says
        return False

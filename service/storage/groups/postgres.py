"""Groups on PostgreSQL: asyncpg connections of this process's own, lists as arrays.

asyncpg is used directly here, because on this path SQLAlchemy's share of the work would be the largest (docs/decisions/0003).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

import asyncpg

from service.domain.limits import LOCK_SECONDS
from service.errors import DatabaseUnavailable, ExperimentLocked, WriteRefused
from service.storage.groups.statements import one_statement
from service.storage.postgres_failures import AWAY

if TYPE_CHECKING:
    from asyncpg.prepared_stmt import PreparedStatement

    from service.storage.groups.statements import Guard, Query, Stage, Values
    from service.storage.postgres_hosts import PostgresHosts

# Another worker wrote the same row a moment before.
_OUTRUN = (asyncpg.UniqueViolationError,)
# The statements are few and always the same, each finds its rows by a key, and planning one anew costs more than running it. The
# plans are made anew when twice as many groups were served, at the latest after so many groups or seconds.
_PLANNED_FOR_GROUPS = 1_024
_PLANNED_FOR_SECONDS = 10.0
_MOST_PREPARED = 256
_CLOSE_SECONDS = 3.0
# How exactly a statement's time is kept.
_LOOKS_A_STATEMENT = 10
_PLANNING = """
SET plan_cache_mode = force_generic_plan; SET jit = off;
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;
SET enable_bitmapscan = off
"""
# A transaction of ours never pauses: one that does belongs to a worker that is stopped or cut off, and holds up the others.
_PATIENCE = f"""
SET lock_timeout = '{LOCK_SECONDS}s'; SET idle_in_transaction_session_timeout = '{LOCK_SECONDS}s'
"""


def _raise_named(failure: Exception) -> NoReturn:
    """The driver's words for "the database is away" and "it does not take this" in ours."""
    if isinstance(failure, asyncpg.LockNotAvailableError):
        raise ExperimentLocked from failure
    if isinstance(failure, AWAY) and not isinstance(failure, ValueError):  # which is a value that the driver cannot send
        raise DatabaseUnavailable("The database does not answer.") from failure
    if isinstance(failure, (asyncpg.PostgresError, ValueError)) and not isinstance(failure, _OUTRUN):
        raise WriteRefused from failure
    raise failure


class PostgresGroup:
    """A connection with its prepared statements, and the transaction that is open on it.

    Its plans are thrown away now and then: what was right for an empty table may be wrong for a full one.
    """

    def __init__(self, connection: asyncpg.Connection[Any], seconds: float) -> None:
        self.connection, self._seconds = connection, seconds
        self._prepared: dict[str, PreparedStatement[Any]] = {}
        self._uses = 0
        self._plans_until_use, self._plans_until_time = 0, 0.0
        self._busy_since = math.inf
        self._watch()

    async def rows(self, query: Query, *columns: Values) -> Sequence[Any]:
        """What the query finds for these columns of values."""
        if query.of_one and len(set(columns[0])) == 1:
            return await self._fetch(query.of_one, (columns[0][0], *columns[1:]))
        return await self._fetch(query.postgres, columns)

    async def write(self, stages: Sequence[Stage]) -> None:
        """One statement per stage."""
        for stage in stages:
            await self.run(stage)

    async def write_if(self, guard: Guard, stages: Sequence[Stage]) -> bool:
        """The guard stands before the first stage; False if it does not hold."""
        if not await self.run(stages[0], guard):
            return False
        await self.write(stages[1:])
        return True

    async def run(self, stage: Stage, guard: Guard | None = None) -> bool:
        """One statement, if the guard holds."""
        writes, given = map(list, zip(*stage, strict=True))
        if not guard:
            statement = one_statement(tuple(writes))
        elif len(guard) == 1:
            of_one_row = max(map(len, given)) == 1
            statement = one_statement(tuple(writes), "by one", of_one_row=of_one_row)
            if of_one_row:
                given = [rows[0][place] for write, rows in stage for place in write.places]
            given.append(guard[0][1])
        else:
            statement = one_statement(tuple(writes), "by several")
            given += zip(*guard, strict=True)
        return bool(await self._fetch(statement, given))

    async def execute(self, command: str) -> None:
        """A command without parameters."""
        self._busy_since = time.monotonic()
        try:
            await self.connection.execute(command)
        except Exception as failure:  # noqa: BLE001 - raised again
            _raise_named(failure)
        finally:
            self._busy_since = math.inf

    def has_old_plans(self) -> bool:
        """To be asked before each use."""
        self._uses += 1
        return self._uses >= self._plans_until_use or time.monotonic() >= self._plans_until_time

    async def renew_plans(self) -> None:
        """Make all plans anew."""
        self._plans_until_use = min(2 * self._uses, self._uses + _PLANNED_FOR_GROUPS)
        self._plans_until_time = time.monotonic() + _PLANNED_FOR_SECONDS
        await self.execute("DISCARD PLANS")

    async def _fetch(self, statement: str, given: Sequence[Any]) -> Sequence[Any]:
        """Run a statement. They are few and always the same."""
        self._busy_since = time.monotonic()
        try:
            prepared = self._prepared.get(statement)
            if prepared is None:
                if len(self._prepared) >= _MOST_PREPARED:
                    self._prepared.clear()
                prepared = self._prepared[statement] = await self.connection.prepare(statement)
            found: Sequence[Any] = await prepared.fetch(*given)
        except Exception as failure:  # noqa: BLE001 - raised again
            _raise_named(failure)
        finally:
            self._busy_since = math.inf
        return found

    def _watch(self) -> None:
        """Give the connection up if a statement takes too long; looked at now and then, because a timer for each would cost more.

        The statement itself is not cancelled, as the driver's own timeouts would: a commit that waits for a standby would be
        visible then, and yet not be there after a failover.
        """
        if time.monotonic() - self._busy_since > self._seconds:
            self.connection.terminate()
        elif not self.connection.is_closed():
            asyncio.get_running_loop().call_later(self._seconds / _LOOKS_A_STATEMENT, self._watch)


class PostgresGroups:
    """Keeps its connections from group to group, one to write and one to read meanwhile; after any failure it takes new ones."""

    def __init__(self, hosts: PostgresHosts, statement_seconds: float) -> None:
        self._open, self._seconds = hosts.connect, statement_seconds
        self._idle: list[PostgresGroup] = []
        """Those that are free. The one that was used last comes first: its plans and caches are warm."""
        self.losses = 0

    async def rows(self, query: Query, *columns: Values) -> Sequence[Any]:
        """What the query finds for these columns of values."""
        async with self._connected() as link:
            return await link.rows(query, *columns)

    @asynccontextmanager
    async def group(self) -> AsyncIterator[PostgresGroup]:
        """Begin; commit when the block ends well."""
        async with self._connected() as link:
            await link.execute("BEGIN")
            yield link
            await link.execute("COMMIT")

    async def write_if(self, guard: Guard, stages: Sequence[Stage]) -> bool:
        """A single statement is a transaction by itself: it travels once, commit and all."""
        if len(stages) > 1:
            return await self._write_in_steps(guard, stages)
        losses = self.losses
        link = await self._link()
        if losses != self.losses:
            self._idle.append(link)
            return False
        try:
            if link.has_old_plans():
                await link.renew_plans()
            done = await link.run(stages[0], guard)
        except _OUTRUN:
            done = False
        except BaseException:
            self._drop(link)
            raise
        self._idle.append(link)
        return done

    async def _write_in_steps(self, guard: Guard, stages: Sequence[Stage]) -> bool:
        losses = self.losses
        async with self._connected() as link:
            if losses != self.losses:
                return False
            await link.execute("BEGIN")
            try:
                done = await link.write_if(guard, stages)
            except _OUTRUN:
                done = False
            await link.execute("COMMIT" if done else "ROLLBACK")
            return done

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[PostgresGroup]:
        link = await self._link()
        try:
            if link.has_old_plans():
                await link.renew_plans()
            yield link
        except BaseException:
            self._drop(link)
            raise
        self._idle.append(link)

    async def _link(self) -> PostgresGroup:
        """A free connection, or a new one where the server has closed those that there were."""
        while self._idle:
            link = self._idle.pop()
            if not link.connection.is_closed():
                return link
            self.losses += 1
        return await self._connect()

    async def _connect(self) -> PostgresGroup:
        """One more connection."""
        try:
            connection = await self._open()
            try:
                await connection.execute(_PLANNING + ";" + _PATIENCE, timeout=self._seconds)
            except BaseException:
                connection.terminate()
                raise
        except (*AWAY, asyncpg.PostgresError) as refused:  # a wrong password, no such database: as good as away
            raise DatabaseUnavailable("The database does not answer.") from refused
        return PostgresGroup(connection, self._seconds)

    def _drop(self, failed: PostgresGroup) -> None:
        """What happened to one connection may have happened to the other."""
        self.losses += 1
        for link in (failed, *self._idle):
            link.connection.terminate()
        self._idle.clear()

    async def close(self) -> None:
        """Close the connections."""
        while self._idle:
            with suppress(*AWAY):  # it was lost while nobody looked, or says nothing any more
                await self._idle.pop().connection.close(timeout=_CLOSE_SECONDS)

"""Groups on SQLite: one connection, and a thread of its own for whatever may have to wait.

A group of some size is written where it was decided, in the event loop's own thread, and only its commit, which waits for the
disk, goes to the other one. From there every statement would have to ask for the interpreter, and beside a busy event loop that
takes longer than the statement itself.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from service.errors import DatabaseLocked, DatabaseUnavailable, WriteRefused
from service.storage.groups.statements import many_rows
from service.storage.sqlite_turns import begin_writing, is_read_only

if TYPE_CHECKING:
    from service.storage.groups.statements import Guard, Query, Stage, Values

Result = TypeVar("Result")
# Each number of rows is a statement of its own, prepared once: the fewer statements a group takes, the less its thread waits.
_MOST_ROWS_AT_ONCE = 64
# Groups of so many rows are written in the event loop's own thread. Fewer meet no busy loop, more would keep it for too long.
_ROWS_IN_THE_LOOP = range(8, 257)
_STATEMENTS = 1024
# How long to wait, twice, for the write lock where somebody has kept it for longer already.
_LOCKED_BEFORE_SECONDS = 0.25
# How long the event loop may keep the interpreter while that thread waits for it.
_SWITCH_SECONDS = 0.0001
_VERSION = "SELECT version FROM experiments WHERE id = ?"
# Of these the driver does not know that they need no adapting, and looks for it everywhere, each time: four fifths of their cost.
sqlite3.register_adapter(type(None), {}.get)  # type: ignore[arg-type] # it gives None for None
sqlite3.register_adapter(bool, int)


class SqliteGroup:
    """An open transaction."""

    def __init__(self, groups: SqliteGroups) -> None:
        self._groups = groups
        self._stages: Sequence[Stage] = ()

    async def rows(self, query: Query, *columns: Values) -> Sequence[Any]:
        """What the query finds for these columns of values."""
        return await self._groups.rows(query, *columns)

    async def write(self, stages: Sequence[Stage]) -> None:
        """Kept until the end of the block, so that writing and committing are one visit to the thread."""
        self._stages = (*self._stages, *stages)

    def finish(self, open_: sqlite3.Connection) -> None:
        """Write and commit; called in the thread."""
        _write(open_, self._stages)
        _commit(open_)


class SqliteGroups:
    """Owns the writing connection."""

    def __init__(self, path: str, busy_seconds: float) -> None:
        self._path, self._busy_seconds = path, busy_seconds
        self._patience_seconds = busy_seconds
        """How long to wait for the write lock now."""
        self._thread = ThreadPoolExecutor(1, "sqlite-writer")
        # The thread gives the interpreter up at every step and must get it back from a busy event loop: sooner than usual.
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._connection: sqlite3.Connection | None = None
        self._visit: Future[Any] | None = None
        """The last one to the thread."""
        self.losses = 0

    async def run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run some work in the thread."""
        visit = self._visit = self._thread.submit(self._guarded, work)
        return await asyncio.wrap_future(visit)

    def _guarded(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """The driver's words for "the database is away" and "it does not take this" in ours."""
        try:
            return work(self._open())
        except sqlite3.OperationalError as trouble:
            if is_read_only(trouble):
                self._forget_connection()
            raise DatabaseUnavailable("The database does not answer.") from trouble
        except (sqlite3.Error, ValueError, OverflowError) as refused:  # a value that no column can hold
            raise WriteRefused from refused

    @asynccontextmanager
    async def group(self) -> AsyncIterator[SqliteGroup]:
        """Begin with the write lock in hand; commit when the block ends well."""
        await self.run(self._begin)
        opened = SqliteGroup(self)
        try:
            yield opened
            await self.run(opened.finish)
        except BaseException:
            await self.run(_roll_back)
            raise

    async def rows(self, query: Query, *columns: Values) -> Sequence[Any]:
        """Fetch; the lists travel as JSON."""
        wanted = json.dumps(list(zip(*columns, strict=True)))
        return await self.run(lambda open_: open_.execute(query.sqlite, (wanted,)).fetchall())

    async def write_if(self, guard: Guard, stages: Sequence[Stage]) -> bool:
        """Here and now as far as it need not wait, or in one visit to the thread."""

        def write(open_: sqlite3.Connection) -> bool:
            try:
                if all(_is_at(open_, experiment_id, version) for experiment_id, version in guard):
                    _write(open_, stages)
                    return True
            except sqlite3.IntegrityError:
                pass  # a row of another worker stands in the way
            except BaseException:
                _roll_back(open_)
                raise
            _roll_back(open_)
            return False

        def begin_and_write(open_: sqlite3.Connection) -> bool:
            self._begin(open_)
            return write(open_) and _commit(open_)

        size = sum(len(rows) for stage in stages for _, rows in stage)
        if size in _ROWS_IN_THE_LOOP and self._begins_at_once():
            return self._guarded(write) and await self.run(_commit)
        return await self.run(begin_and_write)

    def _begins_at_once(self) -> bool:
        """Begin, if the thread is idle and no other process is in a transaction: the event loop waits for neither."""
        open_ = self._connection
        if open_ is None or (self._visit is not None and not self._visit.done()):
            return False
        open_.execute("PRAGMA busy_timeout=0").close()
        patience = self._patience_seconds
        try:
            open_.execute("BEGIN IMMEDIATE").close()
            patience = self._busy_seconds
        except sqlite3.OperationalError:
            return False
        finally:
            self._be_patient(open_, patience)
        return True

    def _begin(self, open_: sqlite3.Connection) -> None:
        """With the write lock in hand. Whoever has held it for long is looked for again, and not waited for a second time."""
        try:
            begin_writing(open_)
        except DatabaseLocked:
            self._be_patient(open_, _LOCKED_BEFORE_SECONDS)
            raise
        if self._patience_seconds != self._busy_seconds:
            self._be_patient(open_, self._busy_seconds)

    def _be_patient(self, open_: sqlite3.Connection, seconds: float) -> None:
        self._patience_seconds = seconds
        open_.execute(f"PRAGMA busy_timeout={round(1_000 * seconds)}").close()

    def _forget_connection(self) -> None:
        """One that was opened while nobody could write stays read-only for good: the next visit opens another."""
        lost, self._connection = self._connection, None
        if lost is not None:
            lost.close()

    async def close(self) -> None:
        """Close the connection, if one was needed, and end the thread."""
        if self._connection is not None:
            await self.run(lambda open_: open_.close())
        self._thread.shutdown()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            opened = sqlite3.connect(
                self._path,
                timeout=self._busy_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=_STATEMENTS,
            )
            opened.row_factory = sqlite3.Row
            prepare(opened)
            self._connection = opened
        return self._connection


def prepare(connection: sqlite3.Connection) -> None:
    """WAL, and commits that are on the disk when they return."""
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}").close()


def _is_at(open_: sqlite3.Connection, experiment_id: int, version: int) -> bool:
    """Has the experiment this version? A deleted one has none."""
    found = open_.execute(_VERSION, (experiment_id,)).fetchone()
    return found is not None and found[0] == version


def _write(open_: sqlite3.Connection, stages: Sequence[Stage]) -> None:
    for write, rows in (one for stage in stages for one in stage):
        done = 0
        while done < len(rows):
            count = min(_MOST_ROWS_AT_ONCE, len(rows) - done)
            values = [row[place] for row in rows[done : done + count] for place in write.places]
            for statement in many_rows(write, count):
                open_.execute(statement, values)
            done += count


def _commit(open_: sqlite3.Connection) -> bool:
    """Durable when it returns."""
    try:
        open_.execute("COMMIT")
    finally:
        _roll_back(open_)
    return True


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")

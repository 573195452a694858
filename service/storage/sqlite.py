"""Groups on SQLite: one connection in a thread of its own, two visits to it per group."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from service.errors import DatabaseUnavailable, WriteRefused
from service.storage.groups import many_rows

if TYPE_CHECKING:
    from service.storage.groups import Guard, Query, Stage, Values

Result = TypeVar("Result")
# Each number of rows is a statement of its own, prepared once: the fewer statements a group takes, the less its thread waits.
_MOST_ROWS_AT_ONCE = 64
_STATEMENTS = 1024
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
        """Fetch."""
        return await self._groups.rows(query, *columns)

    async def write(self, stages: Sequence[Stage]) -> None:
        """Kept until the end of the block, so that writing and committing are one visit to the thread."""
        self._stages = (*self._stages, *stages)

    def finish(self, open_: sqlite3.Connection) -> None:
        """Write and commit; called in the thread."""
        _write(open_, self._stages)
        open_.execute("COMMIT")


class SqliteGroups:
    """Owns the writing connection."""

    def __init__(self, path: str, busy_seconds: float) -> None:
        self._path, self._busy_seconds = path, busy_seconds
        self._thread = ThreadPoolExecutor(1, "sqlite-writer")
        # The thread gives the interpreter up at every step and must get it back from a busy event loop: sooner than usual.
        sys.setswitchinterval(_SWITCH_SECONDS)
        self._connection: sqlite3.Connection | None = None

    async def run(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run some work in the thread."""

        def guarded() -> Result:
            try:
                return work(self._open())
            except sqlite3.OperationalError as trouble:
                raise DatabaseUnavailable("The database does not answer.") from trouble
            except (sqlite3.Error, ValueError, OverflowError) as refused:  # a value that no column can hold
                raise WriteRefused from refused

        return await asyncio.get_running_loop().run_in_executor(self._thread, guarded)

    @asynccontextmanager
    async def group(self) -> AsyncIterator[SqliteGroup]:
        """Begin with the write lock in hand; commit when the block ends well."""
        await self.run(lambda open_: open_.execute("BEGIN IMMEDIATE"))
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
        """One visit to the thread."""

        def write_guarded(open_: sqlite3.Connection) -> bool:
            open_.execute("BEGIN IMMEDIATE")
            try:
                current = (open_.execute(_VERSION, (experiment_id,)).fetchone()[0] == version for experiment_id, version in guard)
                if not all(current):
                    return False
                _write(open_, stages)
                open_.execute("COMMIT")
            except sqlite3.IntegrityError:
                return False  # a row of another worker stands in the way
            finally:
                _roll_back(open_)
            return True

        return await self.run(write_guarded)

    async def close(self) -> None:
        """Close the connection and end the thread."""
        await self.run(lambda open_: open_.close())
        self._thread.shutdown()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(
                self._path,
                timeout=self._busy_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=_STATEMENTS,
            )
            self._connection.row_factory = sqlite3.Row
            prepare(self._connection)
        return self._connection


def prepare(connection: sqlite3.Connection) -> None:
    """WAL, and commits that are on the disk when they return."""
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}").close()


def _write(open_: sqlite3.Connection, stages: Sequence[Stage]) -> None:
    for write, rows in (one for stage in stages for one in stage):
        done = 0
        while done < len(rows):
            count = min(_MOST_ROWS_AT_ONCE, len(rows) - done)
            values = [row[place] for row in rows[done : done + count] for place in write.places]
            for statement in many_rows(write, count):
                open_.execute(statement, values)
            done += count


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")

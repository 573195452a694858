"""What can be read of a database, moment by moment. Statements name their parameters `$1`, `$2`, … on both engines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

Row: TypeAlias = Any
"""The values of a row, in order and by the names of their columns."""


class RowSnapshot(Protocol):
    """The database as it is at one moment: all statements see the same."""

    async def fetch(self, statement: str, *values: object) -> Sequence[Row]:
        """All rows of a statement, which must find few."""
        ...


class RowConnection(Protocol):
    """A connection that an export has for as long as it takes."""

    @property
    def waited(self) -> float:
        """Seconds for which this process has stood still in all, until the database answered."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[RowSnapshot]:
        """A snapshot of now, until the block ends.

        As long as one is held, PostgreSQL keeps every earlier version of the rows that asks update, and SQLite's log grows: so
        it must last milliseconds, and no reader of a file may be waited for in it.
        """
        ...

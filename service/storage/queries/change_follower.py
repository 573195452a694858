"""Rows that every worker has in memory, learned change by change.

A counter of one row numbers the changes of a table. Whoever changes the table holds the counter until the end of the transaction,
so nobody sees a later change without an earlier one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from sqlalchemy import select, update

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.ext.asyncio import AsyncConnection

Row = TypeVar("Row")
OtherRow = TypeVar("OtherRow")
ChangedSince: TypeAlias = "Callable[[AsyncConnection, int, int], Awaitable[Sequence[tuple[int, Row]]]]"
# Rows read at a time, so that the event loop is not held by ten thousand of them.
_AT_ONCE: Final = 500
_SERVER: Final = "bestarm.server"


async def next_change(connection: AsyncConnection, counter: Table) -> int:
    """The number of the change that this transaction makes; the next one waits for its end."""
    moved = update(counter).values(number=counter.c.number + 1).returning(counter.c.number)
    number: int = (await connection.execute(moved)).scalar_one()
    return number


@dataclass(frozen=True, slots=True)
class Changes(Generic[Row]):
    """What a worker has not learned yet of a table that counts its changes."""

    number: int
    """Of the last change; 0 if there never was one."""
    rows: list[Row]
    is_anew: bool
    """They are all that there is: what was known before and is not among them is gone."""
    server: object


class ChangeFollower(Generic[Row]):
    """Up to which change somebody knows the rows of a table."""

    def __init__(self, counter: Table, changed_since: ChangedSince[Row]) -> None:
        self.last_change = select(counter.c.number)
        self._changed_since = changed_since
        self._number, self._server = 0, object()

    async def until(self, connection: AsyncConnection, last: int) -> Changes[Row]:
        """What has changed since what was learned last, up to the last change.

        All of it, where the number has fallen back, and over a new connection: behind it may be a server that has lost changes,
        as after a failover to a standby that was behind, and has given their numbers to others.
        """
        server = connection.info.setdefault(_SERVER, object())
        is_anew = server is not self._server or last < self._number
        known, rows = 0 if is_anew else self._number, []
        while known < last:
            changed = await self._changed_since(connection, known, _AT_ONCE)
            rows += [row for _, row in changed]
            known = changed[-1][0] if len(changed) == _AT_ONCE else last
        return Changes(last, rows, is_anew, server)

    def learned(self, changes: Changes[Row]) -> None:
        """They are known now."""
        self._number, self._server = changes.number, changes.server


async def look_at_both(
    connection: AsyncConnection, one: ChangeFollower[Row], other: ChangeFollower[OtherRow]
) -> tuple[Changes[Row], Changes[OtherRow]]:
    """What has changed in two tables. Nearly always that is nothing, and their counters are read by one statement."""
    both = select(one.last_change.scalar_subquery(), other.last_change.scalar_subquery())
    of_one, of_other = (await connection.execute(both)).one()
    return await one.until(connection, of_one), await other.until(connection, of_other)

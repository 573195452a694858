"""From times to numbers: draws and events are numbered, and their times never run backwards.

So the first one at or after a time is found by halving, along the primary key: twenty rows among a million, no index on times.
Where pruning has left gaps, the next one that is there tells the time of all that are missing before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from service.storage.tables import assignments, events

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection


async def first_draw_at(connection: AsyncConnection, experiment_id: int, at: int, draws: int) -> int:
    """The number of the first of so many draws that was made at this time or later; one more than there are if none was."""
    there = select(assignments.c.created_at).where(assignments.c.experiment_id == experiment_id)
    there = there.order_by(assignments.c.draw).limit(1)
    return await _first(connection, lambda draw: there.where(assignments.c.draw >= draw), at, draws)


async def first_event_at(connection: AsyncConnection, experiment_id: int, at: int, version: int) -> int:
    """The sequence number of the first event, up to a version, that happened at this time or later; one more if none did."""
    there = select(events.c.at).where(events.c.experiment_id == experiment_id)
    there = there.order_by(events.c.sequence).limit(1)
    return await _first(connection, lambda sequence: there.where(events.c.sequence >= sequence), at, version)


async def _first(connection: AsyncConnection, time_of: Callable[[int], Select[Any]], at: int, most: int) -> int:
    low, high = 1, most + 1
    while low < high:
        middle = (low + high) // 2
        found = (await connection.execute(time_of(middle))).scalar_one_or_none()
        if found is None or found >= at:
            high = middle
        else:
            low = middle + 1
    return low

"""Observations: a page of them from the history, and what became of those that have an id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, text

from service.storage import settings_rows, traffic_rows
from service.storage.tables import events, observations

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import Event, ObservationRecord

# In the very words of the index over them, which SQLite would not recognise with a parameter in it.
_OBSERVATION = text("kind = 'observation'")


async def page_of_arrivals(
    connection: AsyncConnection, experiment_id: int, *, first: int, before: int, arm: int | None, limit: int
) -> list[Event]:
    """The events with which observations came, newest first, of the sequence numbers from `first` on and below `before`."""
    wanted = select(events).where(
        events.c.experiment_id == experiment_id, _OBSERVATION, events.c.sequence >= first, events.c.sequence < before
    )
    if arm is not None:
        wanted = wanted.where(events.c.arm == arm)
    wanted = wanted.order_by(events.c.sequence.desc()).limit(limit)
    return [traffic_rows.event_from(row) for row in (await connection.execute(wanted)).mappings()]


async def arrival(connection: AsyncConnection, experiment_id: int, sequence: int) -> Event:
    """The event with which an observation came."""
    wanted = select(events).where(events.c.experiment_id == experiment_id, events.c.sequence == sequence)
    return traffic_rows.event_from((await connection.execute(wanted)).mappings().one())


async def named_observations(
    connection: AsyncConnection, experiment_id: int, sequences: Collection[int]
) -> dict[int, ObservationRecord]:
    """Those of the observations that came with these sequence numbers that have an id, as they are now."""
    wanted = select(observations).where(observations.c.experiment_id == experiment_id, observations.c.sequence.in_(sequences))
    found = [settings_rows.observation_from(row) for row in (await connection.execute(wanted)).mappings()] if sequences else []
    return {named.sequence: named for named in found}


async def observation_by_id(connection: AsyncConnection, experiment_id: int, name: str) -> ObservationRecord | None:
    """One observation."""
    wanted = select(observations).where(observations.c.experiment_id == experiment_id, observations.c.id == name)
    row = (await connection.execute(wanted)).mappings().first()
    return settings_rows.observation_from(row) if row else None

"""Observations: a page of them from the history, and what became of those that have an id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select, text

from service.domain.limits import MOST_VISITED_OBSERVATIONS
from service.storage import settings_rows, traffic_rows
from service.storage.tables import events, observations

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from service.domain import Event, ObservationRecord

# In the very words of the index over them, which SQLite would not recognise with a parameter in it.
_OBSERVATION = text("kind = 'observation'")


@dataclass(frozen=True, slots=True)
class ArrivalPage:
    """What was found; and, where the search stopped before the page was full, the sequence number to go on below."""

    events: list[Event]
    go_on_below: int | None


async def page_of_arrivals(
    connection: AsyncConnection, experiment_id: int, sequences: range, *, arm: int | None, limit: int
) -> ArrivalPage:
    """The events with which observations came, newest first, of these sequence numbers.

    No index has the arm, which would make every import dearer: those of one arm are looked for among a bounded number.
    """
    inside = [events.c.experiment_id == experiment_id, events.c.sequence >= sequences.start, events.c.sequence < sequences.stop]
    newest, unvisited = events.c.sequence.desc(), None
    if arm is not None:
        # The first that this page does not visit any more, if there are so many.
        last = select(events.c.sequence).where(_OBSERVATION, *inside).order_by(newest).offset(MOST_VISITED_OBSERVATIONS).limit(1)
        unvisited = (await connection.execute(last)).scalar_one_or_none()
        inside.append(events.c.arm == arm)
        if unvisited is not None:
            inside.append(events.c.sequence > unvisited)
    wanted = select(events).where(_OBSERVATION, *inside).order_by(newest).limit(limit)
    found = (await connection.execute(wanted)).mappings()
    shown = [traffic_rows.event_from(row) for row in found]
    return ArrivalPage(shown, unvisited + 1 if unvisited is not None and len(shown) < limit else None)


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


async def observations_by_id(
    connection: AsyncConnection, experiment_id: int, names: Collection[str]
) -> dict[str, ObservationRecord]:
    """Those of these ids that were told."""
    wanted = select(observations).where(observations.c.experiment_id == experiment_id, observations.c.id.in_(names))
    found = [settings_rows.observation_from(row) for row in (await connection.execute(wanted)).mappings()] if names else []
    return {named.id: named for named in found}

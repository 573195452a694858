"""Observations, one or a page of them, as they are now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.errors import ArmNotFound, ObservationNotFound
from service.storage.queries import stored_experiments, stored_observations

if TYPE_CHECKING:
    from service.application.context import Context
    from service.application.reads.time_window import TimeWindow
    from service.domain import AssignmentState, Event, ObservationRecord


@dataclass(frozen=True, slots=True)
class ObservationFilter:
    """Which observations; None means any."""

    arm: str | None
    window: TimeWindow


@dataclass(frozen=True, slots=True)
class Observation:
    """A reward that came without an ask; only one that came with an id can be changed."""

    id: str | None
    arm: str
    sequence: int
    at: int
    state: AssignmentState


async def observation(context: Context, key: str, name: str, known: ObservationRecord | None = None) -> Observation:
    """One observation; as it is known to be, if it is."""
    async with context.database.reading() as connection:
        progress, records = await stored_experiments.experiment_by_key(connection, key)
        e = progress.experiment.id
        found = known or await stored_observations.observation_by_id(connection, e, name)
        if found is None:
            raise ObservationNotFound(key, name)
        arrived = await stored_observations.arrival(connection, e, found.sequence)
    return _observation(arrived, found, [record.arm.key for record in records])


async def observations(
    context: Context, key: str, wanted: ObservationFilter, *, before: int | None, limit: int
) -> list[Observation]:
    """A page of observations, newest first."""
    async with context.database.reading() as connection:
        progress, records = await stored_experiments.experiment_by_key(connection, key)
        e, keys = progress.experiment.id, [record.arm.key for record in records]
        if wanted.arm is not None and wanted.arm not in keys:
            raise ArmNotFound(key, wanted.arm)
        arm = None if wanted.arm is None else keys.index(wanted.arm)
        first, end = await wanted.window.events(connection, progress, before)
        found = await stored_observations.page_of_arrivals(connection, e, first=first, before=end, arm=arm, limit=limit)
        named = await stored_observations.named_observations(connection, e, [event.sequence for event in found])
    return [_observation(event, named.get(event.sequence), keys) for event in found]


def _observation(arrived: Event, named: ObservationRecord | None, keys: list[str]) -> Observation:
    """As it came, or as its id has led it on."""
    if arrived.arm is None or arrived.after is None:
        raise ValueError(f"Event {arrived.sequence} is no observation.")
    state = arrived.after if named is None else named.state
    return Observation(named.id if named else None, keys[arrived.arm], arrived.sequence, arrived.at, state)

"""Observations, one or a page of them, as they are now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.errors import ArmNotFound, ObservationNotFound
from service.storage.queries import stored_experiments, stored_observations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.application.live.reader import Reader
    from service.application.reads.page_request import PageRequest
    from service.domain import AssignmentState, Event, ObservationRecord


@dataclass(frozen=True, slots=True)
class Observation:
    """A reward that came without an ask; only one that came with an id can be changed."""

    id: str | None
    arm: str
    sequence: int
    at: int
    state: AssignmentState


async def observation(reader: Reader, key: str, name: str, known: ObservationRecord | None = None) -> Observation:
    """One observation; as it is known to be, if it is."""
    async with reader.database.reading() as connection:
        e = await stored_experiments.experiment_id_of(connection, key)
        found = known or await stored_observations.observation_by_id(connection, e, name)
        if found is None:
            experiment = (await stored_experiments.progress_by_key(connection, key)).experiment
            raise ObservationNotFound(key, name, pruned=experiment.pruned_at is not None)
        arrived = await stored_observations.arrival(connection, e, found.sequence)
        keys = await stored_experiments.arm_keys(connection, e, [found.arm])
    return _observation(arrived, found, keys)


@dataclass(frozen=True, slots=True)
class ObservationPage:
    """What was found; and, where the search stopped before the page was full, the sequence number to go on below."""

    found: list[Observation]
    go_on_below: int | None


async def observations(reader: Reader, key: str, arm: str | None, page: PageRequest) -> ObservationPage:
    """A page of observations, newest first, of this arm or of any."""
    async with reader.database.reading() as connection:
        progress = await stored_experiments.progress_by_key(connection, key)
        e, position = progress.experiment.id, None
        if arm is not None:
            position = await stored_experiments.position_of_arm(connection, e, arm)
            if position is None:
                raise ArmNotFound(key, arm)
        sequences = range(*await page.window.events(connection, progress, page.before))
        found = await stored_observations.page_of_arrivals(connection, e, sequences, arm=position, limit=page.limit)
        named = await stored_observations.named_observations(connection, e, [event.sequence for event in found.events])
        keys = await stored_experiments.arm_keys(connection, e, {event.arm for event in found.events if event.arm is not None})
    shown = [_observation(event, named.get(event.sequence), keys) for event in found.events]
    return ObservationPage(shown, found.go_on_below)


def _observation(arrived: Event, named: ObservationRecord | None, keys: Mapping[int, str]) -> Observation:
    """As it came, or as its id has led it on."""
    if arrived.arm is None or arrived.after is None:
        raise ValueError(f"Event {arrived.sequence} is no observation.")
    state = arrived.after if named is None else named.state
    return Observation(named.id if named else None, keys[arrived.arm], arrived.sequence, arrived.at, state)

"""The traffic of an experiment for a row of the list: since when, how much a day, and the share of one arm over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.application.reads import course
from service.application.reads.forecast import rate_per_day
from service.storage.queries import stored_assignments

if TYPE_CHECKING:
    from service.application.live.reader import Reader


@dataclass(frozen=True, slots=True)
class Traffic:
    """As of one version."""

    version: int
    started_at: int | None
    """When the first visitor got an arm; of an experiment that was only told of others' choices, when it was created."""
    rate_per_day: float | None
    """Asks a day of late."""
    shares: list[float]
    """Of the arm, oldest first."""


async def traffic(reader: Reader, key: str, arm: int | None, points: int) -> Traffic:
    """The traffic up to now, of its course at most so many points. To be run in a lane."""
    ledger, chosen, *_ = await course.snapshots(reader, key, points)
    drawn = any(one.draws for one in ledger.statistics)
    async with reader.database.reading() as connection:
        first = await stored_assignments.assignment_by_draw(connection, ledger.experiment.id, 1)
    begun = ledger.experiment.created_at if drawn else None
    return Traffic(
        version=chosen[-1].sequence,
        started_at=first.created_at if first else begun,
        rate_per_day=await rate_per_day(reader, ledger) if drawn else None,
        shares=[] if arm is None else [snapshot.share(arm) for snapshot in chosen if any(snapshot.draws)],
    )

"""The course of an experiment: draws, means, shares, intervals and the recommendation over time, from its snapshots."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.application.ledger import Ledger
from service.application.recommending import Certainty, certainty, rank
from service.application.snapshots import snapshot_of
from service.inference.drift import Period
from service.storage import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.context import Context
    from service.domain import Arm, Experiment, Snapshot


@dataclass(frozen=True, slots=True)
class Point:
    """One moment of the course; the lists of the snapshot and of the certainty have an entry for each arm there was then."""

    snapshot: Snapshot
    best: Arm | None
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class Course:
    """The points, oldest first; the last one is now."""

    experiment: Experiment
    arms: list[Arm]
    points: list[Point]


async def course(context: Context, key: str, points: int) -> Course:
    """At most so many points, thinned evenly, of which the last is the present."""
    async with context.database.reading() as connection:
        progress, records = await reading.experiment_by_key(connection, key)
        stored = await reading.all_snapshots(connection, progress.experiment.id)
    ledger = Ledger(progress, records)
    chosen = [*_thinned([one for one in stored if one.sequence < progress.version], points - 1), snapshot_of(ledger)]
    # Many points of many arms are real work: not on the event loop.
    evaluated = await asyncio.to_thread(lambda: [_point(ledger.experiment, ledger.arms, one) for one in chosen])
    return Course(ledger.experiment, ledger.arms, evaluated)


def _thinned(snapshots: Sequence[Snapshot], most: int) -> list[Snapshot]:
    if len(snapshots) <= most:
        return list(snapshots)
    return [snapshots[int(place)] for place in np.linspace(0, len(snapshots) - 1, most).round()]


def _point(experiment: Experiment, arms: Sequence[Arm], snapshot: Snapshot) -> Point:
    """What the recommendation said then, had anyone looked."""
    there = arms[: len(snapshot.draws)]
    ranked = rank(experiment.reward, snapshot.active, snapshot.means, snapshot.observations)
    best = ranked[0] if ranked else None
    sample = Period(
        np.array(snapshot.matured, np.int64),
        np.array(snapshot.matured_means, np.float64),
        np.array(snapshot.matured_variances, np.float64),
    )
    sure = certainty(
        experiment.reward,
        sample,
        leader=best,
        active=np.array(snapshot.active),
        added=np.array([arm.added for arm in there]),
        confidence=experiment.confidence,
    )
    return Point(snapshot, None if best is None else there[best], sure)

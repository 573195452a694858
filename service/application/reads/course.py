"""The course of an experiment: draws, means, shares, intervals and the recommendation over time, from its snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.domain.limits import MOST_COURSE_ENTRIES
from service.engine.ledger import Ledger
from service.engine.snapshots import snapshot_of
from service.inference.certainty import Certainty, certainty, rank
from service.inference.drift import Period
from service.inference.verdict import verdict
from service.storage.queries import stored_experiments, stored_history

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from service.application.live.reader import Reader
    from service.domain import Arm, Experiment, Snapshot
    from service.domain.findings import Finding


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
    separated_at: int | None = None
    """When the separation that holds now was found."""

    def separated(self, point: Point) -> bool:
        """Was the leader separated then? A separation that holds now has been kept since it was found, and not before."""
        return point.certainty.separated if self.separated_at is None else point.snapshot.at >= self.separated_at


async def course(reader: Reader, key: str, points: int) -> Course:
    """At most so many points, thinned evenly, of which the last is the present. To be run in a lane."""
    ledger, chosen, kept = await snapshots(reader, key, points)
    experiment, arms = ledger.experiment, ledger.arms
    made = [point_of(experiment, arms, one) for one in chosen]
    found = verdict(experiment, arms, made[-1].certainty, _leader(experiment, chosen[-1]), kept)
    return Course(experiment, arms, made, found.separated_at)


async def snapshots(reader: Reader, key: str, points: int) -> tuple[Ledger, list[Snapshot], Collection[Finding]]:
    """The ledger of the present, snapshots of which it is the last, and the findings that hold."""
    async with reader.database.reading() as connection:
        progress, records = await stored_experiments.experiment_by_key(connection, key)
        most = max(2, min(points, MOST_COURSE_ENTRIES // len(records)))
        sequences = await stored_history.snapshot_sequences(connection, progress.experiment.id)
        earlier = _thinned([sequence for sequence in sequences if sequence < progress.version], most - 1)
        stored = await stored_history.snapshots_at(connection, progress.experiment.id, earlier)
        kept = await stored_experiments.findings_of(connection, progress.experiment.id)
    ledger = Ledger(progress, records)
    return ledger, [*stored, snapshot_of(ledger)], kept.values()


def _thinned(sequences: Sequence[int], most: int) -> list[int]:
    if len(sequences) <= most:
        return list(sequences)
    return [sequences[int(place)] for place in np.linspace(0, len(sequences) - 1, most).round()]


def _leader(experiment: Experiment, snapshot: Snapshot) -> int | None:
    ranked = rank(experiment.reward, snapshot.active, snapshot.means, snapshot.observations)
    return ranked[0] if ranked else None


def point_of(experiment: Experiment, arms: Sequence[Arm], snapshot: Snapshot) -> Point:
    """What the recommendation said then, had anyone looked."""
    there = arms[: len(snapshot.draws)]
    best = _leader(experiment, snapshot)
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

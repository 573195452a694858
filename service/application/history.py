"""The course of an experiment over time. Stand-in: counted from the whole history, without intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.application.recommending import leader_of, shown_mean
from service.domain import Arm, ArmStatistics
from service.storage import reading

if TYPE_CHECKING:
    from service.application.context import Context


@dataclass(frozen=True, slots=True)
class ArmPoint:
    """One arm at one time."""

    arm: Arm
    draws: int
    observations: int
    mean: float | None
    interval: tuple[float, float] | None
    share: float
    target_share: float


@dataclass(frozen=True, slots=True)
class Point:
    """The experiment at one time."""

    version: int
    at: int
    best: Arm | None
    draws: int
    observations: int
    error_estimate: float | None
    separated: bool
    arms: list[ArmPoint]


@dataclass(frozen=True, slots=True)
class Course:
    """Points in time, oldest first."""

    version: int
    points: list[Point]


async def course(context: Context, key: str, points: int) -> Course:
    """Up to so many points, thinned evenly."""
    async with context.database.reading() as connection:
        progress, records = await reading.experiment_by_key(connection, key)
        arms = [record.arm for record in records]
        statistics = [ArmStatistics() for _ in arms]
        every = max(1, progress.version // points)
        shown: list[Point] = []
        async for event in reading.history(connection, progress.experiment.id):
            if event.arm is not None and event.after is not None:
                one = statistics[event.arm]
                if event.before is not None:
                    one = one.counting(event.before, event.expiry_reward, in_epoch=True, times=-1)
                statistics[event.arm] = one.counting(event.after, event.expiry_reward, in_epoch=True)
            if event.sequence % every == 0 or event.sequence == progress.version:
                best = leader_of(progress.experiment.reward, arms, statistics)
                shown.append(_point(event.sequence, event.at, arms, statistics, best))
    return Course(progress.version, shown)


def _point(version: int, at: int, arms: list[Arm], statistics: list[ArmStatistics], best: int | None) -> Point:
    total = sum(one.draws for one in statistics)
    error = None
    if best is not None and all(one.observed.count > 1 for one in statistics):
        error = 0.0
        leading = statistics[best]
        for one in statistics:
            if one is not leading:
                spread = math.sqrt(
                    (leading.known.variance() or 0.01) / leading.observed.count
                    + (one.known.variance() or 0.01) / one.observed.count
                )
                gap = abs((leading.known.mean() or 0) - (one.known.mean() or 0))
                error += 0.5 * math.erfc(gap / spread / math.sqrt(2))
        error = min(error, 1 - 1 / len(arms))
    return Point(
        version,
        at,
        None if best is None else arms[best],
        total,
        sum(one.observed.count for one in statistics),
        error,
        separated=False,
        arms=[
            ArmPoint(
                arm,
                one.draws,
                one.observed.count,
                shown_mean(one),
                None,
                one.draws / total if total else 0.0,
                1 / len(arms),
            )
            for arm, one in zip(arms, statistics, strict=True)
        ],
    )

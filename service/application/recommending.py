"""The look: which arm is best now and how sure that is, from sufficient statistics alone, never from the history."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from service.application.ledger import Ledger
from service.inference.assumptions import assumptions
from service.inference.drift import Period, drifting
from service.inference.error_estimate import error_estimate
from service.inference.intervals import METHODS, confidence_intervals
from service.inference.levels import arm_levels
from service.inference.separation import separated
from service.inference.summary import Facts, summary
from service.storage import reading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.application.context import Context
    from service.domain import Arm, ArmStatistics, Progress, RewardSpec
    from service.exact import Moments
    from service.inference.samples import Bools, Floats, Ints


_EXACT_IN_DOUBLES = 2**53


class Standing(msgspec.Struct, frozen=True):
    """One arm, as the recommendation shows it."""

    arm: Arm
    draws: int
    pending: int
    expired: int
    observations: int
    mean: float | None
    variance: float | None
    interval: tuple[float, float] | None
    share: float
    target_share: float


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What is known, as of one version of the experiment."""

    progress: Progress
    best: Arm | None
    runner_up: Arm | None
    gap: float | None
    summary: str
    separated: bool
    method: str
    assumes: list[str]
    error_estimate: float | None
    drift: list[str]
    concluded_arm: Arm | None
    standings: list[Standing]


@dataclass(frozen=True, slots=True)
class Certainty:
    """What can be promised about arms with these matured rewards."""

    intervals: list[tuple[float, float] | None]
    separated: bool
    error_estimate: float | None


def rank(reward: RewardSpec, active: Sequence[bool], means: Sequence[float | None], observations: Sequence[int]) -> list[int]:
    """Positions of the active arms with a mean, best first; ties go to more observations, then to the lower position."""
    known = [position for position, mean in enumerate(means) if mean is not None and active[position]]
    theirs = _floats([means[position] for position in known])
    counts = np.array([observations[position] for position in known], np.int64)
    return [known[int(place)] for place in np.lexsort((-counts, -reward.sign * theirs))]  # stable: position comes last


def leader_of(reward: RewardSpec, arms: Sequence[Arm], statistics: Sequence[ArmStatistics]) -> int | None:
    """Position of the empirically best active arm."""
    means = [one.shown_mean() for one in statistics]
    ranked = rank(reward, [arm.active for arm in arms], means, [one.observed.count for one in statistics])
    return ranked[0] if ranked else None


def certainty(
    reward: RewardSpec, sample: Period, *, leader: int | None, active: Bools, added: Ints, confidence: float
) -> Certainty:
    """Intervals of all arms, and how sure the leader is, at one confidence for all looks together."""
    alpha = 1.0 - confidence
    lower, upper = confidence_intervals(reward, *sample, arm_levels(added, alpha))
    return Certainty(
        intervals=[
            (low, high) if isfinite(low) and isfinite(high) else None
            for low, high in zip(lower.tolist(), upper.tolist(), strict=True)
        ],
        separated=separated(reward, *sample, leader=leader, active=active, added=added, alpha=alpha),
        error_estimate=None if leader is None else error_estimate(reward, *sample, leader=leader, active=active),
    )


def certainty_of(ledger: Ledger, leader: int | None) -> Certainty:
    """How sure a ledger's leader is."""
    return certainty(
        ledger.experiment.reward,
        period_of([one.matured for one in ledger.statistics]),
        leader=leader,
        active=np.array([arm.active for arm in ledger.arms]),
        added=np.array([arm.added for arm in ledger.arms]),
        confidence=ledger.experiment.confidence,
    )


def period_of(moments: Sequence[Moments], less: Sequence[Moments] | None = None) -> Period:
    """Exact moments (less others, arm by arm) as the arrays that inference reads."""
    whole, taken = _whole(moments), None if less is None else _whole(less)
    if whole is not None and (less is None or taken is not None):
        return _period_of_whole(whole if taken is None else whole - taken)
    rest = moments if less is None else [one - other for one, other in zip(moments, less, strict=True)]
    return Period(
        np.array([one.count for one in rest], np.int64),
        _floats([one.mean() for one in rest]),
        _floats([one.variance() for one in rest]),
    )


def _whole(moments: Sequence[Moments]) -> Ints | None:
    """Counts, sums and sums of squares in three rows, if they are small whole numbers, as with binary rewards."""
    if any(one.total.shift or one.squares.shift for one in moments):
        return None
    rows = [
        [one.count for one in moments],
        [one.total.numerator for one in moments],
        [one.squares.numerator for one in moments],
    ]
    # Below this every product that follows is exact in a double, so the results are those of the exact integers.
    small = max(rows[0], default=0) * max(max(rows[2], default=0), 1) < _EXACT_IN_DOUBLES
    return np.array(rows, np.int64) if small else None


def _period_of_whole(rows: Ints) -> Period:
    counts, totals, squares = rows
    with np.errstate(divide="ignore", invalid="ignore"):
        means = totals / counts
        variances = (counts * squares - totals * totals) / (counts * (counts - 1))
    return Period(counts, np.where(counts > 0, means, np.nan), np.where(counts > 1, variances, np.nan))


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _drifting(ledger: Ledger) -> list[Arm]:
    """Arms whose recent rewards do not look like their earlier ones."""
    levels = arm_levels(np.array([arm.added for arm in ledger.arms]), 1.0 - ledger.experiment.confidence)
    # Arms with nothing to compare yet, or nothing since, cannot drift: most arms of a young experiment.
    compared = [place for place, one in enumerate(ledger.statistics) if one.matured.count > one.earlier.count > 0]
    if not compared:
        return []
    before = [ledger.statistics[place].earlier for place in compared]
    earlier = period_of(before)
    recent = period_of([ledger.statistics[place].matured for place in compared], less=before)
    moved = drifting(ledger.experiment.reward, earlier, recent, levels[compared])
    return [ledger.arms[compared[int(place)]] for place in np.flatnonzero(moved)]


def recommend(ledger: Ledger) -> Recommendation:
    """The recommendation for a ledger as it stands."""
    experiment, arms, statistics = ledger.experiment, ledger.arms, ledger.statistics
    known = period_of([one.known for one in statistics])
    observations = [one.observed.count for one in statistics]
    means = [mean if told else None for mean, told in zip(known.means.tolist(), observations, strict=True)]
    variances = [
        variance if told and count > 1 else None
        for variance, told, count in zip(known.variances.tolist(), observations, known.counts.tolist(), strict=True)
    ]
    ranked = rank(experiment.reward, [arm.active for arm in arms], means, observations)
    best = ranked[0] if ranked else None
    runner_up = ranked[1] if len(ranked) > 1 else None
    gap = None if best is None or runner_up is None else abs((means[best] or 0.0) - (means[runner_up] or 0.0))
    sure = certainty_of(ledger, best)
    drift = _drifting(ledger)
    targets = np.zeros(len(arms))
    targets[ledger.positions] = ledger.targets()
    shares = targets.tolist()
    draws = [one.draws for one in statistics]
    total = sum(draws)
    concluded = None if experiment.concluded_arm is None else arms[experiment.concluded_arm]
    numeric_expiry = experiment.expiry is not None and experiment.expiry.reward is not None
    expired = sum(one.expired for one in statistics)
    facts = Facts(
        leader=None if best is None else arms[best].name,
        runner_up=None if runner_up is None else arms[runner_up].name,
        gap=gap,
        kind=experiment.reward.kind,
        goal=experiment.reward.goal,
        active_arms=len(ledger.positions),
        observations=sum(observations),
        pending=sum(one.pending for one in statistics),
        confidence=experiment.confidence,
        separated=sure.separated,
        error_estimate=sure.error_estimate,
        concluded=None if concluded is None else concluded.name,
        floors=tuple(arm.name for arm in arms if arm.active and arm.min_share > 0),
        disabled=tuple(arm.name for arm in arms if not arm.active),
        dropped=0 if numeric_expiry else expired,
        imputed=expired if numeric_expiry else 0,
        drift=tuple(arm.name for arm in drift),
    )
    return Recommendation(
        progress=ledger.progress,
        best=None if best is None else arms[best],
        runner_up=None if runner_up is None else arms[runner_up],
        gap=gap,
        summary=summary(facts),
        separated=sure.separated,
        method=METHODS[experiment.reward.kind],
        assumes=assumptions(
            experiment.reward,
            expiry=experiment.expiry,
            observed=ledger.progress.observed,
            floors=bool(facts.floors),
            drift=bool(drift),
        ),
        error_estimate=sure.error_estimate,
        drift=[arm.key for arm in drift],
        concluded_arm=concluded,
        standings=[
            Standing(
                arm=arm,
                draws=draws[arm.position],
                pending=one.pending,
                expired=one.expired,
                observations=one.observed.count,
                mean=means[arm.position],
                variance=variances[arm.position],
                interval=sure.intervals[arm.position],
                share=draws[arm.position] / total if total else 0.0,
                target_share=shares[arm.position],
            )
            for arm, one in zip(arms, statistics, strict=True)
        ],
    )


async def current(context: Context, key: str) -> Recommendation:
    """The recommendation as of what is stored now."""
    async with context.database.reading() as connection:
        progress, records = await reading.experiment_by_key(connection, key)
    return recommend(Ledger(progress, records))

"""How sure an experiment's leader is: its rank, the intervals of all arms and whether it is separated, from exact moments."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, isnan
from typing import TYPE_CHECKING

import numpy as np

from service.inference.drift import Period
from service.inference.error_estimate import error_estimate
from service.inference.intervals import confidence_intervals
from service.inference.levels import arm_levels
from service.inference.lift import Lift, lifts
from service.inference.separation import all_shown, rival_evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.domain import Arm, ArmStatistics, Experiment, RewardSpec
    from service.exact import Moments
    from service.inference.samples import Bools, Floats, Ints


_EXACT_IN_DOUBLES = 2**53


@dataclass(frozen=True, slots=True)
class Certainty:
    """What can be promised about arms with these matured rewards."""

    intervals: list[tuple[float, float] | None]
    evidence: list[float | None]
    """Of each rival, against the leader: the part of what separation needs, 0 to 1; None for the leader and disabled arms."""
    separated: bool
    decided: bool
    """Separated, or no rival can be better than the leader by more than what is worthwhile."""
    error_estimate: float | None
    counts: list[int]
    """How many matured rewards each arm has."""
    lifts: list[Lift | None]
    """Of each arm over the control; None for the control, where there is none, and without rewards."""


def rank(reward: RewardSpec, active: Sequence[bool], means: Sequence[float | None], observations: Sequence[int]) -> list[int]:
    """Positions of the active arms with a reward or an expiry, best first; ties go to more observations, then to position.

    An arm of which a numeric expiry speaks alone has a mean, but nobody has told anything of it yet: it is not recommended.
    """
    known = [position for position, told in enumerate(observations) if told and active[position]]
    theirs = _floats([means[position] for position in known])
    counts = np.array([observations[position] for position in known], np.int64)
    return [known[int(place)] for place in np.lexsort((-counts, -reward.sign * theirs))]  # stable: position comes last


def leader_of(reward: RewardSpec, arms: Sequence[Arm], statistics: Sequence[ArmStatistics]) -> int | None:
    """Position of the empirically best active arm."""
    means = [one.known_mean() for one in statistics]
    ranked = rank(reward, [arm.active for arm in arms], means, [one.observed.count for one in statistics])
    return ranked[0] if ranked else None


def certainty(
    reward: RewardSpec,
    sample: Period,
    *,
    leader: int | None,
    active: Bools,
    added: Ints,
    confidence: float,
    worthwhile: float | None = None,
    control: int | None = None,
) -> Certainty:
    """Intervals of all arms, and how sure the leader is, at one confidence for all looks together."""
    alpha = 1.0 - confidence
    lower, upper = confidence_intervals(reward, *sample, arm_levels(added, alpha))
    parts = rival_evidence(reward, *sample, leader=leader, active=active, added=added, alpha=alpha)
    separated = decided = all_shown(parts)
    if worthwhile is not None and not decided:
        decided = all_shown(
            rival_evidence(reward, *sample, leader=leader, active=active, added=added, alpha=alpha, margin=worthwhile)
        )
    return Certainty(
        intervals=[
            (low, high) if isfinite(low) and isfinite(high) else None
            for low, high in zip(lower.tolist(), upper.tolist(), strict=True)
        ],
        evidence=[None if isnan(part) else part for part in parts.tolist()],
        separated=separated,
        decided=decided,
        error_estimate=None if leader is None else error_estimate(reward, *sample, leader=leader, active=active),
        counts=sample.counts.tolist(),
        lifts=[None] * len(added) if control is None else lifts(reward, *sample, control=control, added=added, alpha=alpha),
    )


def certainty_of(
    experiment: Experiment, arms: Sequence[Arm], statistics: Sequence[ArmStatistics], leader: int | None
) -> Certainty:
    """How sure the leader of an experiment is, from its matured rewards."""
    return certainty(
        experiment.reward,
        period_of([one.matured for one in statistics]),
        leader=leader,
        active=np.array([arm.active for arm in arms]),
        added=np.array([arm.added for arm in arms]),
        confidence=experiment.confidence,
        worthwhile=experiment.worthwhile,
        control=experiment.control,
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

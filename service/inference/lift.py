"""Lift: each arm against the control, as a difference and as a ratio of means, with intervals that hold at every look.

With probability at least 1 - alpha all intervals of all arms hold, differences and ratios together, at all looks, under any
policy. Arm i has its own share a_i of alpha (`levels.arm_levels`), the control c has a_c, and these add up to at most alpha.

The difference. E(h, l) of the pair tests is evidence against the pair of means "h for the one arm, l for the other". At the true
pair it is one nonnegative supermartingale that starts at 1 (for real rewards: a product with the goal for independent maxima), so
it ever attains the goal of level a_i/2 with probability at most a_i/2. Unless that happens the true pair lies, at every look, in

    R = { (h, l): E(h, l) is below its goal },

so the difference of the true means is never below the least h - l in R: that is the lower end. As E falls in h and rises in l it
is the d up to which "mean_i <= mean_c + d" is rejected, the pair test with the margin -d. The upper end is the lower one of the
control against the arm, with the other a_i/2.

The ratio is another function of the same pair: unless the two events happen it is in the range of h / l over the same two
regions, so an interval for it costs nothing more. It needs to know that the control's mean is not zero, and on which side it is.
That is what the control's own interval says, which fails with probability at most a_c: the share that no difference has spent. It
also bounds the ratio by 1 + difference / control's mean, which is the better bound where few rewards leave the control's mean
near zero in R; both hold, and the closer one is given.

Many arms. An arm that was among more than 100 first ones, or was added after the 100th, has the cheaper difference of the two
arms' own intervals: these hold with a_i and a_c, too. It depends on nothing that changes, so that no arm ever changes its method.

The control. All this is for a control that is chosen without regard to the rewards. Arm i against j at a_i and arm j against i at
a_j are the same interval among first arms, so whoever picks the control out of K first arms after seeing their rewards has chosen
among K (K - 1)/2 intervals, with an error of at most 0.45 (K - 1) alpha in place of alpha: the promise holds with up to three
arms.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from service.inference import bounded
from service.inference.intervals import confidence_intervals, possible_means
from service.inference.levels import arm_levels
from service.inference.margins import distances
from service.inference.pairs import independent_product_goal
from service.inference.samples import Bools, Floats, Ints, Samples

if TYPE_CHECKING:
    from service.domain import RewardSpec

# An arm beyond has the cheaper intervals.
MANY_ARMS = 100
# More than the arithmetic outside the search for the ends can lose.
_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True)
class Lift:
    """One arm against the control, in the direction of the rewards: where smaller is better, a good lift is negative."""

    difference: float
    difference_interval: tuple[float, float] | None
    """None while an end is infinite."""
    ratio: float | None
    """None where the control's mean is zero."""
    ratio_interval: tuple[float, float] | None
    """None while the control's interval has zero in it."""


class Range(NamedTuple):
    """What each of some quantities can be."""

    lower: Floats
    upper: Floats

    def signs(self) -> Floats:
        """On which side of zero they are; 0 where that is not known."""
        return np.where(self.lower > 0.0, 1.0, np.where(self.upper < 0.0, -1.0, 0.0))

    def over(self, divisor: Range) -> Range:
        """The quotients by all that the divisors can be; anything where zero is among that."""
        known = divisor.signs() != 0.0
        ends = [np.where(known, end, 1.0) for end in divisor]
        corners = [end / number for end in self for number in ends]
        lower, upper = np.minimum.reduce(corners), np.maximum.reduce(corners)
        return Range(np.where(known, lower, -np.inf), np.where(known, upper, np.inf))

    def within(self, other: Range) -> Range:
        """What both allow."""
        return Range(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def around(self, observed: Floats) -> list[tuple[float, float] | None]:
        """With what was observed, as intervals; None where an end is infinite."""
        lower, upper = np.minimum(self.lower, observed), np.maximum(self.upper, observed)
        ends = zip(lower.tolist(), upper.tolist(), strict=True)
        return [(low, high) if isfinite(low) and isfinite(high) else None for low, high in ends]


def lifts(
    reward: RewardSpec, counts: Ints, means: Floats, variances: Floats, *, control: int, added: Ints, alpha: float
) -> list[Lift | None]:
    """One entry an arm: None for the control, for arms without matured rewards, and for all while the control has none."""
    answer: list[Lift | None] = [None] * len(counts)
    arms = np.flatnonzero(np.asarray(counts) > 0)
    arms = arms[arms != control]
    if counts[control] == 0 or len(arms) == 0:
        return answer
    samples, levels, cheap = Samples.of(counts, means, variances), arm_levels(added, alpha), _cheap(added)[arms]
    own = np.append(arms[cheap], control)
    lower, upper = confidence_intervals(reward, counts[own], means[own], variances[own], levels[own])
    base = Range(np.full(len(arms), lower[-1]), np.full(len(arms), upper[-1]))
    mine, theirs = samples.pick(arms), samples.pick(np.full(len(arms), control))
    simple = _cheap_ranges(Range(lower[:-1], upper[:-1]), Range(base.lower[cheap], base.upper[cheap]))
    differences, ratios = simple if cheap.all() else tested_ranges(reward, mine, theirs, levels[arms], base)
    if cheap.any() and not cheap.all():
        for tested, cheaper in zip((differences, ratios), simple, strict=True):
            tested.lower[cheap], tested.upper[cheap] = cheaper
    observed = mine.means - theirs.means
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotients = mine.means / theirs.means
    for arm, difference, around, quotient, about in zip(
        arms.tolist(), observed.tolist(), differences.around(observed), quotients.tolist(), ratios.around(quotients), strict=True
    ):
        answer[arm] = Lift(difference, around, quotient if isfinite(quotient) else None, about)
    return answer


def _cheap(added: Ints) -> Bools:
    """The arms that come after many others."""
    first = np.asarray(added) == 0
    return np.where(first, np.count_nonzero(first) > MANY_ARMS, np.asarray(added) > MANY_ARMS)


def _cheap_ranges(arms: Range, control: Range) -> tuple[Range, Range]:
    """Differences and ratios of what the arms' own intervals leave."""
    return Range(arms.lower - control.upper, arms.upper - control.lower), arms.over(control)


def tested_ranges(reward: RewardSpec, arm: Samples, control: Samples, levels: Floats, base: Range) -> tuple[Range, Range]:
    """Differences and ratios that the pair tests leave of pairs of an arm and a control; `base` is the control's own interval."""
    kind, goals = reward.kind, np.log(2.0 / levels)
    if kind == "real":
        goals = independent_product_goal(goals)
    signs = base.signs()
    # Ratios of arms on the other side of zero are left to the difference.
    rows = np.flatnonzero((signs * arm.means >= 0.0) & (signs != 0.0))
    sign, as_it_is = signs[rows], np.ones(len(goals))
    mine, theirs = _unit(reward, arm, as_it_is), _unit(reward, control, as_it_is)
    signed_mine, signed_theirs = _unit(reward, arm.pick(rows), sign), _unit(reward, control.pick(rows), sign)
    found = distances(
        kind,
        _together(mine, theirs, signed_mine, signed_theirs),
        _together(theirs, mine, signed_theirs, signed_mine),
        np.concatenate([goals, goals, goals[rows], goals[rows]]),
        np.concatenate([np.full(2 * len(goals), np.nan), np.tile(_zero(reward, sign), 2)]),
    )
    below, above, ratio_below, ratio_above = np.split(found, np.cumsum([len(goals), len(goals), len(rows)]))
    width, (lowest, highest) = bounded.width_of(reward) if kind == "bounded" else 1.0, possible_means(reward)
    observed, trifle = arm.means - control.means, _ROUNDING * (np.abs(arm.means) + np.abs(control.means))
    difference = Range(
        np.maximum(observed - width * below - trifle, lowest - highest),
        np.minimum(observed + width * above + trifle, highest - lowest),
    )
    quotient = difference.over(base)
    every = Range(np.full(len(goals), lowest), np.full(len(goals), highest))
    ratio = Range(1.0 + quotient.lower, 1.0 + quotient.upper).within(every.over(base))
    with np.errstate(divide="ignore"):
        least = 1.0 / (control.means[rows] / arm.means[rows] + ratio_below) * (1.0 - _ROUNDING)
    most = (arm.means[rows] / control.means[rows] + ratio_above) * (1.0 + _ROUNDING)
    ratio.lower[rows] = np.maximum(ratio.lower[rows], least)
    ratio.upper[rows] = np.minimum(ratio.upper[rows], most)
    return difference, ratio


def _unit(reward: RewardSpec, samples: Samples, sign: Floats) -> Samples:
    """On the scale of the tests, with the other sign where that is asked for."""
    if reward.kind == "bounded":
        samples = bounded.to_unit(reward, samples)[0]
        mirror = bounded.mirrored(samples)
        return Samples(samples.counts, np.where(sign < 0.0, mirror.means, samples.means), samples.squares)
    return Samples(samples.counts, sign * samples.means, samples.squares)


def _zero(reward: RewardSpec, sign: Floats) -> Floats:
    """Where a mean of zero is on that scale."""
    if reward.kind != "bounded":
        return np.zeros(len(sign))
    zero = -float(reward.minimum or 0.0) / bounded.width_of(reward)
    return np.where(sign < 0.0, 1.0 - zero, zero)


def _together(*parts: Samples) -> Samples:
    return Samples(*(np.concatenate(each) for each in zip(*parts, strict=True)))

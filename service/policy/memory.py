"""What to remember of the targets, so that a reward to one arm costs K operations and not K^2.

The sums S_i = sum_j (d_i / (d_i + d_j))^2 depend on the gaps to the best arm alone. When the gap of one arm m moves from x to
x', every other sum changes by one summand,

    S_i += (d_i / (d_i + x'))^2 - (d_i / (d_i + x))^2,

and S_m is summed anew. An arm without a reward has an infinite gap, which contributes nothing; an arm that joins or leaves a
tie at the top moves to or from the gap 0. When the best mean itself moves all gaps do, and all sums are computed afresh.

Rounding. A step adds at most 2 units in the last place of the largest value that the sum had since it was computed; the errors
of the summands cancel when they are taken away again. So the sums are computed afresh after REFRESH_AFTER steps, and
when one has fallen to less than 1/LARGEST_FALL of its largest value. docs/decisions/0005-fast-weights.md adds this up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.domain.limits import LARGEST_SHARPNESS  # it multiplies the error: the bound covers as much
from service.policy.base import DIRECT_UP_TO, Bools, Floats, Ints
from service.policy.interpolation import interpolated_sums
from service.policy.weights import (
    PAIR_WITH_ITSELF,
    WeightRule,
    gaps_to_best,
    ratio_sums,
    targets_around_silence,
    targets_from_means,
    weights_from_costs,
)

REFRESH_AFTER = 1024
LARGEST_FALL = 4.0
# A step costs about as much as two rows of pairs, a fresh start 24 rows for each cell of gaps in use.
MOST_STEPS_AT_ONCE = 16


@dataclass(frozen=True, slots=True, eq=False)
class TargetMemory:
    """The gaps that the targets were last computed from, with the sums that belong to them. Its arrays are never changed."""

    gaps: Floats
    """To the best mean, 0 for the best arms; infinite for an arm without a reward."""
    sums: Floats
    """S of every arm with a positive and finite gap; the other entries mean nothing."""
    peaks: Floats
    """The largest value of each sum since it was computed afresh."""
    steps: int
    """How many moves were added to the sums since."""

    def after(self, gaps: Floats) -> TargetMemory:
        """The memory that belongs to these gaps: brought up to date if few of them moved, else made afresh."""
        if len(gaps) != len(self.gaps):
            return afresh(gaps)
        moved = np.flatnonzero(gaps != self.gaps)
        if len(moved) == 0:
            return self
        if len(moved) > MOST_STEPS_AT_ONCE or self.steps + len(moved) > REFRESH_AFTER:
            return afresh(gaps)
        stepped = self._step(gaps, moved)
        fallen = stepped.sums * LARGEST_FALL < stepped.peaks
        return afresh(gaps) if fallen.any() else stepped

    def _step(self, gaps: Floats, moved: Ints) -> TargetMemory:
        sums = self.sums
        with np.errstate(invalid="ignore"):  # entries that mean nothing: 0/0 of tied best arms, inf/inf of silent ones
            for index in moved:
                sums = sums + (_summands(gaps, gaps[index]) - _summands(gaps, self.gaps[index]))
        sums[moved] = np.nan
        challengers = moved[_challenging(gaps[moved])]
        sums[challengers] = ratio_sums(gaps[challengers], gaps)
        peaks = np.maximum(self.peaks, sums)
        peaks[moved] = sums[moved]
        return TargetMemory(gaps, sums, peaks, self.steps + len(moved))

    def weights(self, rule: WeightRule) -> Floats:
        """The H1 weights of the arms with a reward."""
        costs = np.where(_challenging(self.gaps), self.sums - PAIR_WITH_ITSELF, np.inf)
        return weights_from_costs(costs[self.gaps < np.inf], rule)


def afresh(gaps: Floats) -> TargetMemory:
    """All sums from the gaps alone."""
    sums = interpolated_sums(gaps)
    return TargetMemory(gaps, sums, sums, 0)


def remembered_targets(means: Floats, rule: WeightRule, memory: TargetMemory | None) -> tuple[Floats, TargetMemory | None]:
    """The targets of `targets_from_means`, within FAST_TARGET_ERROR, and what to remember of them."""
    if len(means) <= DIRECT_UP_TO or rule.sharpness > LARGEST_SHARPNESS:
        return targets_from_means(means, rule), None
    known = ~np.isnan(means)
    if known.all():
        gaps = gaps_to_best(means)
        memory = afresh(gaps) if memory is None else memory.after(gaps)
        return memory.weights(rule), memory
    if not known.any():
        return targets_from_means(means, rule), None
    gaps = np.full(len(means), np.inf)
    gaps[known] = gaps_to_best(means[known])
    memory = afresh(gaps) if memory is None else memory.after(gaps)
    return targets_around_silence(memory.weights(rule), known), memory


def _challenging(gaps: Floats) -> Bools:
    return (gaps > 0.0) & (gaps < np.inf)


def _summands(gaps: Floats, other: np.float64) -> Floats:
    """(d_i / (d_i + x))^2 for every arm."""
    ratios = gaps + other
    np.divide(gaps, ratios, out=ratios)
    return np.multiply(ratios, ratios, out=ratios)

"""Is one mean above another: pairwise evidence from two independent samples, many pairs at once.

- Binary and bounded rewards: `binary_pairs` and `bounded_pairs`, a supermartingale E(m) for every pair of means with mean_high
  <= m <= mean_low, whatever the policy does. Under the null hypothesis mean_high <= mean_low there is such an m, so the least
  of E over all m reaches 1/a with probability at most a (Ville; universal inference: Wasserman, Ramdas, Balakrishnan 2020).
  With a margin d the hypothesis is mean_high + d <= mean_low, and the same m + d stands for the low arm.
- Real rewards: let T_h(m) and T_l(m) be the t-mixtures of the two samples. They are martingales only in what the ratios
  reveal, which a policy does not keep to. But the largest values that the two processes ever attain are independent, and
  each exceeds x with probability at most 1/x, so (Fisher's combination) P( T_h(mean_h) T_l(mean_l) >= z at some time ) is at
  most (1 + log z)/z, and the null is rejected when even the least product over m_h <= m_l is at least z. The evidence falls
  towards each sample's own mean, so the least product lies at a common m between the two means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import lambertw

from service.inference import binary_pairs, bounded, bounded_pairs, real
from service.inference.cells import least_over_means
from service.inference.lines import least_by_step
from service.inference.samples import Bools, Floats, Ints, Samples

if TYPE_CHECKING:
    from service.domain import RewardSpec

# Few enough for the processor's cache, and enough that the calls are little of it (in blocks of 1,024 a pair costs a third more).
_PAIRS_AT_ONCE = 2048
_ALMOST = float(np.nextafter(1.0, 0.0))
# Keep quotients and squares finite.
_SMALLEST, _LARGEST = 1e-150, 1e100


def exceeds(reward: RewardSpec, high: Samples, low: Samples, levels: Floats) -> Bools:
    """For each pair: is it shown, at this level, that the mean of `high` is above the mean of `low`?"""
    shown: Bools = (high.counts > 0) & (low.counts > 0) & (high.means > low.means)
    rows = np.flatnonzero(shown)
    if len(rows):
        shown[rows] = _ceiling(reward, high.pick(rows), low.pick(rows)) >= -np.log(levels[rows])
        rows = np.flatnonzero(shown)
        shown[rows] = evidence(reward, high.pick(rows), low.pick(rows), levels[rows]) >= 1.0
    return shown


def evidence(reward: RewardSpec, high: Samples, low: Samples, levels: Floats, margin: float = 0.0) -> Floats:
    """For each pair the log evidence for "the mean of `high`, with the margin, is above that of `low`".

    As a part of what this level asks for, from 0 to 1; 1 if and only if it is shown. The margin is below the range of the
    rewards.
    """
    parts = np.zeros(len(levels))
    possible = np.flatnonzero((high.counts > 0) & (low.counts > 0) & (high.means + margin > low.means))
    for start in range(0, len(possible), _PAIRS_AT_ONCE):
        some = slice(start, start + _PAIRS_AT_ONCE)
        rows = some if len(possible) == len(levels) else possible[some]  # nothing is copied where all are possible
        goals = -np.log(levels[rows])
        if reward.kind == "real":
            goals = independent_product_goal(goals)
        least = _least_log_evidence(reward, high.pick(rows), low.pick(rows), goals, margin)
        parts[rows] = np.where(least >= goals, 1.0, np.minimum(np.maximum(least / goals, 0.0), _ALMOST))
    return parts


def _least_log_evidence(reward: RewardSpec, high: Samples, low: Samples, goals: Floats, margin: float) -> Floats:
    """Of each pair, over all common means; the goal or more only where that is certain."""
    if reward.kind == "binary":
        return binary_pairs.least_log_evidence(high, low, goals, margin)
    if reward.kind == "bounded":
        high, low = bounded.to_unit(reward, high)[0], bounded.to_unit(reward, low)[0]
        margin /= bounded.width_of(reward)
        return bounded_pairs.least_log_evidence(high, low, _between(high, low.shifted(-margin)), goals, margin)
    return _real_least(high, low.shifted(-margin), goals)


def _ceiling(reward: RewardSpec, high: Samples, low: Samples) -> Floats:
    """What the least log evidence cannot exceed, at little cost: most pairs need no closer look."""
    if reward.kind == "binary":
        return binary_pairs.log_evidence_ceiling(high, low)
    if reward.kind == "bounded":
        high, low = bounded.to_unit(reward, high)[0], bounded.to_unit(reward, low)[0]
        return bounded_pairs.log_evidence_ceiling(high, low, _between(high, low))
    return real_ceiling(high, low)


def real_ceiling(high: Samples, low: Samples) -> Floats:
    """For real rewards: gap^2 / (2 (Q_h/n_h^2 + Q_l/n_l^2)).

    The log evidence of a sample at distance D is at most n^2 D^2 / (2 Q); add the two up at their `_between`.
    """
    high_spread, low_spread = (np.sqrt(each.squares) / np.maximum(each.counts, 1.0) for each in (high, low))
    distance = np.maximum(high.means - low.means, 0.0) / np.maximum(np.hypot(high_spread, low_spread), _SMALLEST)
    return 0.5 * np.minimum(distance, _LARGEST) ** 2


def independent_product_goal(goals: Floats) -> Floats:
    """The log z with (1 + log z)/z = exp(-goal), that is -1 - W(-exp(-1 - goal)) on the lower branch of Lambert's W."""
    if len(goals) > 1 and (goals == goals[0]).all():  # as of first arms alone
        return np.full(len(goals), independent_product_goal(goals[:1])[0])
    goal: Floats = -1.0 - np.real(lambertw(-np.exp(-1.0 - goals), k=-1))
    return goal


def _real_least(high: Samples, low: Samples, goals: Floats) -> Floats:
    """Of the product of the two t-mixtures.

    What log T gains over its least is concave in the square of the distance. So up to the distance of the two means it is at
    least a parabola, f D^2 for one arm and g (1 - D)^2 for the other with f and g what they gain at that distance, taken as
    the unit; and their sum is nowhere below f g / (f + g). That settles nearly all rivals that are shown to be behind.
    """
    above, below = real.log_gain(high, low.means), real.log_gain(low, high.means)
    with np.errstate(invalid="ignore"):  # without spread there is no evidence
        baselines = real.least_log_evidence(high) + real.least_log_evidence(low)
        least: Floats = above * (below / (above + below)) + baselines
    rows = np.flatnonzero(~(least >= goals))
    if len(rows):
        high, low = high.pick(rows), low.pick(rows)
        least[rows] = _real_least_by_cells(high, low, _between(high, low), baselines[rows], goals[rows])
    return least


def _real_least_by_cells(high: Samples, low: Samples, middle: Floats, baselines: Floats, goals: Floats) -> Floats:
    """A look at the middle settles most that is not shown, parabolas between five points nearly all that is."""
    left, right = low.means, high.means
    # With few rewards the evidence of a sample hardly grows with the distance, and the product is least at an end.
    tried = np.array([left, 0.5 * (left + middle), middle, 0.5 * (middle + right), right])
    falling, rising = real.log_gain(high, tried), real.log_gain(low, tried)
    falling += baselines
    least: Floats = (falling + rising).min(axis=0)
    rows = np.flatnonzero(least >= goals)
    if len(rows) == 0:
        return least
    high, low, baselines = high.pick(rows), low.pick(rows), baselines[rows]
    bends = real.largest_bend(high) + real.largest_bend(low)
    points = tried.T[rows]
    least[rows] = least_by_step(points, falling.T[rows], rising.T[rows], bends).min(axis=1)
    still = np.flatnonzero(least[rows] < goals[rows])
    if len(still) == 0:
        return least

    def sides(some: Ints, means: Floats) -> tuple[Floats, Floats]:
        columns = np.ascontiguousarray(means.T)  # pairs last, so that long rows are worked on
        return (real.log_gain(high.pick(some), columns) + baselines[some]).T, real.log_gain(low.pick(some), columns).T

    def at(some: Ints, means: Floats) -> Floats:
        falling, rising = sides(still[some], means)
        return falling + rising

    def over(some: Ints, edges: Floats) -> tuple[Floats, Floats]:
        falling, rising = sides(still[some], edges)
        return falling + rising, least_by_step(edges, falling, rising, bends[still[some]])

    rows, points = rows[still], points[still]
    least[rows] = least_over_means(at, over, left=left[rows], right=right[rows], tried=points, goals=goals[rows])
    return least


def _between(high: Samples, low: Samples) -> Floats:
    """The two means weighted by their precision: about where the product of the evidence is least."""
    high_spread, low_spread = (np.sqrt(each.squares) / each.counts + _SMALLEST for each in (high, low))
    weight = 1.0 / (1.0 + np.minimum(high_spread / low_spread, _LARGEST) ** 2)
    return low.means + (high.means - low.means) * weight

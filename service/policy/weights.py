"""The H1 weights [paper, eq_weight_hone]: how much traffic each arm deserves, given the empirical means.

With gaps d_i = max_j Q_j - Q_i,

    D_i = d_i^2 * sum_{j != i} 1 / (d_j + d_i)^2    for an arm that is not empirically best,
    D_b = min of those D_i                         for every empirically best arm,
    w^(s)_i proportional to D_i^(-s)               (w^(1) are the paper's weights),
    w = guard * w^(1) + (1 - guard) * w^(sharpness).

At a tie of m >= 2 best means the paper's D_b jumps. With `ties: limit` the tied arms have the limit of the formula when one of
them leads and the others approach it together: D_b = 1 + (m - 2)/4. What of the paper's guarantee a rule keeps is proved in
docs/weights.md.

D_i is computed as sum_{j != i} (d_i / (d_i + d_j))^2, the same number written as a sum of ratios: every ratio lies in [0, 1]
and the one against a best arm is 1, so 1 <= D_i <= K - 1 whatever the scale of the means. Nothing overflows, nothing is
divided by zero, and multiplying the means by a power of two changes no bit.

This is the direct formula, K^2 pairs: the reference for `interpolation` and `memory`, the faster ways for many arms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.policy.base import Bools, Floats, mix_floors

if TYPE_CHECKING:
    from service.domain import Ties

# Pairs are formed block by block: half a megabyte stays in a core's own cache, which is twice as fast as one large block.
_PAIRS_AT_ONCE = 1 << 16
# The pair of an arm with itself contributes (1/2)^2 to its sum and does not belong there.
PAIR_WITH_ITSELF = 0.25


@dataclass(frozen=True, slots=True)
class WeightRule:
    """How costs become weights; as it stands, the paper's rule to the letter."""

    sharpness: float = 1.0
    guard: float = 0.0
    """The part of the paper's weights in the mixture."""
    ties: Ties = "paper"

    @property
    def mixes(self) -> bool:
        """Do the weights differ from 1/D?"""
        return self.sharpness != 1.0 and self.guard != 1.0

    def cost_of_best(self, tied: int, cheapest: float) -> float:
        """D of each of so many best arms, where the smallest D of the others is `cheapest`."""
        return 1.0 + (tied - 2) / 4 if self.ties == "limit" and tied > 1 else cheapest


PAPER = WeightRule()
LIMIT = WeightRule(ties="limit")


def gaps_to_best(means: Floats) -> Floats:
    """max_j Q_j - Q_i, brought down by a power of two if means near the largest double would overflow."""
    with np.errstate(over="ignore"):
        gaps: Floats = means.max() - means
    if gaps.max() > np.finfo(np.float64).max / 2:
        quartered = means * 0.25
        gaps = quartered.max() - quartered
    return gaps


def ratio_sums(own: Floats, gaps: Floats) -> Floats:
    """sum_j (x / (x + d_j))^2 for each positive x of `own`; added in pairs of halves, so the error does not grow with K."""
    sums = np.empty(len(own))
    rows = max(1, _PAIRS_AT_ONCE // max(1, len(gaps)))
    for start in range(0, len(own), rows):
        block = own[start : start + rows, None]
        ratios = block + gaps
        np.divide(block, ratios, out=ratios)
        np.multiply(ratios, ratios, out=ratios)
        ratios.sum(axis=1, out=sums[start : start + rows])
    return sums


def pair_costs(gaps: Floats) -> Floats:
    """D_i of every arm with a positive gap; infinity for the empirically best arms."""
    costs = np.full(len(gaps), np.inf)
    challengers = gaps > 0.0
    costs[challengers] = ratio_sums(gaps[challengers], gaps) - PAIR_WITH_ITSELF
    return costs


def weights_from_costs(costs: Floats, rule: WeightRule = PAPER) -> Floats:
    """The weights by this rule; costs of the best arms are infinite."""
    cheapest = costs.min()
    if not np.isfinite(cheapest):  # all arms are tied
        return np.full(len(costs), 1.0 / len(costs))
    best = np.isinf(costs)
    inverse: Floats = 1.0 / np.where(best, rule.cost_of_best(int(np.count_nonzero(best)), cheapest), costs)
    if not rule.mixes:
        weights: Floats = inverse / inverse.sum()
        return weights
    powers = inverse**rule.sharpness
    sharp: Floats = powers / powers.sum()
    return sharp if rule.guard == 0.0 else rule.guard * (inverse / inverse.sum()) + (1.0 - rule.guard) * sharp


def h1_weights(means: Floats, rule: WeightRule = PAPER) -> Floats:
    """The weights of all arms: positive, sum to one; uniform when all means are equal."""
    return weights_from_costs(pair_costs(gaps_to_best(means)), rule)


def targets_from_means(means: Floats, rule: WeightRule = PAPER) -> Floats:
    """The weights when some arms have no reward yet (mean NaN): those get 1/K each, the others share the rest by weight.

    So an arm whose first reward is late neither stalls the experiment nor floods it.
    """
    known = ~np.isnan(means)
    if known.all():
        return h1_weights(means, rule)
    return targets_around_silence(h1_weights(means[known], rule) if known.any() else means[known], known)


def targets_around_silence(weights: Floats, known: Bools) -> Floats:
    """1/K for every arm without a reward, and the weights of the others scaled to what is left."""
    arms = len(known)
    targets = np.full(arms, 1.0 / arms)
    targets[known] = weights * (len(weights) / arms)
    return targets


def mixed_targets(means: Floats, floors: Floats, rule: WeightRule = PAPER) -> Floats:
    """The targets of all arms with their floors mixed in."""
    return mix_floors(targets_from_means(means, rule), floors)

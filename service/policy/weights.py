"""The H1 weights [paper, eq_weight_hone]: how much traffic each arm deserves, given the empirical means.

With gaps d_i = max_j Q_j - Q_i,

    D_i = d_i^2 * sum_{j != i} 1 / (d_j + d_i)^2    for an arm that is not empirically best,
    D_b = min of those D_i                         for every empirically best arm,
    w_i proportional to D_i^(-sharpness)           (1 is the paper's weight; beyond it there is no proof).

D_i is computed as sum_{j != i} (d_i / (d_i + d_j))^2, the same number written as a sum of ratios: every ratio lies in [0, 1]
and the one against a best arm is 1, so 1 <= D_i <= K - 1 whatever the scale of the means. Nothing overflows, nothing is
divided by zero, and multiplying the means by a power of two changes no bit.

This is the direct formula, K^2 pairs: the reference for `interpolation` and `memory`, the faster ways for many arms.
"""

from __future__ import annotations

import numpy as np

from service.policy.base import Bools, Floats

# Pairs are formed block by block: half a megabyte stays in a core's own cache, which is twice as fast as one large block.
_PAIRS_AT_ONCE = 1 << 16
# The pair of an arm with itself contributes (1/2)^2 to its sum and does not belong there.
PAIR_WITH_ITSELF = 0.25


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


def weights_from_costs(costs: Floats, sharpness: float = 1.0) -> Floats:
    """Weights proportional to D^(-sharpness), the best arms taking the smallest D of the others."""
    cheapest = costs.min()
    if not np.isfinite(cheapest):  # all arms are tied
        return np.full(len(costs), 1.0 / len(costs))
    inverse: Floats = 1.0 / np.where(np.isfinite(costs), costs, cheapest)
    if sharpness != 1.0:
        inverse **= sharpness
    weights: Floats = inverse / inverse.sum()
    return weights


def h1_weights(means: Floats, sharpness: float = 1.0) -> Floats:
    """The weights of all arms: positive, sum to one; uniform when all means are equal."""
    return weights_from_costs(pair_costs(gaps_to_best(means)), sharpness)


def targets_from_means(means: Floats, sharpness: float = 1.0) -> Floats:
    """The weights when some arms have no reward yet (mean NaN): those get 1/K each, the others share the rest by weight.

    So an arm whose first reward is late neither stalls the experiment nor floods it.
    """
    known = ~np.isnan(means)
    if known.all():
        return h1_weights(means, sharpness)
    return targets_around_silence(h1_weights(means[known], sharpness) if known.any() else means[known], known)


def targets_around_silence(weights: Floats, known: Bools) -> Floats:
    """1/K for every arm without a reward, and the weights of the others scaled to what is left."""
    arms = len(known)
    targets = np.full(arms, 1.0 / arms)
    targets[known] = weights * (len(weights) / arms)
    return targets

"""The H1 weights [paper, eq_weight_hone]: how much traffic each arm deserves, given the empirical means.

With gaps d_i = max_j Q_j - Q_i,

    D_i = d_i^2 * sum_{j != i} 1 / (d_j + d_i)^2    for an arm that is not empirically best,
    D_b = min of those D_i                         for every empirically best arm,
    w_i proportional to D_i^(-sharpness)           (1 is the paper's weight; beyond it there is no proof).

D_i is computed as sum_{j != i} (d_i / (d_i + d_j))^2, the same number written as a sum of ratios: every ratio lies in [0, 1]
and the one against a best arm is 1, so 1 <= D_i <= K - 1 whatever the scale of the means. Nothing overflows, nothing is
divided by zero, and multiplying the means by a power of two changes no bit.
"""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats

# Pairs are formed block by block, so that 10,000 arms need megabytes, not gigabytes.
_PAIRS_AT_ONCE = 1 << 20


def gaps_to_best(means: Floats) -> Floats:
    """max_j Q_j - Q_i, brought down by a power of two if means near the largest double would overflow."""
    with np.errstate(over="ignore"):
        gaps: Floats = means.max() - means
    if gaps.max() > np.finfo(np.float64).max / 2:
        quartered = means * 0.25
        gaps = quartered.max() - quartered
    return gaps


def pair_costs(gaps: Floats) -> Floats:
    """D_i of every arm with a positive gap; infinity for the empirically best arms."""
    costs = np.full(len(gaps), np.inf)
    challengers = np.flatnonzero(gaps > 0.0)
    rows = max(1, _PAIRS_AT_ONCE // len(gaps))
    for start in range(0, len(challengers), rows):
        block = challengers[start : start + rows]
        own = gaps[block, None]
        ratios = own / (own + gaps)
        # The pair of an arm with itself contributes (1/2)^2 to the row and does not belong there.
        costs[block] = np.einsum("ij,ij->i", ratios, ratios) - 0.25
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
    arms = len(means)
    targets = np.full(arms, 1.0 / arms)
    rewarded = int(known.sum())
    if rewarded:
        targets[known] = h1_weights(means[known], sharpness) * (rewarded / arms)
    return targets

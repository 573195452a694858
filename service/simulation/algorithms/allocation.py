"""The H1 weights compiled: whole in K^2/4 divisions, after a single arm moved in K.

With A_i = sum_{j != i} 1 / (d_i + d_j)^2 the cost is D_i = d_i^2 A_i, and every term of A_i is at most the one against a
best arm, 1 / d_i^2. So adding and taking away terms loses at most a few units in the last place of A_i each time, and
refreshing after REFRESH moves keeps the weights within 1e-12 of service/policy/weights.py (1e-11 is allowed). Means are
at most 1e6 in magnitude (environments.py sees to it) and gaps at least one unit in the last place, so no product here
over- or underflows.
"""

from __future__ import annotations

import math

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.algorithms.compiled import compiled

REFRESH = 512

# Sharpness below 3 is raised by products.
_MOST_QUARTERS = 12


@compiled
def largest(values: Floats) -> float:
    """The maximum."""
    top = values[0]
    for i in range(1, len(values)):
        if values[i] > top:  # noqa: PLR1730 - compiles to a faster loop than max()
            top = values[i]
    return float(top)


@compiled
def total_of(values: Floats) -> float:
    """The sum."""
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total


@compiled
def fill_sums(gaps: Floats, sums: Floats) -> None:
    """All A_i, four rows at a time, so that one division serves four terms.

    A best arm's own gap counts as 1 here: its sum is not used, and 0 would spoil its neighbours' in the group.
    """
    arms = len(gaps)
    for i in range(0, arms, 4):
        a, b = gaps[i], gaps[min(i + 1, arms - 1)]
        c, d = gaps[min(i + 2, arms - 1)], gaps[min(i + 3, arms - 1)]
        a, b = a if a > 0.0 else 1.0, b if b > 0.0 else 1.0
        c, d = c if c > 0.0 else 1.0, d if d > 0.0 else 1.0
        row_a = row_b = row_c = row_d = 0.0
        for j in range(arms):
            to_a, to_b, to_c, to_d = a + gaps[j], b + gaps[j], c + gaps[j], d + gaps[j]
            left, right = to_a * to_b, to_c * to_d
            inverse = 1.0 / (left * right)
            of_left, of_right = inverse * right, inverse * left
            row_a += (of_left * to_b) * (of_left * to_b)
            row_b += (of_left * to_a) * (of_left * to_a)
            row_c += (of_right * to_d) * (of_right * to_d)
            row_d += (of_right * to_c) * (of_right * to_c)
        sums[i] = row_a - 0.25 / (a * a)
        if i + 1 < arms:
            sums[i + 1] = row_b - 0.25 / (b * b)
        if i + 2 < arms:
            sums[i + 2] = row_c - 0.25 / (c * c)
        if i + 3 < arms:
            sums[i + 3] = row_d - 0.25 / (d * d)


@compiled
def compute(means: Floats, gaps: Floats, sums: Floats, weights: Floats, bests: Ints) -> tuple[float, int]:
    """Everything anew from the means; returns the largest of them and how many arms have it, listed in `bests`.

    Weights are not normalised, 1/D. For the best arms, whose gap is 0, sums and weights have no meaning yet.
    """
    top = largest(means)
    size = 0
    for i in range(len(means)):
        gaps[i] = top - means[i]
        if gaps[i] == 0.0:
            bests[size] = i
            size += 1
    fill_sums(gaps, sums)
    for i in range(len(means)):
        weights[i] = 1.0 / (gaps[i] * gaps[i] * sums[i])
    return top, size


@compiled
def move(gaps: Floats, sums: Floats, weights: Floats, arm: int, new: float) -> None:
    """Arm `arm`, not a best one before or after, now has the gap `new`."""
    old = gaps[arm]
    closer = old - new
    own = 0.0
    for i in range(len(gaps)):
        before, after = gaps[i] + old, gaps[i] + new
        inverse = 1.0 / (before * after)
        moved = sums[i] + closer * (before + after) * inverse * inverse
        sums[i] = moved
        weights[i] = 1.0 / (gaps[i] * gaps[i] * moved)
        own += (before * inverse) * (before * inverse)
    itself = 1.0 / (old + new)
    gaps[arm] = new
    sums[arm] = own - itself * itself
    weights[arm] = 1.0 / (new * new * sums[arm])


@compiled
def sharpen(weights: Floats, sharpness: float, out: Floats) -> None:
    """weights^sharpness; multiples of a quarter below 3 by roots and products, many times faster than a power."""
    quarters = int(4.0 * sharpness + 0.5)
    if 4.0 * sharpness != quarters or quarters >= _MOST_QUARTERS:
        for i in range(len(weights)):
            out[i] = weights[i] ** sharpness
        return
    once, twice = quarters >= 4, quarters >= 8  # noqa: PLR2004 - four quarters are the weight itself
    half, quarter = quarters % 4 >= 2, quarters % 2 == 1  # noqa: PLR2004 - two quarters are its root
    for i in range(len(weights)):
        root = math.sqrt(weights[i])
        power = root if half else 1.0
        power *= math.sqrt(root) if quarter else 1.0
        power *= weights[i] if once else 1.0
        out[i] = power * (weights[i] if twice else 1.0)


@compiled
def finish(weights: Floats, bests: Ints, size: int) -> None:
    """Give the best arms the largest weight of the others; all the same if all are tied."""
    for k in range(size):
        weights[bests[k]] = 0.0
    share = largest(weights) if size < len(weights) else 1.0
    for k in range(size):
        weights[bests[k]] = share


@compiled
def targets_from_means(means: Floats, sharpness: float) -> Floats:
    """The targets when some arms may have no reward yet (NaN): 1/K for those, the rest shared by weight among the others."""
    arms = len(means)
    targets = np.empty(arms)
    known = np.empty(arms)
    count = 0
    for i in range(arms):
        targets[i] = 1.0 / arms
        if not np.isnan(means[i]):
            known[count] = means[i]
            count += 1
    if count == 0:
        return targets
    gaps, sums, weights, bests = np.empty(count), np.empty(count), np.empty(count), np.empty(count, np.int64)
    _, size = compute(known[:count], gaps, sums, weights, bests)
    finish(weights, bests, size)
    sharpen(weights, sharpness, weights)
    each = count / arms / total_of(weights)
    place = 0
    for i in range(arms):
        if not np.isnan(means[i]):
            targets[i] = weights[place] * each
            place += 1
    return targets

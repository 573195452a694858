"""The H1 weights compiled: whole in K^2/4 divisions, after a single arm moved in 2K.

With B_i = sum_j 1 / (d_i + d_j)^2, the pair with itself included, the cost is D_i = d_i^2 B_i - 1/4, and every term of B_i is
at most the one against a best arm, 1 / d_i^2. So adding and taking away terms loses at most a few units in the last place
of B_i each time, and refreshing after REFRESH moves keeps the weights within 1e-12 of service/policy/weights.py (1e-11 is
allowed). Means are at most 1e6 in magnitude (environments.py sees to it) and gaps at least one unit in the last place, so
no product here over- or underflows.

D_i grows with d_i (each of its ratios d_i / (d_i + d_j) does), so the smallest cost, which the best arms take, is that of
the arm with the smallest gap: nobody needs to look for it among all.
"""

from __future__ import annotations

import math

import numpy as np

from service.policy.base import Floats, Ints
from service.simulation.kernels.compilation import compiled, inlined

REFRESH = 512

# The pair of an arm with itself, which does not belong into its cost.
_ITSELF = 0.25

# Sharpness up to 3 is raised by products.
_MOST_QUARTERS = 12


@inlined
def larger(one: float, other: float) -> float:
    """The larger of two numbers; compiles to less than max(), which has NaNs in mind."""
    return one if one > other else other  # noqa: FURB136 - as the docstring says


@inlined
def largest(values: Floats) -> float:
    """The maximum. In four strands, because each comparison waits for the one before it."""
    a = b = c = d = -np.inf
    whole = len(values) - len(values) % 4
    for i in range(0, whole, 4):
        a, b = larger(values[i], a), larger(values[i + 1], b)
        c, d = larger(values[i + 2], c), larger(values[i + 3], d)
    for i in range(whole, len(values)):
        a = larger(values[i], a)
    return larger(larger(a, b), larger(c, d))


@compiled
def total_of(values: Floats) -> float:
    """The sum."""
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total


@compiled
def fill_sums(gaps: Floats, sums: Floats) -> None:
    """All B_i, four columns at a time, so that one division serves four terms. Of the best arms they have no meaning."""
    arms = len(gaps)
    for i in range(arms):
        sums[i] = 0.0
    whole = arms - arms % 4
    for j in range(0, whole, 4):
        a, b, c, d = gaps[j], gaps[j + 1], gaps[j + 2], gaps[j + 3]
        for i in range(arms):
            to_a, to_b, to_c, to_d = gaps[i] + a, gaps[i] + b, gaps[i] + c, gaps[i] + d
            left, right = to_a * to_b, to_c * to_d
            inverse = 1.0 / (left * right)
            of_left, of_right = inverse * right, inverse * left
            both_left, both_right = to_a * to_a + to_b * to_b, to_c * to_c + to_d * to_d
            sums[i] += both_left * (of_left * of_left) + both_right * (of_right * of_right)
    for j in range(whole, arms):
        for i in range(arms):
            ratio = 1.0 / (gaps[i] + gaps[j])
            sums[i] += ratio * ratio


@inlined
def closeness(gap: float) -> float:
    """The negative of a positive gap; minus infinity of a best arm."""
    return -gap if gap > 0.0 else -np.inf


@inlined
def nearest(gaps: Floats) -> int:
    """The lowest arm with the smallest positive gap; -1 if all are tied. In four strands, as `largest`."""
    a = b = c = d = -np.inf
    whole = len(gaps) - len(gaps) % 4
    for i in range(0, whole, 4):
        a, b = larger(closeness(gaps[i]), a), larger(closeness(gaps[i + 1]), b)
        c, d = larger(closeness(gaps[i + 2]), c), larger(closeness(gaps[i + 3]), d)
    for i in range(whole, len(gaps)):
        a = larger(closeness(gaps[i]), a)
    least = -larger(larger(a, b), larger(c, d))
    place = -1 if least == np.inf else 0
    while place >= 0 and gaps[place] != least:
        place += 1
    return place


@inlined
def measure(means: Floats, gaps: Floats, squares: Floats, sums: Floats, weights: Floats, bests: Ints) -> tuple[int, float, float]:
    """Everything anew from the means: how many arms are best (listed in `bests`), the totals of the others' weights and squares.

    Weights are not normalised, 1/D, and 0 for the best arms: their `squares`, gap^2 of the others, are infinite.
    """
    top = largest(means)
    size = 0
    for i in range(len(means)):
        gaps[i] = top - means[i]
        squares[i] = gaps[i] * gaps[i]
        if gaps[i] == 0.0:
            bests[size] = i
            size += 1
    fill_sums(gaps, sums)
    for k in range(size):
        squares[bests[k]], sums[bests[k]] = np.inf, 1.0
    total = squared = 0.0
    for i in range(len(means)):
        weight = 1.0 / (squares[i] * sums[i] - _ITSELF)
        weights[i] = weight
        total += weight
        squared += weight * weight
    return size, total, squared


@inlined
def move(gaps: Floats, squares: Floats, sums: Floats, weights: Floats, arm: int, new: float) -> tuple[float, float]:
    """Arm `arm`, not a best one before or after, now has the gap `new`; returns the totals of the weights and of their squares.

    In the loop the arm still has its old gap, and itself at the new one as a rival. Its cost there is at least 3/4, because the
    old one was at least 1, so what is taken out of the totals again is at most 4/3 and its square, which costs few digits.
    """
    old = gaps[arm]
    closer, own, total, squared = old - new, 0.0, 0.0, 0.0
    for i in range(len(gaps)):
        before, after = gaps[i] + old, gaps[i] + new
        inverse = 1.0 / (before * after)
        moved = sums[i] + closer * (before + after) * inverse * inverse
        weight = 1.0 / (squares[i] * moved - _ITSELF)
        sums[i] = moved
        weights[i] = weight
        total += weight
        squared += weight * weight
        own += (before * inverse) * (before * inverse)
    between = 1.0 / (old + new)
    gaps[arm], squares[arm] = new, new * new
    sums[arm] = own - between * between + _ITSELF / squares[arm]
    itself = 1.0 / (squares[arm] * sums[arm] - _ITSELF)
    total += itself - weights[arm]
    squared += itself * itself - weights[arm] * weights[arm]
    weights[arm] = itself
    return total, squared


@compiled
def sharpen(weights: Floats, sharpness: float, out: Floats) -> float:
    """weights^sharpness and their total; multiples of a quarter up to 3 by roots and products, many times faster than a power."""
    total = 0.0
    quarters = int(4.0 * sharpness + 0.5)
    if 4.0 * sharpness != quarters or quarters > _MOST_QUARTERS:
        for i in range(len(weights)):
            out[i] = weights[i] ** sharpness
            total += out[i]
        return total
    once, twice, thrice = quarters >= 4, quarters >= 8, quarters >= _MOST_QUARTERS  # noqa: PLR2004 - four are the weight itself
    half, quarter = quarters % 4 >= 2, quarters % 2 == 1  # noqa: PLR2004 - two quarters are its root
    for i in range(len(weights)):
        root = math.sqrt(weights[i])
        power = root if half else 1.0
        power *= math.sqrt(root) if quarter else 1.0
        power *= weights[i] if once else 1.0
        power *= weights[i] if twice else 1.0
        power *= weights[i] if thrice else 1.0
        out[i] = power
        total += power
    return total


@inlined
def give_share(
    weights: Floats, bests: Ints, size: int, runner_up: int, total: float, squared: float, limit: bool
) -> tuple[float, float]:
    """Give the best arms their 1/D, before any sharpening; returns the totals over all arms of weights and of their squares.

    That is the weight of the nearest other arm, 1 if there is none; for tied ones by their limit 1 / (1 + (m - 2)/4).
    """
    share = weights[runner_up] if runner_up >= 0 else 1.0
    if limit and size > 1:
        share = 4.0 / (size + 2.0)
    for k in range(size):
        before = weights[bests[k]]
        total += share - before
        squared += share * share - before * before
        weights[bests[k]] = share
    return total, squared


@compiled
def mix(weights: Floats, total: float, sharpness: float, guard: float, out: Floats) -> float:
    """Guard * w^(1) + (1 - guard) * w^(sharpness) of weights with this total into `out`; returns the total of those."""
    sharp = sharpen(weights, sharpness, out)
    if guard == 0.0:
        return float(sharp)
    part, rest = guard / total, (1.0 - guard) / sharp
    for i in range(len(weights)):
        out[i] = part * weights[i] + rest * out[i]
    return 1.0


@compiled
def targets_from_means(means: Floats, sharpness: float, guard: float, limit: bool) -> Floats:
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
    gaps, squares, sums, weights = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    bests = np.empty(count, np.int64)
    size, total, squared = measure(known[:count], gaps, squares, sums, weights, bests)
    total, _ = give_share(weights, bests, size, nearest(gaps), total, squared, limit)
    used = weights
    if sharpness != 1.0 and guard != 1.0:
        used = np.empty(count)
        total = mix(weights, total, sharpness, guard, used)
    each = count / arms / total
    place = 0
    for i in range(arms):
        if not np.isnan(means[i]):
            targets[i] = used[place] * each
            place += 1
    return targets

"""The sums behind the H1 weights of many arms, in K times a few nodes instead of K^2 pairs.

With x = e^a and d_j = e^b the summand of

    S(x) = sum_j (x / (x + d_j))^2

is the square of the logistic function of a - b: on the scale of log x the sum is smooth everywhere (its poles lie pi off the
real line), however close the gaps are to one another. So the gaps are sorted into cells of four octaves, S is computed
directly at 24 Chebyshev nodes of a cell, and the arms in it read S off the polynomial through S(x)/x, which varies by at most
16 within a cell. Interpolation is linear and every summand is positive, so the relative error of a sum is at most the
worst one of a single summand over all b: 3.4e-15. A cell with fewer arms than nodes is summed directly, and so are cells
at the ends of the range of doubles, and everything where that is less work.

Within a cell only gaps from 2^-58 to 2^44 of its own count as pairs: a smaller one contributes 1 and a larger one 0, to the
last bit of the sum. So gaps over hundreds of orders of magnitude cost little more than gaps over thirty.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.polynomial.chebyshev import chebval

from service.policy.base import Floats
from service.policy.weights import ratio_sums

_OCTAVES = 4
_NODES = 24
_SMALLER_COUNTS_ONE = 2.0**-58
_LARGER_COUNTS_NONE = 2.0**44
# Cells whose centres are beyond this power of two have nodes that a double cannot hold to the last bit.
_LARGEST_EXPONENT = 1000
# What a cell costs beside its pairs, counted in pairs, and over how many octaves its pairs reach.
_CELL_COST = 40_000
_REACH = 110

_ANGLES = np.pi * (np.arange(_NODES) + 0.5) / _NODES
# The nodes of a cell over its centre, and the matrix from values at the nodes to Chebyshev coefficients.
_NODE_RATIOS: Floats = np.exp2(_OCTAVES / 2 * np.cos(_ANGLES))
_TO_COEFFICIENTS: Floats = np.cos(np.outer(np.arange(_NODES), _ANGLES)) * (2.0 / _NODES)
_TO_COEFFICIENTS[0] *= 0.5


def interpolated_sums(gaps: Floats) -> Floats:
    """S(d_i) of every arm with a positive and finite gap, NaN for the others; an infinite gap takes no part in the sums."""
    order = np.argsort(gaps)
    ordered = gaps[order]
    best, known = (int(place) for place in np.searchsorted(ordered, [np.nextafter(0.0, 1.0), np.inf]))
    sums = np.full(len(gaps), np.nan)
    if best < known:
        sums[order[best:known]] = _sums_of_ordered(_without_tiny(ordered[:known], best), best)
    return sums


def _without_tiny(ordered: Floats, best: int) -> Floats:
    """The gaps times a power of two, which changes no ratio, where the smallest are near the end of the range of doubles."""
    if ordered[best] >= math.ldexp(1.0, -_LARGEST_EXPONENT):
        return ordered
    scaled: Floats = np.ldexp(ordered, max(0, _LARGEST_EXPONENT - math.frexp(ordered[-1])[1]))
    return scaled


def _sums_of_ordered(ordered: Floats, best: int) -> Floats:
    """S of every gap from `best` on, the first positive one."""
    challengers = ordered[best:]
    cells = np.frexp(challengers)[1] // _OCTAVES
    borders = [0, *(np.flatnonzero(np.diff(cells)) + 1).tolist(), len(challengers)]
    rows = int(np.minimum(np.diff(borders), _NODES).sum())
    reached = min(1.0, _REACH / (_OCTAVES * int(cells[-1] - cells[0] + 1)))
    if len(challengers) <= rows * reached + _CELL_COST * (len(borders) - 1) / len(ordered):
        return ratio_sums(challengers, ordered)
    sums = np.empty(len(challengers))
    for start, stop in pairwise(borders):
        # A double of exponent e lies in [2^(e-1), 2^e): the centre of four octaves is one above the lowest exponent.
        sums[start:stop] = _sums_in_cell(challengers[start:stop], int(cells[start]) * _OCTAVES + 1, ordered)
    return sums


def _sums_in_cell(points: Floats, exponent: int, ordered: Floats) -> Floats:
    """S at the points of the cell around 2^exponent."""
    lowest, highest = float(points[0]) * _SMALLER_COUNTS_ONE, float(points[-1]) * _LARGER_COUNTS_NONE
    smaller, upto = (int(place) for place in np.searchsorted(ordered, [lowest, highest]))
    partners = ordered[smaller:upto]
    if len(points) <= _NODES or abs(exponent) > _LARGEST_EXPONENT:
        return smaller + ratio_sums(points, partners)
    centre = math.ldexp(1.0, exponent)
    at_nodes = (smaller + ratio_sums(centre * _NODE_RATIOS, partners)) / _NODE_RATIOS
    ratios = points / centre
    interpolated: Floats = chebval(np.log2(ratios) * (2 / _OCTAVES), _TO_COEFFICIENTS @ at_nodes) * ratios
    return interpolated

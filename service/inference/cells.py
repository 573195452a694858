"""The least evidence over an interval of means, made certain cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from service.inference.samples import Floats, Ints

# Log evidence of the pairs `rows` against several candidate means each (the last axis).
EvidenceAt: TypeAlias = Callable[[Ints, Floats], Floats]
# The same at the edges of cells, and what it is nowhere below within each cell.
EvidenceOver: TypeAlias = Callable[[Ints, Floats], tuple[Floats, Floats]]

# Each round divides an open cell in six.
_DIVISION = np.arange(7) / 6.0
_ROUNDS = 8


def least_over_means(at: EvidenceAt, over: EvidenceOver, *, left: Floats, right: Floats, tried: Floats, goals: Floats) -> Floats:
    """The goal, where the evidence attains it at every mean from left to right; else the least seen, below the goal.

    One point below the goal settles "no"; those `tried` first (the last axis, in order) should be near the least. Where a bound
    from below attains it, it settles "yes" for a cell; cells that are still open are divided again. "Yes" is certain, "no" may be
    a close call.
    """
    least: Floats = at(np.arange(len(goals)), tried).min(axis=1)
    rows = np.flatnonzero(least >= goals)
    if len(rows) == 0:
        return least
    edges = np.column_stack([left, tried, right])[rows]
    for _ in range(_ROUNDS):
        if len(rows) == 0:
            break
        values, bounds = over(rows, edges)
        goal = goals[rows, None]
        np.minimum.at(least, rows, values.min(axis=1))
        pair, cell = np.nonzero((bounds < goal) & (least[rows, None] >= goal))
        rows, start, end = rows[pair], edges[pair, cell], edges[pair, cell + 1]
        edges = start[:, None] + (end - start)[:, None] * _DIVISION
        edges[:, -1] = end
    least[rows] = np.minimum(least[rows], np.nextafter(goals[rows], 0.0))
    reached: Floats = np.minimum(least, goals)
    return reached

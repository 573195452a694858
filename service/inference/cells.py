"""The least evidence over an interval of means, made certain cell by cell from what falls over it and what rises."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from service.inference.samples import Floats, Ints

# Log evidence of the pairs `rows` against several candidate means each (the last axis), perhaps of several bets (the first).
EvidenceAt: TypeAlias = Callable[[Ints, Floats], Floats]
# Log evidence of the two arms of the pairs `rows` together, from that of the one and of the other.
Join: TypeAlias = Callable[[Ints, Floats, Floats], Floats]

# Each round divides an open cell in six.
_DIVISION = np.arange(7) / 6.0
_ROUNDS = 8


def least_over_means(
    falling: EvidenceAt, rising: EvidenceAt, join: Join, *, left: Floats, right: Floats, tried: Floats, goals: Floats
) -> Floats:
    """The goal, where the joint evidence attains it at every mean from left to right; else the least seen, below the goal.

    One point below the goal settles "no"; those `tried` first (the last axis, in order) should be near the least. On a cell
    [s, t] the evidence is at least that of falling(t) with rising(s), which may settle "yes" for the cell; cells that are still
    open are divided again. "Yes" is certain, "no" may be a close call.
    """
    every = np.arange(len(goals))
    least = join(every, falling(every, tried), rising(every, tried)).min(axis=1)
    rows = np.flatnonzero(least >= goals)
    edges = np.column_stack([left, tried, right])[rows]
    for _ in range(_ROUNDS):
        if len(rows) == 0:
            break
        down, up, goal = falling(rows, edges), rising(rows, edges), goals[rows, None]
        np.minimum.at(least, rows, join(rows, down, up).min(axis=1))
        unsettled = (join(rows, down[..., 1:], up[..., :-1]) < goal) & (least[rows, None] >= goal)
        pair, cell = np.nonzero(unsettled)
        rows, start, end = rows[pair], edges[pair, cell], edges[pair, cell + 1]
        edges = start[:, None] + (end - start)[:, None] * _DIVISION
        edges[:, -1] = end
    least[rows] = np.minimum(least[rows], np.nextafter(goals[rows], 0.0))
    reached: Floats = np.minimum(least, goals)
    return reached

"""How far from the sample mean the evidence reaches a goal: one root finder for all bounds, always on the safe side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from service.inference.samples import Floats, Ints

# Log evidence of the arms `rows` at the given distances from their means.
EvidenceAt: TypeAlias = Callable[[Ints, Floats], Floats]

# Relative excess of width accepted over the exact bound, unless another is; always towards the wider interval.
_SLACK = 1e-5
_STEPS = 60
# Infinite evidence (a candidate that the data rule out) is cut here so that secants stay finite.
_MORE_THAN_ENOUGH = 1e12


def reach(
    log_evidence: EvidenceAt, goals: Floats, baselines: Floats, start: Floats, limits: Floats, *, tolerance: float = _SLACK
) -> Floats:
    """The distance at which the log evidence, which rises with distance from `baselines` or less at 0, attains the goal.

    A distance is returned only if the evidence there was seen to be at least the goal, so every point beyond it is rightly
    excluded; otherwise the limit is. It may be too large by twice the tolerance, a part of it. Log evidence grows about with the
    square of the distance, so secant steps on its square root, kept inside a bracket, need three or four evaluations for nearly
    all arms; the few others go on alone.
    """
    goal = np.sqrt(goals - baselines) / (1.0 - tolerance)
    reached = limits.copy()
    rows = np.arange(len(goals))
    near, far, at_limit = np.zeros(len(rows)), limits, np.zeros(len(rows), np.bool_)
    before, at_before = near, -goal
    at = np.minimum(start, limits)
    for _ in range(_STEPS):
        gained = log_evidence(rows, at) - baselines
        at_here = np.sqrt(np.minimum(np.maximum(gained, 0.0), _MORE_THAN_ENOUGH)) - goal
        slack = goal * tolerance
        enough = at_here >= -slack
        at_limit |= at == limits
        far, near = np.where(enough, at, far), np.where(enough, near, at)
        reached[rows] = far
        unfinished = (np.abs(at_here) > slack) & (far - near > tolerance * far)
        left = np.count_nonzero(unfinished)
        if left == 0:
            break
        change = at_here - at_before
        secant = at - at_here * (at - before) / np.where(change == 0.0, 1.0, change)
        # Beyond the far end: the limit is tried once (not enough there: nothing can be said), then the bracket is halved.
        untried = ~(at_limit | enough) & (far == limits)
        astray = (change == 0.0) | (secant <= near) | (secant >= far)
        inside = np.where(astray, np.where(untried, far, 0.5 * (near + far)), secant)
        before, at_before, at = at, at_here, inside
        if left < len(rows):
            rows, near, far, at_limit = rows[unfinished], near[unfinished], far[unfinished], at_limit[unfinished]
            before, at_before, at = before[unfinished], at_before[unfinished], at[unfinished]
            goal, baselines, limits = goal[unfinished], baselines[unfinished], limits[unfinished]
    return reached

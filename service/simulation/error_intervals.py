"""Wilson's interval for the probability of error (PoE) that a count of errors in so many runs stands for."""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy import stats

LEVEL = 0.95


class Interval(NamedTuple):
    """A number with its 95% interval."""

    low: float
    value: float
    high: float


def wilson(errors: int, runs: int, level: float = LEVEL) -> Interval:
    """Wilson's interval for a probability."""
    z = float(stats.norm.ppf(0.5 + level / 2.0))
    share = errors / runs
    centre = (share + z * z / (2 * runs)) / (1 + z * z / runs)
    half = z / (1 + z * z / runs) * math.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    low = 0.0 if errors == 0 else max(0.0, centre - half)
    high = 1.0 if errors == runs else min(1.0, centre + half)
    return Interval(low, share, high)

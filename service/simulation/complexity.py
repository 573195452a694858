"""How hard an instance is: H1, H2 and H3, and the exponent of SR's error, which H3 gives exactly.

H1 = sum over the other arms of 1/gap^2. H2 = max_i i / gap_(i)^2, the best arm being number 1. H3 [paper, def_h3_a]: with
the means P sorted downward and Pbar(j) the mean of P_1 and of those P_i, 2 <= i <= j, with P_i <= Pbar(j),

    1/H3 = min_{j = 2..K} ((P_1 - Pbar)^2 + sum_{i = 2..j} ((Pbar - P_i)_+)^2) / (2 j),    log(1/PoE)/T -> 1 / (H3 olog K) for SR.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.policy.base import Floats


def _gaps(means: Sequence[float]) -> Floats:
    """The gaps of all arms but the best, upward."""
    ordered = np.sort(np.array(means, dtype=np.float64))[::-1]
    return np.asarray(ordered[0] - ordered[1:], dtype=np.float64)


def h1(means: Sequence[float]) -> float:
    """Sum of the inverse squared gaps."""
    return float((1.0 / _gaps(means) ** 2).sum())


def h2(means: Sequence[float]) -> float:
    """The largest i / gap_(i)^2."""
    gaps = _gaps(means)
    return float((np.arange(2, len(gaps) + 2) / gaps**2).max())


def h3(means: Sequence[float]) -> float:
    """What decides the exponent of SR's error."""
    ordered = np.sort(np.array(means, dtype=np.float64))[::-1]
    return 1.0 / min(_phase_cost(ordered[:size]) for size in range(2, len(ordered) + 1))


def _phase_cost(ordered: Floats) -> float:
    """The cheapest way to make the best of these arms look the worst, per draw of each."""
    others = ordered[1:]
    for kept in range(len(others), 0, -1):  # the arms below the level are the kept-worst; the level is their mean with the best
        level = (ordered[0] + others[-kept:].sum()) / (kept + 1)
        outside = others[:-kept]
        if others[-kept] <= level and (len(outside) == 0 or outside[-1] > level):
            break
    short = np.maximum(0.0, level - others)
    return float(((ordered[0] - level) ** 2 + (short**2).sum()) / (2 * len(ordered)))


def olog(arms: int) -> float:
    """1/2 + sum_{i = 2..K} 1/i."""
    return 0.5 + sum(1.0 / i for i in range(2, arms + 1))


def sr_exponent(means: Sequence[float]) -> float:
    """The limit of log(1/PoE)/T for SR."""
    return 1.0 / (h3(means) * olog(len(means)))

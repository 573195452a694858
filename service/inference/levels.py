"""How the permitted error alpha is spent: over the arms and over the pairs of arms.

One sequence serves both: 0.9 for what was there at first, 0.1 / (m (m + 1)) for the m-th thing that comes later. It
sums to one however many come, so no share ever has to change.
"""

from __future__ import annotations

import numpy as np

from service.inference.samples import Bools, Floats, Ints

_FIRST = 0.9
_LATER = 0.1


def spending(later: Ints) -> Floats:
    """0.9 at 0 and 0.1 / (m (m + 1)) at m >= 1: sums to 1 over 0, 1, 2, ..."""
    order = np.asarray(later, np.float64)
    return np.where(order > 0, _LATER / np.maximum(order * (order + 1.0), 1.0), _FIRST)


def arm_levels(added: Ints, alpha: float) -> Floats:
    """Each arm's share: 0.9 alpha divided among the first arms (added = 0), 0.1 alpha / (m (m + 1)) for the m-th added later."""
    first = max(1, int(np.count_nonzero(np.asarray(added) == 0)))
    return alpha * spending(added) / np.where(np.asarray(added) > 0, 1.0, first)


def pair_levels(added: Ints, active: Bools, leader: int, alpha: float) -> Floats:
    """The level at which "the leader's mean is not above this arm's" is tested, for each arm; see `separation`.

    The leader's own share, times 0.1 / (m (m + 1)) for a rival added m-th, times 0.9 s(d) for a first arm, where d is how many
    first arms are disabled now and s is the spending sequence.
    """
    first = np.asarray(added) == 0
    firsts = int(np.count_nonzero(first))
    disabled = firsts - int(np.count_nonzero(first & active))
    own = alpha * _spent(int(added[leader])) / (firsts if first[leader] else 1.0)
    if firsts == len(first):
        return np.full(firsts, own * _FIRST * _spent(disabled))
    return own * spending(added) * np.where(first, _spent(disabled), 1.0)


def _spent(order: int) -> float:
    """One entry of the sequence."""
    return _LATER / (order * (order + 1.0)) if order else _FIRST

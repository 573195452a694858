"""Has an arm's mean moved: recent rewards against earlier ones, at every look at once.

What is kept of an arm beside its moments: the moments at the time when its count last reached a power of two ("earlier", a
block of 2^k); "recent" is all since then. Both are functions of the arm's own reward sequence, and one reward costs O(1).
A correction of a reward from before that time changes both its moments and the earlier ones.

While block k is open, the earlier sample is fixed and the recent one starts from nothing, so under a stable mean the pair
test of `pairs` holds for all recent counts at once. Blocks of 16 rewards and more are tested, in both directions, the j-th
of them (j = 1, 2, ...) at 1/(j (j + 1)) of the arm's level, so an arm whose mean is stable is ever listed with probability
at most its level. The check spends the levels of `levels.arm_levels` a second time, on itself alone: a false alarm about any
arm has probability at most alpha, and the intervals' alpha is not touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from service.inference.pairs import exceeds
from service.inference.samples import Bools, Floats, Ints, Samples

if TYPE_CHECKING:
    from service.domain import RewardSpec


# log2 of the smallest block that is tested.
_FIRST_BLOCK = 4


class Period(NamedTuple):
    """Moments of each arm's rewards over a stretch of its own sequence."""

    counts: Ints
    means: Floats
    variances: Floats


def drifting(reward: RewardSpec, earlier: Period, recent: Period, levels: Floats) -> Bools:
    """Which arms' recent mean differs from their earlier mean by more than chance allows."""
    before, since = Samples.of(*earlier), Samples.of(*recent)
    block = np.rint(np.log2(np.maximum(before.counts, 1.0))) - _FIRST_BLOCK + 1.0
    tested = block >= 1.0
    shares = 0.5 * levels / np.where(tested, block * (block + 1.0), 1.0)
    risen = since.means > before.means
    high = Samples(*(np.where(risen, now, then) for now, then in zip(since, before, strict=True)))
    low = Samples(*(np.where(risen, then, now) for now, then in zip(since, before, strict=True)))
    return tested & exceeds(reward, high, low, shares)

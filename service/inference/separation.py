"""Is the leader shown to be better than every other active arm?

`separated` is true when for every active rival b of the leader a the hypothesis "mu_a is not better than mu_b" is rejected
(`pairs`), at the level l(a, b) of `levels.pair_levels`. The chance that it is ever true while some other active arm is at
least as good as the leader, at any look, under any policy, with arms added and disabled on the way, is at most alpha:

Such a false separation needs some arm a to have beaten all its active rivals, in particular the truly best of them, so for
each a it is enough to pay for the rivals that can be the best one. Rank the first arms other than a by their true means.
With d first arms disabled the best active one is among the d + 1 highest ranked; the r-th ranked is only ever tested with d
>= r - 1, at most at level share(a) * 0.9 * s(r - 1). A rival that was added m-th is tested at share(a) * s(m), m >= 1. As
s(0) = 0.9, s(m) = 0.1/(m (m + 1)) sums to one,

    sum over a of share(a) * ( 0.9 * sum_r s(r - 1) + sum_{m >= 1} s(m) )  =  sum over a of share(a)  <=  alpha.

So a leader pays neither for the number of its rivals nor for the number of pairs; the price of the choice is in share(a)
alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from service.inference.levels import pair_levels
from service.inference.pairs import exceeds
from service.inference.samples import Bools, Floats, Ints, Samples

if TYPE_CHECKING:
    from service.domain import RewardSpec

# How many rivals are asked at once, the closest first: usually one of them settles it.
_FIRST, _THEN = 16, 1024


def separated(
    reward: RewardSpec,
    counts: Ints,
    means: Floats,
    variances: Floats,
    *,
    leader: int | None,
    active: Bools,
    added: Ints,
    alpha: float,
) -> bool:
    """True once the leader is shown to be the best active arm; false with fewer than two active arms.

    All arrays hold all arms of the experiment; `added` is 0 for the first arms and m for the m-th one added later.
    """
    if leader is None or not active[leader]:
        return False
    rivals = active.copy()
    rivals[leader] = False
    others = np.flatnonzero(rivals)
    lead = reward.sign * (means[leader] - means[others])
    if len(others) == 0 or counts[leader] == 0 or not np.all((counts[others] > 0) & (lead > 0.0)):
        return False
    samples = Samples.of(counts, means, variances)
    theirs, own = samples.pick(others), samples.pick(np.full(len(others), leader))
    levels = pair_levels(added, active, leader, alpha)[others]
    high, low = (own, theirs) if reward.sign > 0 else (theirs, own)
    closest = np.argsort(lead, kind="stable")
    groups = np.split(closest, range(_FIRST, len(closest), _THEN))
    return all(bool(exceeds(reward, high.pick(group), low.pick(group), levels[group]).all()) for group in groups)

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

`decided` is the same with a margin d, what is worthwhile: true when for every active rival b "mu_b is better than mu_a by d or
more" is rejected, at the same levels. By the same argument the chance that it is ever true while some active arm is better than
the leader by d or more is at most alpha. Evidence with a margin is never below evidence without (`pairs`), so to call every
separated leader decided too costs nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from service.inference.levels import pair_levels
from service.inference.pairs import evidence
from service.inference.samples import Bools, Floats, Ints, Samples, distinct

if TYPE_CHECKING:
    from service.domain import RewardSpec


def rival_evidence(
    reward: RewardSpec,
    counts: Ints,
    means: Floats,
    variances: Floats,
    *,
    leader: int | None,
    active: Bools,
    added: Ints,
    alpha: float,
    margin: float = 0.0,
) -> Floats:
    """How much of the evidence is there that the leader, with the margin, is better than each other active arm: 0 to 1.

    One entry an arm, nan for the leader and for arms that are not compared. All arrays hold all arms of the experiment;
    `added` is 0 for the first arms and m for the m-th one added later.
    """
    parts = np.full(len(counts), np.nan)
    if leader is None or not active[leader]:
        return parts
    others = np.flatnonzero(active)
    others = others[others != leader]
    samples = Samples.of(counts, means, variances)
    theirs, levels = samples.pick(others), pair_levels(added, active, leader, alpha)[others]
    # Rivals with the same rewards have the same evidence: many do where rewards are few or all arms have as many.
    alike = distinct(*theirs, levels)
    first, place = (slice(None), slice(None)) if alike is None else alike
    theirs, levels = theirs.pick(first), levels[first]
    own = samples.pick(np.full(len(levels), leader))
    high, low = (own, theirs) if reward.sign > 0 else (theirs, own)
    parts[others] = evidence(reward, high, low, levels, margin)[place]
    return parts


def all_shown(parts: Floats) -> bool:
    """True once the leader is shown to be better than every other active arm; false with fewer than two of them."""
    known = parts[~np.isnan(parts)]
    return len(known) > 0 and bool((known >= 1.0).all())

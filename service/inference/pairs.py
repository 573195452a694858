"""Is one mean above another: pairwise evidence from two independent samples, many pairs at once.

Let E_h(m) and E_l(m) be the evidence of the two samples against "my mean is m". Under the null hypothesis mu_h <= mu_l,

    P( E_h(mu_h) E_l(mu_l) >= z at some time )

is at most a(z), and the pair of true means lies in {m_h <= m_l}. So the null is rejected when even the least product over
m_h <= m_l is at least z; the evidence falls towards each sample's own mean, so the least product lies at a common m between
the two means (universal inference: Wasserman, Ramdas, Balakrishnan 2020).

- Binary and bounded rewards: the evidence is a (super)martingale whatever the policy does, hence so is the product: a(z) =
  1/z (Ville). Bounded rewards use the one-sided wealth on either side.
- Real rewards: the t-mixture is a martingale only in what the ratios reveal, which a policy does not keep to. But the
  largest values that the two processes ever attain are independent, and each exceeds x with probability at most 1/x, so
  (Fisher's combination) a(z) = (1 + log z)/z.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import lambertw

from service.inference import binary, bounded, real
from service.inference.samples import Bools, Floats, Ints, Samples

if TYPE_CHECKING:
    from service.domain import RewardSpec

# Log evidence of the pairs `rows` against several candidate means each.
EvidenceAt: TypeAlias = Callable[[Ints, Floats], Floats]

# Each round divides an open cell in six.
_DIVISION = np.arange(7) / 6.0
_ROUNDS = 8
# Keep quotients and squares finite.
_SMALLEST, _LARGEST = 1e-150, 1e100


def exceeds(reward: RewardSpec, high: Samples, low: Samples, levels: Floats) -> Bools:
    """For each pair: is it shown, at this level, that the mean of `high` is above the mean of `low`?"""
    goals = -np.log(levels)
    shown: Bools = (high.counts > 0) & (low.counts > 0) & (high.means > low.means)
    if reward.kind != "binary":
        shown &= evidence_ceiling(high, low) >= goals
    rows = np.flatnonzero(shown)
    if len(rows) == 0:
        return shown
    high, low, goals = high.pick(rows), low.pick(rows), goals[rows]
    if reward.kind == "binary":
        shown[rows] = binary.log_pair_evidence(high, low) >= goals
    elif reward.kind == "bounded":
        shown[rows] = _bounded_exceeds(bounded.to_unit(reward, high)[0], bounded.to_unit(reward, low)[0], goals)
    else:
        shown[rows] = _real_exceeds(high, low, independent_product_goal(goals))
    return shown


def evidence_ceiling(high: Samples, low: Samples) -> Floats:
    """What the least sum of log evidence cannot exceed: gap^2 / (2 (Q_h/n_h^2 + Q_l/n_l^2)). Most pairs need no closer look.

    For both kinds the log evidence of a sample at distance D is at most n^2 D^2 / (2 Q); add the two up at their `_between`.
    """
    high_spread, low_spread = (np.sqrt(each.squares) / np.maximum(each.counts, 1.0) for each in (high, low))
    distance = np.maximum(high.means - low.means, 0.0) / np.maximum(np.hypot(high_spread, low_spread), _SMALLEST)
    return 0.5 * np.minimum(distance, _LARGEST) ** 2


def independent_product_goal(goals: Floats) -> Floats:
    """The log z with (1 + log z)/z = exp(-goal), that is -1 - W(-exp(-1 - goal)) on the lower branch of Lambert's W."""
    goal: Floats = -1.0 - np.real(lambertw(-np.exp(-1.0 - goals), k=-1))
    return goal


def _real_exceeds(high: Samples, low: Samples, goals: Floats) -> Bools:
    def falling(rows: Ints, candidates: Floats) -> Floats:
        return real.log_evidence(high.pick((rows, None)), candidates)

    def rising(rows: Ints, candidates: Floats) -> Floats:
        return real.log_evidence(low.pick((rows, None)), candidates)

    return least_sum_attains(falling, rising, left=low.means, right=high.means, middle=_between(high, low), goals=goals)


def _bounded_exceeds(high: Samples, low: Samples, goals: Floats) -> Bools:
    """`low` is read from the upper end, where "its mean is below m" is "its mirrored mean is above 1 - m".

    Bets that are best at the middle; but no higher than needed for the goal alone, so as not to lose much near the own mean.
    """
    middle = _between(high, low)
    low = bounded.mirrored(low)
    high_bets = bounded.bets_for(high, np.maximum(middle, bounded.likely_lower_bounds(high, goals)))
    low_bets = bounded.bets_for(low, np.maximum(1.0 - middle, bounded.likely_lower_bounds(low, goals)))

    def falling(rows: Ints, candidates: Floats) -> Floats:
        return bounded.log_wealth(high.pick((rows, None)), high_bets[:, rows, None], candidates)

    def rising(rows: Ints, candidates: Floats) -> Floats:
        return bounded.log_wealth(low.pick((rows, None)), low_bets[:, rows, None], 1.0 - candidates)

    return least_sum_attains(falling, rising, left=1.0 - low.means, right=high.means, middle=middle, goals=goals)


def _between(high: Samples, low: Samples) -> Floats:
    """The two means weighted by their precision: about where the product of the evidence is least."""
    high_spread, low_spread = (np.sqrt(each.squares) / each.counts + _SMALLEST for each in (high, low))
    weight = 1.0 / (1.0 + np.minimum(high_spread / low_spread, _LARGEST) ** 2)
    return low.means + (high.means - low.means) * weight


def least_sum_attains(
    falling: EvidenceAt, rising: EvidenceAt, *, left: Floats, right: Floats, middle: Floats, goals: Floats
) -> Bools:
    """Is falling(m) + rising(m) >= goal for all m from left to right? "Yes" is certain, "no" may be a close call.

    One point below the goal settles "no"; `middle` is tried first. On a cell [s, t] the sum is at least falling(t) + rising(s),
    which may settle "yes" for the cell; cells that are still open are divided again.
    """
    attains: Bools = np.ones(len(goals), np.bool_)
    rows, edges = np.arange(len(goals)), np.stack([left, middle, right], axis=1)
    for _ in range(_ROUNDS):
        down, up, goal = falling(rows, edges), rising(rows, edges), goals[rows, None]
        attains[rows[np.any(down + up < goal, axis=1)]] = False
        unsettled = (down[:, 1:] + up[:, :-1] < goal) & attains[rows, None]
        pair, cell = np.nonzero(unsettled)
        if len(pair) == 0:
            return attains
        rows, start, end = rows[pair], edges[pair, cell], edges[pair, cell + 1]
        edges = start[:, None] + (end - start)[:, None] * _DIVISION
        edges[:, -1] = end
    attains[rows] = False
    return attains

"""How often would this leader be the wrong one: an estimate, not a bound.

    min( (K - 1)/K, sum over the other active arms j of Phi( -(Q_b - Q_j) / sqrt(v_b/n_b + v_j/n_j) ) )

for the leader b among K active arms: the normal approximation of each pairwise mistake, added up (Bonferroni). For binary
rewards v = p (1 - p) with p = (S + 1/2)/(n + 1), so that an arm of all zeros is not certain. It is read at one moment and
not corrected for peeking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from service.inference.samples import Bools, Floats, Ints

if TYPE_CHECKING:
    from service.domain import RewardSpec

_LEAST_REWARDS = 2


def error_estimate(
    reward: RewardSpec, counts: Ints, means: Floats, variances: Floats, *, leader: int, active: Bools
) -> float | None:
    """The estimate; 0 with one active arm, None until each active arm has two rewards.

    A zero root counts 1/2 when tied, else 0.
    """
    arms = int(np.count_nonzero(active))
    if arms <= 1:
        return 0.0
    if np.any(counts[active] < _LEAST_REWARDS):
        return None
    rivals = active.copy()
    rivals[leader] = False
    spread = _mean_variances(reward, counts, means, variances)
    lead = reward.sign * (means[leader] - means[rivals])
    root = np.sqrt(spread[leader] + spread[rivals])
    ties = np.where(lead == 0.0, 0.5, 0.0)
    mistakes = np.where(root > 0.0, ndtr(-lead / np.where(root > 0.0, root, 1.0)), ties)
    return float(min((arms - 1) / arms, mistakes.sum()))


def _mean_variances(reward: RewardSpec, counts: Ints, means: Floats, variances: Floats) -> Floats:
    """v/n of each arm: the estimated variance of its mean."""
    rewards = np.maximum(counts, 1)
    if reward.kind == "binary":
        share = (np.rint(rewards * np.where(counts > 0, means, 0.0)) + 0.5) / (rewards + 1.0)
        binary: Floats = share * (1.0 - share) / rewards
        return binary
    of_means: Floats = np.where(counts >= _LEAST_REWARDS, variances, 0.0) / rewards
    return of_means

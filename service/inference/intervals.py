"""Confidence sequences for the arms' means: at every look at once, under any adaptive sampling, each arm at its own level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from service.inference import binary, bounded, real
from service.inference.samples import Floats, Ints, Samples

if TYPE_CHECKING:
    from service.domain import RewardKind, RewardSpec

# The method of each reward kind, fixed before any data.
METHODS: dict[RewardKind, str] = {
    "binary": "beta-binomial mixture",
    "bounded": "betting mixture",
    "real": "t-mixture",
}


def possible_means(reward: RewardSpec) -> tuple[float, float]:
    """What a mean can be before any reward was seen."""
    if reward.kind == "binary":
        return 0.0, 1.0
    if reward.kind == "bounded":
        low, high = reward.minimum, reward.maximum
        return -np.inf if low is None else float(low), np.inf if high is None else float(high)
    return -np.inf, np.inf


def confidence_intervals(
    reward: RewardSpec, counts: Ints, means: Floats, variances: Floats, levels: Floats
) -> tuple[Floats, Floats]:
    """(lower, upper) for each arm's mean; P(an arm's interval ever misses its mean) <= its level.

    An arm without a reward has every possible mean; infinite bounds mean that nothing can be said yet. Otherwise
    possible minimum <= lower <= mean <= upper <= possible maximum.
    """
    samples = Samples.of(counts, means, variances)
    lowest, highest = possible_means(reward)
    if reward.kind == "binary":
        lower, upper = binary.bounds(samples, levels)
    elif reward.kind == "bounded":
        unit, origin, width = bounded.to_unit(reward, samples)
        lower, upper = (origin + width * bound for bound in bounded.bounds(unit, levels))
    else:
        lower, upper = real.bounds(samples, levels)
    seen = samples.counts > 0
    lower = np.where(seen, np.maximum(np.minimum(lower, samples.means), lowest), lowest)
    upper = np.where(seen, np.minimum(np.maximum(upper, samples.means), highest), highest)
    return lower, upper

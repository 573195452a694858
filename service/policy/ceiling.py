"""The constant-ratio ceiling [paper, Algorithm fracwrap]: N draws split by fractions w into integers.

Lemma (N >= 2K): the counts are integers, they sum to N, and n_i >= w_i N / 4.
"""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats, Ints

# w_i N' is often an integer in theory and 0.999… in floats.
_INTEGER_SLACK = 1e-9


def constant_ratio_ceiling(weights: Floats, size: int, rng: np.random.Generator) -> Ints:
    """Integer counts that sum to `size`: one for every positive weight, its floor share, the remainder at random by weight."""
    positive = weights > 0.0
    spread = size - int(positive.sum())
    counts = np.where(positive, 1 + np.floor(weights * spread + _INTEGER_SLACK), 0).astype(np.int64)
    return add_remainder(counts, weights, size, rng)


def add_remainder(counts: Ints, weights: Floats, size: int, rng: np.random.Generator) -> Ints:
    """Bring the counts up to `size` with one `rng.choice` by the weights."""
    missing = size - int(counts.sum())
    if missing <= 0:
        return counts
    extra = rng.choice(len(weights), size=missing, p=weights / weights.sum())
    return counts + np.bincount(extra, minlength=len(weights))

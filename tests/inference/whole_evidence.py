"""The evidence against pairs of means by its definition, every tilt and bet added up, and what it rules out."""

from __future__ import annotations

import numpy as np

from service.domain import RewardKind
from service.inference import binary_pairs, bounded, bounded_pairs, real
from service.inference.binary import successes
from service.inference.samples import Floats, Samples

# Tilts and bets far from what the data ask for are left out: how much of the log evidence that may cost.
LEFT_OUT = 0.8


def one(rewards: float, mean: float, variance: float) -> Samples:
    """One arm."""
    return Samples(np.array([float(rewards)]), np.array([mean]), np.array([rewards * variance]))


def binary_arm(rewards: int, ones: int) -> Samples:
    """One arm with so many successes."""
    share = ones / rewards
    return one(rewards, share, share * (1.0 - share))


def log_evidence(kind: RewardKind, high: Samples, low: Samples, high_means: Floats, low_means: Floats) -> Floats:
    """Log E at these pairs of means, on the unit scale for binary and bounded rewards; of one pair of arms."""
    if kind == "real":
        return real.log_evidence(high, high_means) + real.log_evidence(low, low_means)
    module = binary_pairs if kind == "binary" else bounded_pairs
    sizes = binary_pairs.TILTS if kind == "binary" else bounded_pairs.BETS
    mirror = bounded.mirrored(low)

    def wealth(arm: Samples, bets: Floats, candidates: Floats) -> Floats:
        if kind == "bounded":
            return bounded.log_bet_wealth(bounded.worst_coin(arm), bets[:, None], candidates)
        return bets[:, None] * successes(arm) - arm.counts * np.log1p(np.expm1(bets)[:, None] * candidates)

    (above, below), (above_quarter, below_quarter) = (
        (wealth(high, bets, high_means), wealth(mirror, bets, 1.0 - low_means)) for bets in (sizes, sizes / 4.0)
    )
    parts = [
        np.log(module.EQUAL) + above + below,
        np.log(module.QUARTER) + above + below_quarter,
        np.log(module.QUARTER) + above_quarter + below,
        np.log(module.ALONE) + above,
        np.log(module.ALONE) + below,
    ]
    terms = np.concatenate([np.log(module.WEIGHTS)[:, None] + part for part in parts])
    log_sum: Floats = np.logaddexp.reduce(terms, axis=0)
    return log_sum


class Edge:
    """The pairs of means that are just possible, one for each of many high means.

    Binary and bounded evidence falls in the high mean and rises in the low one everywhere; that of real rewards up to the
    samples' own means, and beyond them nothing is farther.
    """

    def __init__(self, kind: RewardKind, high: Samples, low: Samples, *, least: float, most: float) -> None:
        self.kind, self.high, self.low = kind, high, low
        self.high_means = np.linspace(least, high.means[0] if kind == "real" else 1.0, 1201)
        self.range = (float(low.means[0]) if kind == "real" else 0.0), most

    def low_means(self, goal: float) -> Floats:
        """For each high mean the highest low mean that is not ruled out; minus infinity where all are."""
        inside, outside = (np.full(len(self.high_means), end) for end in self.range)
        none = log_evidence(self.kind, self.high, self.low, self.high_means, inside) >= goal
        for _ in range(34):
            middle = 0.5 * (inside + outside)
            possible = log_evidence(self.kind, self.high, self.low, self.high_means, middle) < goal
            inside, outside = np.where(possible, middle, inside), np.where(possible, outside, middle)
        return np.where(none, -np.inf, inside)

    def farthest_difference(self, goal: float) -> float:
        """The largest difference low - high that is possible."""
        return float((self.low_means(goal) - self.high_means).max())

    def farthest_ratio(self, goal: float) -> float:
        """The largest ratio low / high that is possible."""
        return float((self.low_means(goal) / self.high_means).max())

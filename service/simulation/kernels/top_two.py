"""What EB-TC, TS-TC and EB-TC-eps0 share: how sure an arm's mean is, kept up to date draw by draw."""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats
from service.simulation.kernels.compilation import compiled
from service.simulation.kernels.traffic import OBSERVED, SUMS


@compiled
def variance_of_reward(book: Floats, arm: int, binary: bool) -> float:
    """1; of binary rewards p(1 - p), with p after half a success and half a failure more, so that no arm is without doubt."""
    rate = (book[SUMS, arm] + 0.5) / (book[OBSERVED, arm] + 1.0)
    return float(rate * (1.0 - rate)) if binary else 1.0


@compiled
def variance_of_mean(book: Floats, arm: int, binary: bool) -> float:
    """That over N, the rewards that came, at least one (an arm that still waits for its first is as unsure as one with one)."""
    return float(variance_of_reward(book, arm, binary) / max(1.0, book[OBSERVED, arm]))


@compiled
def refresh_variances(book: Floats, variances: Floats, arm: int, live: bool, binary: bool) -> None:
    """After a draw of `arm`: its own variance, or all of them where rewards come late."""
    if not live:
        variances[arm] = variance_of_mean(book, arm, binary)
        return
    for i in range(len(variances)):
        variances[i] = variance_of_mean(book, i, binary)


@compiled
def lowest(costs: Floats) -> int:
    """The lowest position with the smallest cost."""
    return int(np.argmin(costs))

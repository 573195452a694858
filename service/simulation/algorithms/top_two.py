"""What EB-TC, TS-TC and EB-TC-eps0 share: how sure an arm's mean is, kept up to date draw by draw."""

from __future__ import annotations

import numpy as np

from service.policy.base import Floats
from service.simulation.algorithms.compiled import compiled
from service.simulation.algorithms.traffic import OBSERVED


@compiled
def variance_of_mean(book: Floats, arm: int) -> float:
    """1/N with N the rewards that came, at least one (an arm that still waits for its first is as unsure as one with one)."""
    return float(1.0 / max(1.0, book[OBSERVED, arm]))


@compiled
def refresh_variances(book: Floats, variances: Floats, arm: int, live: bool) -> None:
    """After a draw of `arm`: its own variance, or all of them where rewards come late."""
    if not live:
        variances[arm] = variance_of_mean(book, arm)
        return
    for i in range(len(variances)):
        variances[i] = variance_of_mean(book, i)


@compiled
def lowest(costs: Floats) -> int:
    """The lowest position with the smallest cost."""
    return int(np.argmin(costs))

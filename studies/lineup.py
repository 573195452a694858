"""Who takes part in the paper's experiments, in the order of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.simulation.kernels.catalogue import contender

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.simulation.environments import Environment

TRACKING = ("simple_tracking", "almost_tracking", "almost_tracking:realised")
BASELINES = ("sr", "sh", "cr_a", "cr_c", "dsr", "dsh", "ts_tc", "eb_tc", "uniform", "eb_tc_eps0", "pooled")
EVERYONE = (*TRACKING, *BASELINES)

# How the published tables call them; both readings of Almost Tracking stand beside its one published row.
PUBLISHED_AS = {
    "simple_tracking": "Simple Tracking",
    "almost_tracking": "Almost Tracking",
    "almost_tracking:realised": "Almost Tracking",
    "sr": "SR",
    "sh": "SH",
    "cr_a": "CR-A",
    "cr_c": "CR-C",
    "dsr": "DSR",
    "dsh": "DSH",
    "ts_tc": "TS-TC",
    "eb_tc": "EB-TC",
    "uniform": "Uniform",
    "eb_tc_eps0": "EB-TC-eps0",
}


def playable(policies: Iterable[str], environment: Environment, budget: int) -> list[str]:
    """Those for which the budget suffices; Pooled Allocation needs 2K(K + 1) draws before its first victory."""
    return [name for name in policies if contender(name).algorithm.least_budget(environment.arms) <= budget]

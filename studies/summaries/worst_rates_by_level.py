"""The worst rate over the ten instances at shorter and longer budgets, from the runs of the sharpness study.

The paper does not print its budgets, only that the best algorithm errs in 1 to 10% of the runs. A worst rate falls with the
budget where the error does not fall exponentially, so the paper's claim is asked again at every level of Simple
Tracking's error. What any choice of budgets in the paper's range could give, one level for each instance, is the reach of
a policy: from the smallest rate anywhere to the smallest over instances of the largest over levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.simulation import figures
from service.simulation.environments import INSTANCES, instance
from service.simulation.kernels.catalogue import contender
from studies.error_rates import PAPER_FACTOR, Outcome, rate_interval, worst_rate
from studies.lineup import BASELINES
from studies.sharpness import ALMOST, SIMPLE
from studies.summaries.worst_rates import COMPLEXITIES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Counts = dict[str, tuple[int, int]]
# The first three levels, 20 to 1% of Simple Tracking, contain the paper's range of 1 to 10% for the best algorithm.
_PAPERS_LEVELS = 3
_DRAWN = ("simple_tracking", "simple_tracking:s=1.5", "almost_tracking", "sr", "cr_a", "ts_tc", "eb_tc", "eb_tc_eps0", "uniform")


def by_level(counts: Mapping[tuple[str, int], Counts], levels: tuple[str, ...]) -> dict[str, Any]:
    """Worst rates at every level, and the reach over the paper's levels; empty until all ten instances are played."""
    budgets = {name: sorted(draws for label, draws in counts if label == name) for name in INSTANCES}
    if any(len(found) != len(levels) for found in budgets.values()):
        return {}
    policies = [
        policy
        for policy in (*SIMPLE, *ALMOST, *BASELINES)
        if all(policy in counts[name, draws] for name in INSTANCES for draws in budgets[name])
    ]
    worst: dict[str, Any] = {}
    reach: dict[str, Any] = {}
    for measure in COMPLEXITIES:
        rates = {policy: _rates(counts, budgets, policy, measure) for policy in policies}
        worst[measure] = {policy: [_worst(found, level) for level in range(len(levels))] for policy, found in rates.items()}
        reach[measure] = {policy: _reach(found) for policy, found in rates.items()}
    return {"levels": levels, "budgets": budgets, "worst": worst, "reach": reach}


def _rates(
    counts: Mapping[tuple[str, int], Counts], budgets: dict[str, list[int]], policy: str, measure: str
) -> dict[str, list[Outcome]]:
    """Of every instance the outcomes at its budgets, in the paper's convention."""
    return {
        name: [
            Outcome(name, *counts[name, draws][policy], PAPER_FACTOR * COMPLEXITIES[measure](instance(name).means), draws)
            for draws in budgets[name]
        ]
        for name in INSTANCES
    }


def _worst(found: dict[str, list[Outcome]], level: int) -> dict[str, Any]:
    """The worst rate at one level with its interval."""
    low, value, high, where = worst_rate([outcomes[level] for outcomes in found.values()])
    return {"rate": [low, value, high], "instance": where}


def _reach(found: dict[str, list[Outcome]]) -> list[float]:
    """The smallest and the largest worst rate that budgets in the paper's range can give, by the ends of the intervals."""
    lowest, highest = [], []
    for outcomes in found.values():
        spans = [rate_interval(o.errors, o.runs, o.complexity, o.budget) for o in outcomes[:_PAPERS_LEVELS]]
        lowest.append(min(span.low for span in spans))
        highest.append(max(span.high for span in spans))
    return [min(lowest), min(highest)]


def draw_levels(folder: Path, levels: dict[str, Any]) -> None:
    """The worst rate under H1 over the levels of error, a line a policy."""
    rows = [
        {"policy": contender(policy).title, "level": f"{100 * float(level):g}%", "rate": found["rate"][1]}
        for policy in _DRAWN
        for level, found in zip(levels["levels"], levels["worst"]["H1"].get(policy, []), strict=False)
    ]
    x = {"field": "level", "type": "ordinal", "sort": None, "axis": {"labelAngle": 0}, "title": "Simple Tracking (s = 1) errs in"}
    spec = {
        "title": "Worst rate over the ten instances under H1, by the error of Simple Tracking",
        "width": 460,
        "height": 340,
        "data": {"values": rows},
        "mark": {"type": "line", "point": {"filled": True, "size": 40}},
        "encoding": {
            "x": x,
            "y": {"field": "rate", "type": "quantitative", "title": "worst rate, larger is better"},
            **figures.styled(list(dict.fromkeys(row["policy"] for row in rows))),
        },
    }
    figures.draw(spec, folder / "levels")

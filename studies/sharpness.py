"""Beyond the paper: weights D^(-s) with s from 1 (the paper's, the only one with a proof) to 2, against every baseline.

For every environment the budgets are those at which Simple Tracking with s = 1 errs in 20, 5 and 1% of the runs, and,
continuing the fall of log(PoE) from 5 to 1%, in 0.1%. The budgets come from a first set of runs, at most SEARCH_RUNS, so
that asking for more later goes on with the same cells; all policies are then judged on fresh ones. Where 200 arms, or the
length of instance 5, would take hours, there are fewer runs.

An arm is starved if it has less than a tenth of an equal share of the draws; counted is how often that happens to the
best one.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from service.simulation.complexity import h1
from service.simulation.environments import INSTANCES, REAL_WORLD, instance
from service.simulation.runner import Cell
from service.simulation.session import Unfinished
from studies.lineup import BASELINES, playable
from studies.random_structures import all_structures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.simulation.environments import Environment
    from service.simulation.session import Result, Session

NAME = "sharpness"
LEVELS = (0.2, 0.05, 0.01)
LAST_LEVEL = 0.001
SIMPLE = tuple("simple_tracking" + (f":s={s:g}" if s != 1.0 else "") for s in (1.0, 1.25, 1.5, 1.75, 2.0))
ALMOST = tuple("almost_tracking" + (f":s={s:g}" if s != 1.0 else "") for s in (1.0, 1.5, 2.0))
STARVED_SHARPNESS = ("simple_tracking", "simple_tracking:s=1.5", "simple_tracking:s=2")
SEARCH_RUNS = 1000
_MANY_ARMS = 100
_LONG = "5"
_STEPS = 80
# Of rewards with a mean of one half: where to begin the search for budgets.
_VARIANCES = {"gaussian": 1.0, "bernoulli": 0.25, "bounded": 1.0 / 12.0}


def environments() -> list[Environment]:
    """The paper's instances, the real-world ones and the random structures; the longest last, should time run out."""
    found = [*(instance(name) for name in (*INSTANCES, *REAL_WORLD)), *all_structures()]
    return sorted(found, key=lambda world: (world.label == _LONG, world.arms > _MANY_ARMS))


def runs_for(environment: Environment, runs: int) -> int:
    """A quarter of the runs where a run is very long."""
    return max(1, runs // 4) if environment.arms > _MANY_ARMS or environment.label == _LONG else runs


def find_budgets(session: Session, environment: Environment, runs: int | None = None) -> tuple[int, ...]:
    """The draws at which Simple Tracking (s = 1) reaches the levels of error."""
    horizon = 8 * h1(environment.means) * _VARIANCES[environment.kind]
    runs = runs or runs_for(environment, min(session.runs, SEARCH_RUNS))
    while True:
        step = max(1, round(max(horizon, 2.0 * _STEPS) / _STEPS))
        points = tuple(step * k + environment.arms for k in range(1, _STEPS + 1))
        cell = Cell(environment, "simple_tracking", points[-1], points)
        result = session.play_one(cell, f"budgets of {environment.label}", runs)
        found = [_first_below(result, level) for level in LEVELS]
        if None not in found:
            break
        horizon *= 1.7
    budgets = [draws for draws in found if draws is not None]
    per_nat = (budgets[2] - budgets[1]) / math.log(LEVELS[1] / LEVELS[2])
    budgets.append(round(budgets[2] + per_nat * math.log(LEVELS[2] / LAST_LEVEL)))
    least = 2 * environment.arms
    return tuple(sorted({max(least, draws) for draws in budgets}))


def _first_below(result: Result, level: float) -> int | None:
    """The first checkpoint with at most this error."""
    for draws, errors in zip(result.cell.checkpoints, result.errors, strict=True):
        if errors <= level * result.runs:
            return draws
    return None


def cells_of(environment: Environment, budgets: Sequence[int]) -> list[Cell]:
    """One cell for an anytime policy, with all budgets as checkpoints; one a budget for those that need to know it."""
    points, last = tuple(budgets), budgets[-1]
    cells = [Cell(environment, policy, last, points) for policy in (*SIMPLE, *ALMOST)]
    known = ("sr", "sh", "cr_a", "cr_c", "pooled")
    cells += [Cell(environment, policy, last, points) for policy in BASELINES if policy not in known]
    for budget in budgets:
        cells += [Cell(environment, policy, budget, (budget,)) for policy in playable(known, environment, budget)]
    return [cell for cell in cells if playable([cell.policy], environment, cell.budget)]


def run(session: Session) -> list[Result]:
    """All policies on all environments, then how often the best arm was starved."""
    results: list[Result] = []
    for environment in environments():
        with suppress(Unfinished):
            results += _run_one(session, environment)
    return results


def _run_one(session: Session, environment: Environment) -> list[Result]:
    """One environment at its budgets."""
    budgets = find_budgets(session, environment)
    runs = runs_for(environment, session.runs)
    starved = [Cell(environment, name, budgets[-1], budgets, "starved") for name in STARVED_SHARPNESS]
    return [
        *session.play(cells_of(environment, budgets), f"{environment.label}, T = {budgets}", runs),
        *session.play(starved, f"{environment.label}, starved", max(1, runs // 4)),
    ]

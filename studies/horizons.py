"""The budgets of the ten instances, which the paper does not print.

It says only that the best algorithm's PoE is between 0.01 and 0.1. Taken: the smallest multiple of 100 at which Simple
Tracking's PoE is at most 0.05. Simple Tracking is anytime, so one set of runs shows all multiples; a pilot finds how long
they must be. These runs are longer than the budget found and so have their own random streams: the budget is not chosen
by the runs that are then judged.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from service.simulation.complexity import h1
from service.simulation.runner import RUNS_PER_BLOCK, Cell

if TYPE_CHECKING:
    from service.simulation.environments import Environment
    from service.simulation.session import Result, Session

WANTED_ERROR = 0.05
STEP = 100
_PILOT_RUNS = 500
_MOST_SEARCH_DRAWS = 200_000_000


def _every_step(environment: Environment, horizon: int, policy: str) -> Cell:
    """Checkpoints at all multiples of the step, and an end between two of them so that no budget equals it."""
    first = math.ceil(environment.arms * 2 / STEP) * STEP
    end = horizon + STEP // 2
    return Cell(environment, policy, end, (*range(first, end, STEP), end))


def _runs_for(horizon: int, runs: int) -> int:
    """Fewer runs for the search where it would take longer than the study itself; whole blocks."""
    affordable = _MOST_SEARCH_DRAWS // horizon // RUNS_PER_BLOCK * RUNS_PER_BLOCK
    return min(runs, max(_PILOT_RUNS, affordable))


def _reached(result: Result, wanted: float) -> int | None:
    """The first checkpoint with an error of at most the wanted one."""
    for draws, errors in zip(result.cell.checkpoints[:-1], result.errors[:-1], strict=True):
        if errors <= wanted * result.runs:
            return draws
    return None


def find_horizon(
    session: Session, environment: Environment, policy: str = "simple_tracking", wanted: float = WANTED_ERROR
) -> int:
    """The smallest multiple of 100 draws at which the policy errs in at most the wanted part of the runs."""
    horizon = math.ceil(8 * h1(environment.means) / STEP) * STEP
    title = f"budget of instance {environment.label}"
    while True:
        pilot = session.play_one(_every_step(environment, horizon, policy), f"{title}, pilot", _PILOT_RUNS)
        found = _reached(pilot, wanted)
        if found is not None:
            break
        horizon *= 2
    horizon = math.ceil(1.15 * found / STEP) * STEP + STEP
    while True:
        result = session.play_one(_every_step(environment, horizon, policy), title, _runs_for(horizon, session.runs))
        found = _reached(result, wanted)
        if found is not None:
            return found
        horizon = math.ceil(1.2 * horizon / STEP) * STEP

"""How many draws an experiment will need, before it is run: what `bestarm plan` answers.

What is known beforehand is little: how many arms, the baseline, the smallest lift worth finding, perhaps all means. With
a lift alone the plan takes the hard case: one arm has it, all others are equal to the baseline. The best arm stands last,
so that ties never help it. Deviations of real rewards are divided out, which turns any Gaussian experiment into one of
unit variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.errors import InvalidValue
from service.simulation.complexity import h1
from service.simulation.environments import Environment, Kind, of_means
from service.simulation.error_intervals import wilson
from service.simulation.kernels.catalogue import contender, resolved_name
from service.simulation.runner import Cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.simulation.session import Result, Session

POLICIES = ("auto", "almost_tracking", "uniform")
_POINTS = 60
_PILOT_RUNS = 60
_FEWEST_RUNS = 120
_MOST_EXTENSIONS = 4
_MOST_DRAWS = 2_000_000
_MOST_PAIRS = 500_000_000


@dataclass(frozen=True, slots=True)
class SampleSize:
    """When a policy reaches the wanted error: by the estimate, and surely (the interval's upper end)."""

    policy: str
    draws: int | None
    surely: int | None
    result: Result


def planned_environment(
    *, arms: int | None, baseline: float, lift: float | None, means: Sequence[float], kind: Kind, deviation: float
) -> Environment:
    """The environment that stands for what the user knows."""
    if not math.isfinite(deviation) or deviation <= 0.0:
        raise InvalidValue("/deviation", "The standard deviation must be positive.")
    scale = deviation if kind == "gaussian" else 1.0
    if means:
        ordered = sorted(means)
        return of_means([mean / scale for mean in ordered], kind, "plan")
    if arms is None or lift is None:
        raise InvalidValue("/lift", "Give either --means, or --arms with --lift.")
    if not lift > 0.0:
        raise InvalidValue("/lift", "The smallest lift worth finding must be positive.")
    if arms < 2:  # noqa: PLR2004 - one arm is no choice
        raise InvalidValue("/arms", f"An experiment needs at least 2 arms, not {arms}.")
    return of_means([baseline / scale] * (arms - 1) + [(baseline + lift) / scale], kind, "plan")


def find_sample_sizes(
    session: Session, environment: Environment, wanted: float, policies: Sequence[str] = POLICIES
) -> list[SampleSize]:
    """For every policy the draws that bring its error down to the wanted one."""
    if not 0.0 < wanted < 1.0:
        raise InvalidValue("/error", "The wanted error is a probability between 0 and 1.")
    named = list(dict.fromkeys(resolved_name(policy, environment) for policy in policies))
    for policy in named:
        if contender(policy).algorithm.needs_budget:
            raise InvalidValue("/policies", f"{policy} must know the budget beforehand; a plan needs anytime policies.")
    return [_sample_size(session, environment, policy, wanted) for policy in named]


def _sample_size(session: Session, environment: Environment, policy: str, wanted: float) -> SampleSize:
    """A pilot finds how long the runs must be, then as many runs as asked for and affordable; longer ones if it was wrong."""
    best = environment.means[environment.best]
    variance = best * (1.0 - best) if environment.kind == "bernoulli" else 1.0
    horizon = max(4 * environment.arms, round(3.0 * variance * h1(environment.means) * math.log(1.0 / wanted)))
    horizon = min(horizon, _MOST_DRAWS)
    while True:
        pilot = _play(session, environment, policy, horizon, min(session.runs, _PILOT_RUNS))
        reached = _reached(pilot, wanted / 2.0)
        if reached is not None or horizon >= _MOST_DRAWS:
            break
        horizon = min(2 * horizon, _MOST_DRAWS)
    horizon = max(4 * environment.arms, reached or horizon)
    for _ in range(_MOST_EXTENSIONS):
        result = _play(session, environment, policy, horizon, _affordable(environment, horizon, session.runs))
        surely = _reached(result, wanted, sure=True)
        if surely is not None or horizon >= _MOST_DRAWS or not can_be_sure(result.runs, wanted):
            break
        horizon = min(round(1.5 * horizon), _MOST_DRAWS)
    return SampleSize(policy, _reached(result, wanted), surely, result)


def can_be_sure(runs: int, wanted: float) -> bool:
    """Could so many runs without any error show that the error is as small as wanted?"""
    return wilson(0, runs).high <= wanted


def _affordable(environment: Environment, horizon: int, runs: int) -> int:
    """So many runs that a plan takes seconds; a late or lost reward makes a draw dearer, and so do many arms."""
    dearer = 10 if environment.delay or environment.loss else 1
    return min(runs, max(_FEWEST_RUNS, _MOST_PAIRS // (horizon * environment.arms * dearer)))


def _play(session: Session, environment: Environment, policy: str, horizon: int, runs: int) -> Result:
    points = tuple(sorted({max(1, round(horizon * step / _POINTS)) for step in range(1, _POINTS + 1)}))
    (result,) = session.play([Cell(environment, policy, horizon, points)], f"{policy}, {horizon} draws", runs)
    return result


def _reached(result: Result, wanted: float, *, sure: bool = False) -> int | None:
    """The first checkpoint from which on the error stays at or below the wanted one."""
    reached = None
    for draws, errors in zip(result.cell.checkpoints, result.errors, strict=True):
        poe = wilson(errors, result.runs).high if sure else errors / result.runs
        if poe > wanted:
            reached = None
        elif reached is None:
            reached = draws
    return reached

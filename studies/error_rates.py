"""From error counts to rates, with their intervals, and the worst rate over instances.

A rate is H * log(1/PoE) / T. The paper's numbers are integers of errors only with H four times the H it defines, so both
are printed: the plain convention (H) and the paper's (4 H). No errors mean an infinite rate, whose interval still has a
finite lower end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from service.simulation.error_intervals import LEVEL, Interval, wilson

PAPER_FACTOR = 4.0
_RESAMPLES = 4000


def rate(poe: float, complexity: float, budget: int) -> float:
    """H * log(1/PoE) / T; infinite without errors."""
    return math.inf if poe <= 0.0 else complexity * math.log(1.0 / poe) / budget


def rate_interval(errors: int, runs: int, complexity: float, budget: int) -> Interval:
    """The rate with the interval that Wilson's for the PoE gives."""
    low, value, high = wilson(errors, runs)
    return Interval(rate(high, complexity, budget), rate(value, complexity, budget), rate(low, complexity, budget))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Errors on one instance."""

    instance: str
    errors: int
    runs: int
    complexity: float
    budget: int


class WorstRate(NamedTuple):
    """The smallest rate over instances with a bootstrap interval of that minimum, and the instance that has it."""

    low: float
    value: float
    high: float
    instance: str


def worst_rate(outcomes: Sequence[Outcome], seed: int = 0) -> WorstRate:
    """The minimum over instances; its interval from resampled counts, each instance's binomial at (errors + 1/2)/(runs + 1).

    The half keeps an instance without any error from being taken for one that never errs.
    """
    plain = [rate(o.errors / o.runs, o.complexity, o.budget) for o in outcomes]
    place = int(np.argmin(plain))
    rng = np.random.default_rng(seed)
    lowest = np.full(_RESAMPLES, np.inf)
    for o in outcomes:
        counts = rng.binomial(o.runs, (o.errors + 0.5) / (o.runs + 1.0), _RESAMPLES)
        with np.errstate(divide="ignore"):
            rates = o.complexity * np.log(o.runs / counts) / o.budget
        lowest = np.minimum(lowest, rates)
    low, high = np.quantile(lowest, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return WorstRate(float(low), plain[place], float(high), outcomes[place].instance)

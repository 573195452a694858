"""From error counts to statements: intervals, rates, the worst rate over instances, and whether two counts agree.

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
from scipy import stats

PAPER_FACTOR = 4.0
_RESAMPLES = 4000
_LEVEL = 0.95


class Interval(NamedTuple):
    """A number with its 95% interval."""

    low: float
    value: float
    high: float


def wilson(errors: int, runs: int, level: float = _LEVEL) -> Interval:
    """Wilson's interval for a probability."""
    z = float(stats.norm.ppf(0.5 + level / 2.0))
    share = errors / runs
    centre = (share + z * z / (2 * runs)) / (1 + z * z / runs)
    half = z / (1 + z * z / runs) * math.sqrt(share * (1 - share) / runs + z * z / (4 * runs * runs))
    low = 0.0 if errors == 0 else max(0.0, centre - half)
    high = 1.0 if errors == runs else min(1.0, centre + half)
    return Interval(low, share, high)


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


class Worst(NamedTuple):
    """The smallest rate over instances with a bootstrap interval of that minimum, and the instance that has it."""

    low: float
    value: float
    high: float
    instance: str


def worst_rate(outcomes: Sequence[Outcome], seed: int = 0) -> Worst:
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
    low, high = np.quantile(lowest, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Worst(float(low), plain[place], float(high), outcomes[place].instance)


def two_sample_p(errors: int, runs: int, other_errors: int, other_runs: int) -> float:
    """Fisher's exact test that two error counts come from the same probability, two-sided."""
    table = [[errors, runs - errors], [other_errors, other_runs - other_errors]]
    return float(stats.fisher_exact(table).pvalue)


def holm(p_values: Sequence[float], level: float = 0.01) -> list[bool]:
    """Which hypotheses Holm's procedure rejects at the level over the whole family."""
    rejected = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        if p_values[place] > level / (len(p_values) - rank):
            break
        rejected[place] = True
    return rejected

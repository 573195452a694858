"""Coverage in small: a look after every reward. The check is sharp enough that a naive interval fails it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from service.domain import RewardSpec
from service.inference.intervals import confidence_intervals
from service.inference.samples import Floats, Ints
from tests.inference.arms import BINARY, REAL, bounded

pytestmark = pytest.mark.study
RUNS, REWARDS, ALPHA = 600, 250, 0.05
# Three standard errors above alpha: a right method passes, chance included, in all but about one in a thousand seeds.
ALLOWED = ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / RUNS)

Bounds = tuple[Floats, Floats]


def share_of_runs_with_a_miss(rewards: Floats, mean: float, interval: Callable[[Ints, Floats, Floats], Bounds]) -> float:
    """How often the interval, looked at after every reward, ever leaves out the mean."""
    counts = np.arange(1, REWARDS + 1)[:, None]
    means = np.cumsum(rewards, axis=0) / counts
    squares = np.maximum(np.cumsum(rewards**2, axis=0) - counts * means**2, 0.0)
    missed = np.zeros(RUNS, np.bool_)
    for row in range(1, REWARDS):
        seen = np.full(RUNS, row + 1)
        lower, upper = interval(seen, means[row], squares[row] / row)
        missed |= (mean < lower) | (mean > upper)
    return float(missed.mean())


def ours(reward: RewardSpec) -> Callable[[Ints, Floats, Floats], Bounds]:
    """The confidence sequence with all of alpha on one arm."""
    return lambda counts, means, variances: confidence_intervals(reward, counts, means, variances, np.full(RUNS, ALPHA))


def naive(counts: Ints, means: Floats, variances: Floats) -> Bounds:
    """What people do: mean plus or minus 1.96 standard errors, at every look."""
    reach = 1.96 * np.sqrt(variances / counts)
    return means - reach, means + reach


@pytest.mark.parametrize("mean", [0.02, 0.5])
def test_binary_intervals_keep_their_level_at_every_look(mean: float) -> None:
    """At the edge and in the middle."""
    rewards = (np.random.default_rng(5).random((REWARDS, RUNS)) < mean).astype(np.float64)
    assert share_of_runs_with_a_miss(rewards, mean, ours(BINARY)) <= ALLOWED


@pytest.mark.parametrize(("first", "second"), [(0.1, 1.9), (3.0, 2.0)])
def test_bounded_intervals_keep_their_level_at_every_look(first: float, second: float) -> None:
    """Beta-shaped rewards, at an edge and around the middle."""
    rewards = np.random.default_rng(6).beta(first, second, (REWARDS, RUNS))
    assert share_of_runs_with_a_miss(rewards, first / (first + second), ours(bounded())) <= ALLOWED


def test_real_intervals_keep_their_level_at_every_look_from_the_second_reward_on() -> None:
    """Gaussian rewards of unknown variance."""
    rewards = 3.0 + 20.0 * np.random.default_rng(7).standard_normal((REWARDS, RUNS))
    assert share_of_runs_with_a_miss(rewards, 3.0, ours(REAL)) <= ALLOWED


def test_a_naive_interval_fails_this_very_check() -> None:
    """Otherwise the tests above could not fail."""
    rewards = np.random.default_rng(7).standard_normal((REWARDS, RUNS))
    assert share_of_runs_with_a_miss(rewards, 0.0, naive) > 4 * ALPHA

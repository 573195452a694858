"""The compiled weights stay within 1e-11 of the direct formula, however they are reached."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.policy.base import Floats
from service.policy.weights import h1_weights, targets_from_means
from service.simulation.algorithms import allocation


def incremental(means: Floats, moves: list[tuple[int, float]]) -> Floats:
    """The weights after moving arms one by one below the best."""
    arms = len(means)
    gaps, squares, sums, weights = np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms)
    bests = np.zeros(arms, np.int64)
    size, total = allocation.measure(means, gaps, squares, sums, weights, bests)
    top = means.max()
    for arm, mean in moves:
        means[arm] = mean
        total = allocation.move(gaps, squares, sums, weights, arm, top - mean)
    total = allocation.give_share(weights, bests, size, allocation.nearest(gaps), total)
    normalised: Floats = weights / total
    return normalised


@pytest.mark.parametrize("arms", [2, 3, 5, 40, 83])
def test_moves_stay_close_until_the_refresh(arms: int) -> None:
    """As many moves as there can be between two refreshes, some of them to within 1e-9 of the best."""
    rng = np.random.default_rng(arms)
    means = rng.normal(size=arms)
    top = means.max()
    others = np.flatnonzero(means < top)
    moves = [(int(rng.choice(others)), float(top - 10.0 ** rng.uniform(-9, 1))) for _ in range(allocation.REFRESH)]
    assert np.abs(incremental(means, moves) - h1_weights(means)).max() < 1e-11


@given(st.lists(st.integers(0, 4), min_size=2, max_size=50), st.sampled_from([1.0, 1.25, 1.5, 1.7, 2.0, 2.75, 4.0]))
@settings(max_examples=60, deadline=None)
def test_ties_and_sharpness_agree_with_production(values: list[int], sharpness: float) -> None:
    """Few distinct means, so that every kind of tie occurs; multiples of a quarter and others."""
    means = np.array(values, dtype=np.float64) / 3.0
    assert np.abs(allocation.targets_from_means(means, sharpness) - h1_weights(means, sharpness)).max() < 1e-11


def test_arms_without_a_reward_have_an_equal_share() -> None:
    """NaN means are treated as in production."""
    means = np.array([0.5, np.nan, 0.1, np.nan, 0.3])
    expected = targets_from_means(means)
    assert np.abs(allocation.targets_from_means(means, 1.0) - expected).max() < 1e-11
    assert allocation.targets_from_means(np.full(3, np.nan), 1.0).tolist() == [1 / 3] * 3


def test_gaps_of_one_unit_in_the_last_place() -> None:
    """The smallest gaps that doubles near the largest allowed mean can have."""
    means = np.array([1e6, np.nextafter(1e6, 0.0), 0.0, -1e6])
    assert np.abs(allocation.targets_from_means(means, 1.0) - h1_weights(means)).max() < 1e-11

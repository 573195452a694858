"""The compiled weights stay within 1e-11 of the direct formula, however they are reached."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.policy.base import Floats
from service.policy.weights import WeightRule, h1_weights, targets_from_means
from service.simulation.kernels import weights_kernel
from service.simulation.kernels.simple_tracking_kernel import direct_weights, score


def incremental(means: Floats, moves: list[tuple[int, float]]) -> tuple[Floats, Floats]:
    """The weights after moving arms one by one below the best, and the sharper ones of s = 2, by the totals that were kept."""
    arms = len(means)
    gaps, squares, sums, weights = np.zeros(arms), np.zeros(arms), np.zeros(arms), np.zeros(arms)
    bests = np.zeros(arms, np.int64)
    size, total, squared = weights_kernel.measure(means, gaps, squares, sums, weights, bests)
    top = means.max()
    for arm, mean in moves:
        means[arm] = mean
        total, squared = weights_kernel.move(gaps, squares, sums, weights, arm, top - mean)
    total, squared = weights_kernel.give_share(weights, bests, size, weights_kernel.nearest(gaps), total, squared, False)
    plain: Floats = weights / total
    sharp: Floats = weights**2 / squared
    return plain, sharp


@pytest.mark.parametrize("arms", [2, 3, 5, 40, 83, 1000])
def test_moves_stay_close_until_the_refresh(arms: int) -> None:
    """As many moves as there can be between two refreshes, some of them to within 1e-9 of the best."""
    rng = np.random.default_rng(arms)
    means = rng.normal(size=arms)
    top = means.max()
    others = np.flatnonzero(means < top)
    moves = [(int(rng.choice(others)), float(top - 10.0 ** rng.uniform(-9, 1))) for _ in range(weights_kernel.REFRESH)]
    plain, sharp = incremental(means, moves)
    assert np.abs(plain - h1_weights(means)).max() < 1e-11
    assert np.abs(sharp - h1_weights(means, WeightRule(2.0, 0.0))).max() < 1e-11


@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=50),
    st.sampled_from([1.0, 1.25, 1.5, 1.7, 2.0, 2.75, 3.0, 4.0]),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_ties_and_mixtures_agree_with_production(values: list[int], sharpness: float, guard: float, limit: bool) -> None:  # noqa: FBT001 - hypothesis
    """Few distinct means, so that every kind of tie occurs; multiples of a quarter and others; all mixtures."""
    means = np.array(values, dtype=np.float64) / 3.0
    expected = h1_weights(means, WeightRule(sharpness, guard, "limit" if limit else "paper"))
    assert np.abs(weights_kernel.targets_from_means(means, sharpness, guard, limit) - expected).max() < 1e-11
    assert np.abs(direct_weights(means, sharpness, guard, limit) - expected).max() < 1e-11


@pytest.mark.parametrize("limit", [False, True])
@pytest.mark.parametrize("tied", [1, 2, 300, 600])
def test_ties_among_many_arms_agree_with_production(tied: int, limit: bool) -> None:  # noqa: FBT001 - parametrised
    """More of them than production keeps to the direct formula for, all arms included; the others are tied in threes."""
    means = np.concatenate([np.full(tied, 0.5), 0.4 - np.arange(600 - tied) // 3 / 500.0])
    np.random.default_rng(tied).shuffle(means)
    for sharpness, guard in ((1.0, 0.0), (2.0, 0.5)):
        expected = h1_weights(means, WeightRule(sharpness, guard, "limit" if limit else "paper"))
        assert np.abs(weights_kernel.targets_from_means(means, sharpness, guard, limit) - expected).max() < 1e-11
        assert np.abs(direct_weights(means, sharpness, guard, limit) - expected).max() < 1e-11


def test_arms_without_a_reward_have_an_equal_share() -> None:
    """NaN means are treated as in production."""
    means = np.array([0.5, np.nan, 0.1, np.nan, 0.3])
    expected = targets_from_means(means)
    assert np.abs(weights_kernel.targets_from_means(means, 1.0, 0.0, False) - expected).max() < 1e-11
    assert weights_kernel.targets_from_means(np.full(3, np.nan), 1.0, 0.0, False).tolist() == [1 / 3] * 3


def test_gaps_of_one_unit_in_the_last_place() -> None:
    """The smallest gaps that doubles near the largest allowed mean can have."""
    means = np.array([1e6, np.nextafter(1e6, 0.0), 0.0, -1e6])
    assert np.abs(weights_kernel.targets_from_means(means, 1.0, 0.0, False) - h1_weights(means)).max() < 1e-11


@pytest.mark.parametrize("arms", [1, 2, 3, 4, 5, 40, 83])
def test_the_largest_and_the_nearest_are_found_wherever_they_stand(arms: int) -> None:
    """At every position; of several that are equally near the lowest, and none where all are tied."""
    for place in range(arms):
        gaps = np.where(np.arange(arms) % 3 == 0, 0.0, 2.0 + np.arange(arms))
        gaps[place] = 1.0
        assert weights_kernel.nearest(gaps) == place
        assert weights_kernel.largest(-gaps) == (-gaps).max()
        gaps[place:] = 1.0
        assert weights_kernel.nearest(gaps) == place
    assert weights_kernel.nearest(np.zeros(arms)) == -1


@pytest.mark.parametrize(("sharpness", "guard"), [(1.0, 0.0), (2.0, 0.5), (2.0, 0.0), (2.0, 1.0), (1.5, 0.25), (1.7, 0.5)])
def test_scores_are_those_of_the_mixed_weights(sharpness: float, guard: float) -> None:
    """By the loops for the usual rules and by the one for any."""
    rng = np.random.default_rng(5)
    means, draws = rng.normal(size=41), np.floor(100 * rng.random(41))
    weights = 7.0 * h1_weights(means)
    scores, powers = np.zeros(41), np.zeros(41)
    top = score(weights, weights.sum(), (weights**2).sum(), sharpness, guard, powers, draws, 2000, scores)
    expected = 2000 * h1_weights(means, WeightRule(sharpness, guard)) - draws
    assert np.abs(scores - expected).max() < 2000 * 1e-11
    assert top == scores.max()

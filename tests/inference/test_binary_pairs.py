"""One binary arm against another: the least evidence over all common means is found, from below, whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import comb

from service.inference import binary_pairs
from service.inference.binary_pairs import ALONE, EQUAL, QUARTER, TILTS, WEIGHTS, least_log_evidence
from service.inference.samples import Floats, Samples
from tests.inference.arms import unhurried

# Tilts far from the effect that the data show are left out: how much of the log evidence that may cost.
LEFT_OUT = 0.6
ENDLESS = np.array([np.inf])


def sample(rewards: float, ones: float) -> Samples:
    """One arm."""
    return Samples(np.array([float(rewards)]), np.array([ones / rewards]), np.zeros(1))


def whole_mixture(high: tuple[float, float], low: tuple[float, float], means: Floats, margin: float = 0.0) -> Floats:
    """Log E by its definition, every tilt added up."""

    def log_tilted(rewards: float, wins: float, tilts: Floats, candidates: Floats) -> Floats:
        return tilts[:, None] * wins - rewards * np.log1p(np.expm1(tilts)[:, None] * candidates)

    (high_rewards, high_ones), (low_rewards, low_ones) = high, low
    failures, mirrored = low_rewards - low_ones, 1.0 - margin - means
    quarters: Floats = 0.25 * TILTS
    above, below = log_tilted(high_rewards, high_ones, TILTS, means), log_tilted(low_rewards, failures, TILTS, mirrored)
    above_quarter = log_tilted(high_rewards, high_ones, quarters, means)
    below_quarter = log_tilted(low_rewards, failures, quarters, mirrored)
    parts = [
        np.log(EQUAL) + above + below,
        np.log(QUARTER) + above + below_quarter,
        np.log(QUARTER) + above_quarter + below,
        np.log(ALONE) + above,
        np.log(ALONE) + below,
    ]
    terms = np.concatenate([np.log(WEIGHTS)[:, None] + part for part in parts])
    log_sum: Floats = np.logaddexp.reduce(terms, axis=0)
    return log_sum


def least_on_a_grid(high: tuple[float, float], low: tuple[float, float], margin: float = 0.0) -> float:
    """The least log E by looking everywhere, closer and closer."""
    start, end, evidence = 0.0, 1.0 - margin, np.zeros(1)
    for _ in range(6):
        grid = np.linspace(start, end, 301)
        evidence = whole_mixture(high, low, grid, margin)
        place = int(evidence.argmin())
        start, end = grid[max(place - 1, 0)], grid[min(place + 1, 300)]
    return float(evidence.min())


def arms() -> st.SearchStrategy[tuple[float, float]]:
    """Rewards from one to a thousand billion, and how many of them are 1: none and all often."""
    shares = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0))
    counts = st.floats(0.0, 12.0).map(lambda power: float(round(10**power)))
    return st.tuples(counts, shares).map(lambda arm: (arm[0], float(round(arm[0] * arm[1]))))


def test_the_weights_of_the_mixture_sum_to_one() -> None:
    """Otherwise the evidence would not start at one."""
    assert WEIGHTS.sum() * (EQUAL + 2 * QUARTER + 2 * ALONE) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("high_mean", "low_mean", "between"), [(0.3, 0.3, 0.3), (0.01, 0.01, 0.01), (0.2, 0.6, 0.4), (0.5, 0.9, 0.9)]
)
def test_the_evidence_is_worth_at_most_one_while_the_high_arm_is_not_better(
    high_mean: float, low_mean: float, between: float
) -> None:
    """Summed over all outcomes of twelve and of seven rewards with their probabilities; exactly one where the means are equal."""
    high_rewards, low_rewards, expected = 12, 7, 0.0
    for high_ones in range(high_rewards + 1):
        for low_ones in range(low_rewards + 1):
            chance = comb(high_rewards, high_ones) * high_mean**high_ones * (1 - high_mean) ** (high_rewards - high_ones)
            chance *= comb(low_rewards, low_ones) * low_mean**low_ones * (1 - low_mean) ** (low_rewards - low_ones)
            evidence = whole_mixture((high_rewards, high_ones), (low_rewards, low_ones), np.array([between]))
            expected += chance * float(np.exp(evidence[0]))
    assert expected <= 1.0 + 1e-9
    if high_mean == low_mean:
        assert expected == pytest.approx(1.0)


@unhurried
@given(first=arms(), second=arms())
def test_the_least_evidence_is_the_one_on_a_fine_grid_and_never_above_it(
    first: tuple[float, float], second: tuple[float, float]
) -> None:
    """For any counts up to a thousand billion, means of 0 and 1 included."""
    low, high = sorted((first, second), key=lambda arm: arm[1] / arm[0])
    if high[1] / high[0] == low[1] / low[0]:
        return
    on_grid = least_on_a_grid(high, low)
    found = float(least_log_evidence(sample(*high), sample(*low), ENDLESS)[0])
    assert found <= on_grid + 1e-9 * (high[0] + low[0]) * 1e-3 + 1e-6
    if on_grid > 2.0:
        assert found >= on_grid - LEFT_OUT - 0.15 * on_grid


@unhurried
@given(first=arms(), ratio=st.floats(0.1, 10.0), errors=st.floats(0.1, 8.0), goal=st.floats(2.0, 60.0))
def test_a_goal_is_attained_only_where_it_is_on_a_fine_grid_and_else_missed_by_as_much(
    first: tuple[float, float], ratio: float, errors: float, goal: float
) -> None:
    """Also where one look tells how far off it is: counts up to a thousand billion, sums at their ends, any ratio about one."""
    rewards = float(np.ceil(first[0] * ratio))
    share = first[1] / first[0]
    error = np.sqrt(max(share * (1.0 - share), 1.0 / first[0]) * (1.0 / first[0] + 1.0 / rewards))
    second = rewards, float(np.clip(np.rint(rewards * (share - errors * error)), 0.0, rewards))
    if second[1] / second[0] >= share:
        return
    on_grid = least_on_a_grid(first, second)
    found = float(least_log_evidence(sample(*first), sample(*second), np.array([goal]))[0])
    rounding = 1e-12 * (first[0] + rewards) + 1e-6
    if found >= goal:
        assert on_grid >= goal - rounding
    else:
        assert found <= max(on_grid, 0.0) + 0.05 + rounding


@unhurried
@given(first=arms(), second=arms(), margin=st.floats(1e-4, 0.99))
def test_with_a_margin_the_least_evidence_is_no_more_than_on_a_fine_grid_and_no_less_than_without(
    first: tuple[float, float], second: tuple[float, float], margin: float
) -> None:
    """Also where the low arm has the better mean, as long as it is not better by the margin.

    Where one arm has hundreds of times the rewards of the other, the tilts left out may cost more.
    """
    high, low = first, second
    if high[1] / high[0] + margin <= low[1] / low[0]:
        return
    found = float(least_log_evidence(sample(*high), sample(*low), ENDLESS, margin)[0])
    on_grid = least_on_a_grid(high, low, margin)
    assert found <= on_grid + 1e-12 * (high[0] + low[0]) + 1e-6
    if 2.0 < on_grid < 20.0 and 0.01 < high[0] / low[0] < 100.0:
        assert found >= 0.7 * on_grid - 1.5
    if high[1] / high[0] > low[1] / low[0]:
        assert on_grid >= least_on_a_grid(high, low) - 1e-6 * (1.0 + abs(on_grid))


@unhurried
@given(first=arms(), second=arms())
def test_successes_and_failures_are_alike(first: tuple[float, float], second: tuple[float, float]) -> None:
    """Counting failures in place of successes exchanges the arms and changes nothing."""
    low, high = sorted((first, second), key=lambda arm: arm[1] / arm[0])
    if high[1] / high[0] == low[1] / low[0]:
        return
    plain = least_log_evidence(sample(*high), sample(*low), ENDLESS)
    mirrored = least_log_evidence(sample(low[0], low[0] - low[1]), sample(high[0], high[0] - high[1]), ENDLESS)
    np.testing.assert_allclose(plain, mirrored, rtol=1e-6, atol=0.06)


def test_more_of_the_same_is_more_evidence() -> None:
    """The same shares over more and more rewards, and a larger lead over the same rewards."""
    growing = [float(least_log_evidence(sample(10 * n, 3 * n), sample(10 * n, 2 * n), ENDLESS)[0]) for n in (10, 20, 40, 80, 160)]
    widening = [float(least_log_evidence(sample(500, 200 + ones), sample(500, 200), ENDLESS)[0]) for ones in range(20, 120, 10)]
    assert growing == sorted(growing)
    assert widening == sorted(widening)


@unhurried
@given(first=arms(), second=arms(), goal=st.floats(0.5, 40.0))
def test_the_ceiling_never_rules_out_a_pair_that_could_be_shown(
    first: tuple[float, float], second: tuple[float, float], goal: float
) -> None:
    """What attains a goal lies below the ceiling."""
    low, high = sorted((first, second), key=lambda arm: arm[1] / arm[0])
    if high[1] / high[0] == low[1] / low[0]:
        return
    found = float(least_log_evidence(sample(*high), sample(*low), np.array([goal]))[0])
    ceiling = float(binary_pairs.log_evidence_ceiling(sample(*high), sample(*low))[0])
    assert found <= ceiling + 1e-6 * max(1.0, ceiling)


def test_many_pairs_at_once_are_the_pairs_one_by_one() -> None:
    """Rows do not see each other, whenever each of them is settled."""
    rng = np.random.default_rng(3)
    counts = np.rint(10 ** rng.uniform(0, 5, (2, 400)))
    ones = np.rint(counts * rng.random((2, 400)))
    swapped = ones[0] / counts[0] < ones[1] / counts[1]
    counts[:, swapped], ones[:, swapped] = counts[::-1, swapped], ones[::-1, swapped]
    high, low = (Samples(counts[arm], ones[arm] / counts[arm], np.zeros(400)) for arm in (0, 1))
    goals = rng.uniform(1.0, 30.0, 400)
    together = least_log_evidence(high, low, goals)
    for pair in range(400):
        row = np.array([pair])
        np.testing.assert_allclose(together[row], least_log_evidence(high.pick(row), low.pick(row), goals[row]))

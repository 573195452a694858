"""The evidence behind every bound: worth one in expectation under the truth, and falling towards the sample mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import comb
from scipy.stats import t as student

from service.inference import binary, bounded, real
from service.inference.samples import Floats, Samples
from tests.inference.arms import unhurried

ALL_ODDS = np.arange(len(bounded.ODDS))[:, None]


def wealth(samples: Samples, candidates: Floats) -> Floats:
    """The whole mixture of odds."""
    return np.exp(bounded.log_wealth(samples, ALL_ODDS, candidates))


@pytest.mark.parametrize("mean", [0.01, 0.3, 0.5, 0.99])
def test_binary_evidence_is_worth_exactly_one_under_the_true_mean(mean: float) -> None:
    """Summed over all outcomes of 20 rewards with their probabilities."""
    ones = np.arange(21)
    samples = Samples(np.full(21, 20.0), ones / 20, np.zeros(21))
    probability = comb(20, ones) * mean**ones * (1 - mean) ** (20 - ones)
    evidence = np.exp(binary.log_evidence(samples, np.full(21, mean)))
    assert float(probability @ evidence) == pytest.approx(1.0)


@unhurried
@given(mean=st.floats(0.01, 0.99), low=st.floats(0.0, 1.0), high=st.floats(0.0, 1.0), rewards=st.integers(1, 12))
def test_bounded_wealth_is_worth_at_most_one_under_the_true_mean(mean: float, low: float, high: float, rewards: int) -> None:
    """For rewards of two values around the mean, the least favourable ones, over all outcomes."""
    low, high = mean * low, mean + (1 - mean) * high
    chance = (mean - low) / (high - low) if high > low else 0.0
    highs = np.arange(rewards + 1)
    probability = comb(rewards, highs) * chance**highs * (1 - chance) ** (rewards - highs)
    share = highs / rewards
    means = low + (high - low) * share
    samples = Samples(np.full(len(highs), float(rewards)), means, rewards * share * (1 - share) * (high - low) ** 2)
    assert float(probability @ wealth(samples, np.full(len(highs), mean))) <= 1.0 + 1e-9


@unhurried
@given(
    mean=st.floats(0.0, 1.0),
    rewards=st.floats(1.0, 1e7),
    spread=st.floats(0.0, 1.0),
    place=st.integers(0, len(bounded.ODDS) - 1),
    shares=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=10),
)
def test_bounded_wealth_falls_with_the_candidate(
    mean: float, rewards: float, spread: float, place: int, shares: list[float]
) -> None:
    """For all odds and every bet by themselves, so that the confidence set is an interval whichever are added up."""
    candidates = np.sort(np.array(shares))
    filled = np.full(len(candidates), 1.0)
    samples = Samples(rewards * filled, mean * filled, rewards * spread**2 * mean * (1 - mean) * filled)
    for log_wealth in (
        bounded.log_wealth(samples, np.full((1, len(candidates)), place), candidates),
        bounded.log_bet_wealth(bounded.worst_coin(samples), bounded.ODDS[place : place + 1, None], candidates)[0],
    ):
        assert (np.diff(log_wealth) <= 1e-9 * (1.0 + np.abs(log_wealth[1:]))).all()


@unhurried
@given(
    rewards=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30),
    bet=st.floats(2.0**-20, 2.0**8),
    candidate=st.floats(0.001, 1.0),
)
def test_no_rewards_with_these_sums_earn_less(rewards: list[float], bet: float, candidate: float) -> None:
    """The wealth that is counted on is never above what the rewards themselves earn, in whichever order they came."""
    told = np.array(rewards)
    sample = Samples(*(np.array([value]) for value in (float(len(told)), told.mean(), ((told - told.mean()) ** 2).sum())))
    earned = np.log1p(bet * told).sum() - len(told) * np.log1p(bet * candidate)
    counted = bounded.log_bet_wealth(bounded.worst_coin(sample), np.array([bet]), np.array([candidate]))[0]
    assert counted <= earned + 1e-9 * (1.0 + abs(earned))
    by_slope = bounded.log_slope_wealth(
        bounded.worst_coin(sample), np.array([bet / (1.0 + bet * candidate)]), np.array([candidate])
    )
    assert by_slope[0] == pytest.approx(counted, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(("heads", "size"), [(1, 1.0), (7, 0.4), (20, 0.02), (20, 1.0)])
def test_a_coin_of_zeros_earns_just_that(heads: int, size: float) -> None:
    """So no larger wealth could be counted on from the three sums."""
    share = heads / 20
    sample = Samples(np.array([20.0]), np.array([share * size]), np.array([20.0 * share * (1 - share) * size**2]))
    counted, bets = bounded.log_bet_wealth(bounded.worst_coin(sample), bounded.ODDS[:, None], np.array([0.1]))[:, 0], bounded.ODDS
    np.testing.assert_allclose(counted, heads * np.log1p(bets * size) - 20.0 * np.log1p(bets * 0.1), rtol=1e-9, atol=1e-9)


def test_odds_left_out_only_lower_the_wealth() -> None:
    """The few odds around the best ones nearly make up the whole, and never more than it."""
    samples = Samples(np.array([100.0, 1e4]), np.array([0.4, 0.4]), np.array([4.0, 400.0]))
    candidates = np.array([0.3, 0.39])
    chosen = np.exp(bounded.log_wealth(samples, bounded.odds_for(samples, candidates), candidates))
    whole = wealth(samples, candidates)
    assert (chosen <= whole).all()
    assert (chosen >= 0.5 * whole).all()


@unhurried
@given(reward=st.floats(-1e9, 1e9), candidate=st.floats(-1e9, 1e9))
def test_the_t_mixture_says_nothing_after_one_reward(reward: float, candidate: float) -> None:
    """One reward has no spread; the evidence starts at one, so nothing can be lost by looking from the start."""
    one = Samples(np.array([1.0]), np.array([reward]), np.array([0.0]))
    assert np.isneginf(real.log_evidence(one, np.array([candidate])))[0]


@unhurried
@given(shift=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3), distance=st.floats(-5.0, 5.0))
def test_the_t_mixture_knows_no_unit(shift: float, scale: float, distance: float) -> None:
    """Shifting and stretching rewards and candidate together changes nothing."""
    counts = np.array([12.0])
    plain = real.log_evidence(Samples(counts, np.array([0.0]), np.array([11.0])), np.array([distance]))
    moved_samples = Samples(counts, np.array([shift]), np.array([11.0 * scale**2]))
    moved = real.log_evidence(moved_samples, np.array([shift + scale * distance]))
    np.testing.assert_allclose(plain, moved, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rewards", [2, 3, 5, 20, 200])
def test_the_t_mixture_is_worth_one_under_gaussian_rewards(rewards: int) -> None:
    """By the distribution of Student's t: the average of T_n over it is one."""

    def weighted(statistic: float) -> float:
        sample = Samples(np.array([float(rewards)]), np.array([statistic / np.sqrt(rewards)]), np.array([rewards - 1.0]))
        return float(np.exp(real.log_evidence(sample, np.zeros(1)))[0] * student.pdf(statistic, rewards - 1))

    value, _ = quad(weighted, 0.0, np.inf, limit=500)
    assert 2.0 * value == pytest.approx(1.0, abs=1e-5)

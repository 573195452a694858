"""One bounded arm against another: tied bets are worth at most one under the null, and their least worth is never overstated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import comb

from service.inference import bounded
from service.inference.bounded_pairs import ALONE, BETS, EQUAL, QUARTER, SLOPE, WEIGHTS
from service.inference.pairs import evidence
from service.inference.samples import Floats, Samples
from tests.inference.arms import bounded as bounded_reward
from tests.inference.arms import unhurried


def whole_mixture(high: Samples, low: Samples, means: Floats, margin: float = 0.0) -> Floats:
    """Log E by its definition, every bet added up; one pair, many candidate means."""
    coins, candidates = (bounded.worst_coin(high), bounded.worst_coin(bounded.mirrored(low))), (means, 1.0 - margin - means)
    slopes = BETS[:, None] / (1.0 + BETS[:, None] * np.maximum(*candidates))
    (above, below), (above_quarter, below_quarter) = (
        [bounded.log_bet_wealth(coin, bets[:, None], at) for coin, at in zip(coins, candidates, strict=True)]
        for bets in (BETS, BETS / 4)
    )
    parts = [
        np.log(SLOPE) + sum(sloped(coin, slopes, at) for coin, at in zip(coins, candidates, strict=True)),
        np.log(EQUAL - SLOPE) + above + below,
        np.log(QUARTER) + above + below_quarter,
        np.log(QUARTER) + above_quarter + below,
        np.log(ALONE) + above,
        np.log(ALONE) + below,
    ]
    terms = np.concatenate([np.log(WEIGHTS)[:, None] + part for part in parts])
    log_sum: Floats = np.logaddexp.reduce(terms, axis=0)
    return log_sum


def sloped(coin: bounded.Coin, slopes: Floats, means: Floats) -> Floats:
    """The log wealth of the coin's rewards by the factors 1 + k (X - m)."""
    tails = coin.counts - coin.heads
    found: Floats = coin.heads * np.log1p(slopes * (coin.size - means)) + tails * np.log1p(-slopes * means)
    return found


def sample(rewards: float, mean: float, spread: float) -> Samples:
    """One arm, its variance a part of the largest that its mean allows."""
    return Samples(np.array([rewards]), np.array([mean]), np.array([rewards * spread * mean * (1 - mean)]))


def test_the_weights_of_the_mixture_sum_to_one() -> None:
    """Otherwise the wealth would not start at one."""
    assert WEIGHTS.sum() * (EQUAL + 2 * QUARTER + 2 * ALONE) == pytest.approx(1.0)
    assert 0.0 < SLOPE < EQUAL


@pytest.mark.parametrize(("low", "high", "mean"), [(0.0, 1.0, 0.3), (0.2, 0.9, 0.5), (0.0, 0.1, 0.02), (0.4, 0.6, 0.55)])
def test_tied_bets_are_worth_at_most_one_where_the_means_are_equal(low: float, high: float, mean: float) -> None:
    """Rewards of two values around the mean, over all outcomes of nine and of six of them."""
    chance, expected = (mean - low) / (high - low), 0.0
    for ones in range(10):
        for others in range(7):
            probability = comb(9, ones) * chance**ones * (1 - chance) ** (9 - ones)
            probability *= comb(6, others) * chance**others * (1 - chance) ** (6 - others)
            first, second = (
                Samples(
                    np.array([float(count)]),
                    np.array([low + (high - low) * hits / count]),
                    np.array([hits * (1 - hits / count) * (high - low) ** 2]),
                )
                for count, hits in ((9, ones), (6, others))
            )
            expected += probability * float(np.exp(whole_mixture(first, second, np.array([mean]))[0]))
    assert expected <= 1.0 + 1e-9


@unhurried
@given(
    counts=st.tuples(st.floats(2, 1e12), st.floats(2, 1e12)),
    means=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
    spreads=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
    level=st.floats(1e-6, 0.2),
    margin=st.sampled_from([0.0, 0.0, 0.01, 0.2, -0.01, -0.2]),
)
def test_what_is_shown_is_shown_at_every_common_mean(
    counts: tuple[float, float], means: tuple[float, float], spreads: tuple[float, float], level: float, margin: float
) -> None:
    """Also outside the two sample means, for any counts and margin, means of 0 and 1 and no spread included."""
    low, high = (sample(np.rint(n), mean, spread) for mean, n, spread in sorted(zip(means, counts, spreads, strict=True)))
    part = float(evidence(bounded_reward(), high, low, np.array([level]), margin)[0])
    assert 0.0 <= part <= 1.0
    if part == 1.0:
        first, last = max(0.0, -margin), min(1.0, 1.0 - margin)
        around = np.linspace(low.means[0] - margin - 0.01, high.means[0] + 0.01, 1001)
        grid = np.unique(np.clip(np.concatenate([np.linspace(first, last, 1001), around]), first, last))
        assert whole_mixture(high, low, grid, margin).min() >= -np.log(level) - 1e-6


@pytest.mark.parametrize(
    ("better", "worse", "deviation"),
    [(0.5, 0.4, 0.16), (0.05, 0.04, 0.06), (0.41, 0.40, 0.02), (0.95, 0.9, 0.05), (0.013, 0.01, 0.02)],
)
@pytest.mark.parametrize("ratio", [0.2, 1.0, 5.0])
def test_what_is_true_at_every_common_mean_is_shown_with_few_rewards_more(
    better: float, worse: float, deviation: float, ratio: float
) -> None:
    """Neither the bets that are left out nor the bounds on cells and beyond them hold a verdict up by more than 5%."""
    level = np.array([0.01])

    def arms(rewards: float) -> tuple[Samples, Samples]:
        return (
            Samples(np.array([rewards * ratio]), np.array([better]), np.array([rewards * ratio * deviation**2])),
            Samples(np.array([rewards]), np.array([worse]), np.array([rewards * deviation**2])),
        )

    around = np.linspace(2.0 * worse - better, 2.0 * better - worse, 301)
    grid = np.unique(np.clip(np.concatenate([around, np.linspace(0.0, 1.0, 201)]), 1e-6, 1.0 - 1e-6))
    enough, few = 1e6, 1.0
    while enough > 1.01 * few:
        middle = np.sqrt(few * enough)
        few, enough = (few, middle) if whole_mixture(*arms(middle), grid).min() >= -np.log(level[0]) else (middle, enough)
    assert evidence(bounded_reward(), *arms(1.05 * enough), level)[0] == 1.0


@unhurried
@given(
    counts=st.integers(50, 10**6).flatmap(lambda count: st.tuples(st.just(count), st.integers(count // 5, count * 5))),
    middle=st.floats(0.1, 0.9),
    spread=st.floats(0.05, 1.0),
    distance=st.floats(3.0, 7.0),
)
def test_the_part_is_that_of_the_least_common_mean(
    counts: tuple[int, int], middle: float, spread: float, distance: float
) -> None:
    """About, once there is some evidence: a few means are tried, and bets far from the data are left out."""
    gap = distance * np.sqrt(spread * middle * (1 - middle) * sum(1 / count for count in counts))
    if gap > 0.1:
        return
    high, low = (sample(float(count), middle + side * gap / 2, spread) for count, side in zip(counts, (1, -1), strict=True))
    candidates = np.clip(np.linspace(low.means[0] - gap, high.means[0] + gap, 3001), 0.0, 1.0)
    least = float(whole_mixture(high, low, candidates).min())
    if least > 3.0:
        part = float(evidence(bounded_reward(), high, low, np.exp(np.array([-40.0])))[0])
        assert least - 2.0 <= part * 40.0 <= 1.02 * least + 0.3


def test_both_ends_of_the_range_are_alike() -> None:
    """Counting from the other end exchanges the arms and changes nothing."""
    high, low, level = sample(500.0, 0.4, 0.5), sample(900.0, 0.35, 0.4), np.array([0.01])
    plain = evidence(bounded_reward(), high, low, level)
    mirrored = evidence(bounded_reward(), bounded.mirrored(low), bounded.mirrored(high), level)
    np.testing.assert_allclose(plain, mirrored, rtol=1e-9)
    assert 0.0 < plain[0] < 1.0

"""Forecasts by playing on: sooner for a clear lead, never for equals, sooner again where less is worthwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from service.domain import PolicySpec, RewardSpec
from service.inference.samples import Floats, Samples
from service.simulation.futures import Forecast, Situation, forecast, leader_levels, possible_means

BINARY = RewardSpec("binary")


def situation(shares: list[float], rewards: float, reward: RewardSpec = BINARY, margin: float = 0.0, **policy: Any) -> Situation:  # noqa: ANN401 - a policy's parameters
    """Arms with these means, all with as many rewards, of a coin's variance."""
    arms = len(shares)
    means, counts = np.array(shares), np.full(arms, rewards)
    return Situation(
        reward=reward,
        policy=PolicySpec(**policy),
        samples=Samples(counts, means, counts * 0.25),
        draws=counts.astype(np.int64),
        floors=np.zeros(arms),
        levels=leader_levels(np.zeros(arms, np.int64), np.ones(arms, np.bool_), 0.05),
        margin=margin,
    )


def beats_control(given: Situation, control: int) -> Situation:
    """The same, where it is enough to beat this arm."""
    return replace(given, control=control, control_levels=np.full(len(given.draws), 0.01))


def median_of(given: Situation) -> float:
    """Infinite where most futures have no verdict."""
    median = of(given).median
    return np.inf if median is None else median


def of(given: Situation) -> Forecast:
    """With a generator of its own."""
    return forecast(given, np.random.default_rng(5))


def test_a_verdict_that_is_there_takes_no_draws() -> None:
    """All of the futures begin with it."""
    assert of(situation([0.2, 0.8], 500.0)).high == 0


def test_a_verdict_that_is_kept_takes_no_draws() -> None:
    """Whatever the rewards show by now."""
    found = of(replace(situation([0.5, 0.5], 500.0), decided=True))
    assert (found.low, found.median, found.high) == (0, 0, 0)
    assert found.probability_within(0) == 1.0
    assert found.shortfall > 0


def test_what_was_found_before_need_not_be_shown_again() -> None:
    """A close rival that is out leaves the far one to be shown; a leader that is out leaves its place to another."""
    given = situation([0.5, 0.49, 0.4], 400.0)
    assert median_of(replace(given, out=np.array([False, True, False]))) < median_of(given)
    beaten = situation([0.9, 0.5, 0.1], 400.0)
    drifted = of(replace(beaten, out=np.array([True, False, False])))  # the contrary is drift, and no verdict
    assert (drifted.median, drifted.high, drifted.never) == (None, None, False)  # which says little after so few rewards
    assert of(replace(beaten, out=np.array([False, True, False]))).high == 0


def test_to_beat_the_control_takes_less_than_to_beat_everybody() -> None:
    """Two good arms are not told apart for long, but the control is beaten soon; the control cannot beat itself."""
    given = situation([0.4, 0.5, 0.5], 400.0)
    assert median_of(beats_control(given, 0)) < median_of(given)
    assert median_of(beats_control(given, 2)) == median_of(given)


def test_the_chance_rises_with_the_draws_to_half_at_the_median() -> None:
    """It is the share of the futures that have their verdict by then."""
    found = of(situation([0.4, 0.5], 400.0))
    assert found.median is not None
    assert found.low is not None
    assert found.probability_within(0) <= found.probability_within(found.low) < found.probability_within(found.median)
    assert found.probability_within(found.median) >= 0.5


def test_the_range_holds_the_median_and_a_wider_lead_is_shown_sooner() -> None:
    """As it should be."""
    wide, narrow = of(situation([0.4, 0.5], 400.0)), of(situation([0.45, 0.5], 400.0))
    assert wide.low is not None
    assert wide.median is not None
    assert wide.high is None or wide.low <= wide.median <= wide.high
    assert narrow.median is None or wide.median < narrow.median


def test_equals_take_many_times_as_long_as_so_far_but_are_soon_good_enough() -> None:
    """Without a gap only a difference that did not show yet can be found; what is worthwhile gives all futures a verdict."""
    found = of(situation([0.5, 0.5, 0.5], 20_000.0))
    assert found.median is None or found.median > 5 * 60_000
    assert found.high is None
    assert of(situation([0.5, 0.5, 0.5], 2_000.0, margin=0.1)).high is not None


def with_real_rewards(rates: list[float], rewards: int, seed: int, margin: float = 0.0) -> Situation:
    """Binary rewards as they fall."""
    given = situation(rates, float(rewards), margin=margin, sharpness=2.0, guard=0.5)
    means = np.random.default_rng(seed).binomial(rewards, rates) / rewards
    return replace(given, samples=Samples(given.samples.counts, means, rewards * means * (1.0 - means)))


@pytest.mark.parametrize("arms", [2, 10])
def test_equal_arms_with_many_rewards_probably_never_have_a_verdict(arms: int) -> None:
    """In most cases; with what is worthwhile they soon have one."""
    found = [of(with_real_rewards([0.1] * arms, 120_000, seed)).never for seed in range(6)]
    assert sum(found) >= 4
    assert not of(with_real_rewards([0.1] * arms, 120_000, 1, margin=0.005)).never


@pytest.mark.parametrize(
    ("rates", "rewards"),
    [([0.1, 0.12], 200), ([0.1, 0.1, 0.1, 0.1, 0.13], 1_000), ([0.1, 0.102], 1_000_000)],
)
def test_arms_that_differ_are_not_told_that_there_is_never_a_verdict(rates: list[float], rewards: int) -> None:
    """Early, when chance still hides the difference, and late, when it is small but shows."""
    assert not any(of(with_real_rewards(rates, rewards, seed)).never for seed in range(4))


def test_the_shortfall_is_what_the_leader_may_lack_and_falls_with_rewards() -> None:
    """In reward units, not negative, small once the leader is clear."""
    early, late = of(situation([0.4, 0.5, 0.45], 50.0)), of(situation([0.4, 0.5, 0.45], 5_000.0))
    assert 0.0 <= late.shortfall < early.shortfall < 0.1


@pytest.mark.parametrize("kind", ["binary", "bounded", "real"])
@pytest.mark.parametrize("goal", ["maximize", "minimize"])
@pytest.mark.parametrize("policy", ["simple_tracking", "almost_tracking", "uniform"])
def test_every_kind_goal_and_policy_has_a_forecast(kind: Any, goal: Any, policy: str) -> None:  # noqa: ANN401 - parametrised words
    """And a lead of a quarter with a hundred rewards each does not take for ever."""
    found = of(situation([0.3, 0.55], 100.0, RewardSpec(kind, goal, 0.0, 1.0), kind=policy))
    assert found.median is not None
    assert found.median < 10_000


def test_arms_without_rewards_or_spread_and_huge_rewards_are_taken() -> None:
    """Nothing overflows, and what cannot be told is None."""
    for samples in (
        Samples(np.array([3.0, 0.0]), np.array([1.0, 0.0]), np.zeros(2)),
        Samples(np.array([5.0, 5.0]), np.array([1e100, -1e100]), np.zeros(2)),
        Samples(np.array([1e12, 1e12]), np.array([0.5, 0.5]), np.array([2.5e11, 2.5e11])),
    ):
        given = situation([0.0, 0.0], 1.0, RewardSpec("real"))
        found = of(Situation(given.reward, given.policy, samples, given.draws, given.floors, given.levels, 0.0))
        assert found.low is None or found.low >= 0
        assert np.isfinite(found.shortfall)


def test_means_are_pulled_together_only_as_far_as_chance_explains_them() -> None:
    """Ten arms that differ as their errors do come closer; ten that differ far more stay where they are."""

    def reach(shares: Floats) -> float:
        counts = np.full(10, 400.0)
        centres, _, _ = possible_means(BINARY, Samples(counts, shares, counts * shares * (1 - shares)))
        return float((centres.max() - centres.min()) / (shares.max() - shares.min()))

    assert reach(0.3 + 0.023 * np.linspace(-1.5, 1.5, 10)) < 0.7
    assert reach(np.linspace(0.1, 0.5, 10)) > 0.95


def test_the_same_statistics_have_the_same_forecast() -> None:
    """Nothing but the generator is random."""
    assert of(situation([0.4, 0.5], 300.0)) == of(situation([0.4, 0.5], 300.0))

"""The error estimate, number by number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import RewardSpec
from service.inference.error_estimate import error_estimate
from tests.inference.arms import BINARY, REAL, Arms, arms_of, rewards_between, unhurried


def estimate(reward: RewardSpec, arms: Arms, leader: int, active: list[bool] | None = None) -> float | None:
    """All arms active unless said."""
    switched_on = np.array(active if active is not None else [True] * len(arms.counts))
    return error_estimate(reward, *arms, leader=leader, active=switched_on)


def normal_tail(distance: float) -> float:
    """Phi(-distance)."""
    return 0.5 * math.erfc(distance / math.sqrt(2))


def test_it_adds_up_the_pairwise_normal_tails() -> None:
    """Real rewards: v is the unbiased variance."""
    arms = Arms(np.array([10, 20, 30]), np.array([1.0, 0.5, 0.9]), np.array([1.0, 2.0, 3.0]))
    expected = normal_tail(0.5 / math.sqrt(0.1 + 0.1)) + normal_tail(0.1 / math.sqrt(0.1 + 0.1))
    assert estimate(REAL, arms, 0) == pytest.approx(expected)


def test_binary_arms_use_a_share_pulled_off_the_edge() -> None:
    """With p = (S + 1/2)/(n + 1) an arm of all zeros is not certain."""
    arms = arms_of([0.0] * 10, [0.0, 1.0] * 5)
    shares = [0.5 / 11, 5.5 / 11]
    variance = sum(share * (1 - share) / 10 for share in shares)
    assert estimate(BINARY, arms, 1) == pytest.approx(normal_tail(0.5 / math.sqrt(variance)))


def test_it_is_null_until_each_active_arm_has_two_rewards() -> None:
    """A disabled arm does not hold it up."""
    arms = arms_of([1.0, 0.0], [1.0], [0.0, 0.0])
    assert estimate(BINARY, arms, 0) is None
    assert estimate(BINARY, arms, 0, [True, False, True]) is not None


def test_one_active_arm_cannot_be_wrong() -> None:
    """Nothing else is left to be better."""
    assert estimate(BINARY, arms_of([1.0], [0.0]), 0, [True, False]) == 0.0


def test_zero_spread_counts_half_when_tied_and_nothing_when_ahead() -> None:
    """No division by zero."""
    assert estimate(REAL, arms_of([1.0, 1.0], [1.0, 1.0]), 0) == 0.5
    assert estimate(REAL, arms_of([2.0, 2.0], [1.0, 1.0]), 0) == 0.0


def test_it_never_exceeds_guessing() -> None:
    """(K - 1)/K at most."""
    assert estimate(REAL, arms_of(*[[0.0, 1.0]] * 8), 0) == 7 / 8


def test_where_smaller_is_better_the_lead_is_turned_round() -> None:
    """The same numbers with the goal reversed and mirrored give the same estimate."""
    up, down = arms_of([3.0, 5.0], [1.0, 2.0]), arms_of([-3.0, -5.0], [-1.0, -2.0])
    assert estimate(REAL, up, 0) == estimate(RewardSpec("real", "minimize"), down, 0)


@unhurried
@given(rewards=st.lists(rewards_between(-1e100, 1e100).filter(lambda sequence: len(sequence) > 1), min_size=1, max_size=5))
def test_it_is_a_probability_for_rewards_of_any_size(rewards: list[list[float]]) -> None:
    """No NaN, no warning, from 0 to (K - 1)/K."""
    arms = arms_of(*rewards)
    value = estimate(REAL, arms, int(np.argmax(arms.means)))
    assert value is not None
    assert 0.0 <= value <= (len(rewards) - 1) / len(rewards)

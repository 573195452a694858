"""How alpha is spent: never more than there is, and no share ever changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.inference.levels import arm_levels, pair_levels, spending
from tests.inference.arms import unhurried


def test_first_arms_share_nine_tenths_and_later_arms_the_rest() -> None:
    """0.9 alpha evenly, then 0.1 alpha / (m (m + 1))."""
    levels = arm_levels(np.array([0, 0, 0, 1, 2]), 0.05)
    assert levels.tolist() == pytest.approx([0.015, 0.015, 0.015, 0.0025, 0.1 * 0.05 / 6])


@unhurried
@given(first=st.integers(1, 50), later=st.integers(0, 50), alpha=st.floats(1e-4, 0.5))
def test_shares_never_change_and_never_exceed_alpha(first: int, later: int, alpha: float) -> None:
    """Adding an arm leaves all other shares as they were."""
    added = np.concatenate([np.zeros(first, int), np.arange(1, later + 2)])
    more, fewer = arm_levels(added, alpha), arm_levels(added[:-1], alpha)
    assert (more[:-1] == fewer).all()
    assert more.sum() <= alpha * (1 + 1e-12)


def test_the_spending_sequence_sums_to_one() -> None:
    """Over any number of later things."""
    assert float(spending(np.arange(1_000_000)).sum()) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(("first", "later"), [(2, 0), (2, 3), (10, 0), (10, 40), (300, 5)])
def test_pairs_spend_at_most_alpha_on_the_rivals_that_can_be_best(first: int, later: int) -> None:
    """The sum in the proof: for each leader every rank of the first arms at its highest level, and every later arm."""
    added = np.concatenate([np.zeros(first, int), np.arange(1, later + 1)])
    spent = 0.0
    for leader in range(0, first + later, 1 + first // 20):
        everyone = np.ones(first + later, np.bool_)
        rivals = np.flatnonzero(np.arange(first + later) != leader)
        first_rivals, later_rivals = rivals[rivals < first], rivals[rivals >= first]
        for rank in range(len(first_rivals)):
            active = everyone.copy()
            active[first_rivals[:rank]] = False
            spent += pair_levels(added, active, leader, 0.05)[first_rivals[rank]]
        spent += pair_levels(added, everyone, leader, 0.05)[later_rivals].sum()
    assert 0.0 < spent <= 0.05

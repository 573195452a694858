"""The drift notice: recent rewards against earlier ones of the same arm."""

from __future__ import annotations

import numpy as np
import pytest

from service.domain import RewardSpec
from service.inference.drift import Period, drifting
from tests.inference.arms import BINARY, REAL, arms_of, bounded

KINDS = [BINARY, bounded(), REAL]
OFTEN, SELDOM = [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]
LEVELS = np.full(2, 0.02)


@pytest.mark.parametrize("reward", KINDS)
def test_a_mean_that_moved_is_noticed_and_a_stable_one_is_not(reward: RewardSpec) -> None:
    """Up or down alike."""
    earlier, recent = arms_of(SELDOM * 64, SELDOM * 64), arms_of(OFTEN * 40, SELDOM * 40)
    assert drifting(reward, Period(*earlier), Period(*recent), LEVELS).tolist() == [True, False]
    earlier, recent = arms_of(OFTEN * 64, OFTEN * 64), arms_of(SELDOM * 40, OFTEN * 40)
    assert drifting(reward, Period(*earlier), Period(*recent), LEVELS).tolist() == [True, False]


@pytest.mark.parametrize("reward", KINDS)
def test_little_data_never_alarms(reward: RewardSpec) -> None:
    """No rewards on one side, one reward each, or an earlier block below sixteen."""
    for earlier, recent in [((), ()), (OFTEN, ()), ((), OFTEN), ((1.0,), (0.0,)), ([1.0] * 8, [0.0] * 1000)]:
        arms = Period(*arms_of(earlier, earlier)), Period(*arms_of(recent, recent))
        assert not drifting(reward, *arms, LEVELS).any()


def test_a_stable_arm_alarms_no_more_often_than_its_level() -> None:
    """400 binary arms, 600 rewards each, a look after every reward, dyadic blocks: at most 5% plus chance ever alarm."""
    rng = np.random.default_rng(11)
    rewards = rng.random((600, 400)) < 0.2
    total, before = np.zeros(400), np.zeros(400)
    block, alarmed = 1, np.zeros(400, np.bool_)
    for count, row in enumerate(rewards, start=1):
        total += row
        if count == 2 * block:
            block, before = count, total.copy()
        since = count - block
        if since:
            earlier = Period(np.full(400, block), before / block, np.full(400, np.nan))
            recent = Period(np.full(400, since), (total - before) / since, np.full(400, np.nan))
            alarmed |= drifting(BINARY, earlier, recent, np.full(400, 0.05))
    assert alarmed.mean() <= 0.05

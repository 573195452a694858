"""What `auto` becomes."""

from __future__ import annotations

from typing import get_args

import pytest

from service.domain import RewardKind
from service.policy.automatic import AutomaticPolicy


@pytest.mark.parametrize("reward", get_args(RewardKind))
@pytest.mark.parametrize("arms", [2, 10, 10_000])
def test_whatever_it_becomes_keeps_the_guarantee_and_the_floors(reward: RewardKind, arms: int) -> None:
    """Sharper weights only with a guard, ties by their limit, floors as promises, and the seed that was given."""
    became = AutomaticPolicy(7).resolved(reward, arms)
    assert became.seed == 7
    assert became.keeps_floors
    assert became.ties == "limit"
    assert became.sharpness == 1.0 or became.guard > 0.0

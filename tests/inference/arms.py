"""Arms for the tests: moments of given rewards, and strategies that make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from service.domain import RewardSpec
from service.exact import Moments
from service.inference.samples import Floats, Ints

# The first call of numpy or scipy functions is slow, and so is a busy machine: neither is a failure.
unhurried = settings(deadline=None)

BINARY = RewardSpec("binary")
REAL = RewardSpec("real")


def bounded(minimum: float = 0.0, maximum: float = 1.0) -> RewardSpec:
    """A bounded reward."""
    return RewardSpec("bounded", minimum=minimum, maximum=maximum)


class Arms(NamedTuple):
    """What the functions of the inference take, one entry an arm."""

    counts: Ints
    means: Floats
    variances: Floats


def arms_of(*rewards: Sequence[float]) -> Arms:
    """The arms that saw these rewards, by way of the exact sums, as in the service."""
    moments = [Moments() for _ in rewards]
    for index, sequence in enumerate(rewards):
        for reward in sequence:
            moments[index] = moments[index].with_reward(reward)
    means = [each.mean() for each in moments]
    variances = [each.variance() for each in moments]
    return Arms(
        np.array([each.count for each in moments]),
        np.array([np.nan if mean is None else mean for mean in means]),
        np.array([np.nan if variance is None else variance for variance in variances]),
    )


def binary_rewards() -> st.SearchStrategy[list[float]]:
    """Some zeros and ones, none included."""
    return st.lists(st.sampled_from([0.0, 1.0]), max_size=40)


def rewards_between(minimum: float, maximum: float) -> st.SearchStrategy[list[float]]:
    """Rewards within bounds, the bounds themselves often."""
    value = st.one_of(st.sampled_from([minimum, maximum]), st.floats(minimum, maximum))
    return st.lists(value, max_size=30)

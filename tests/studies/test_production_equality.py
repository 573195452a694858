"""The compiled tracking policies decide as service/policy does, draw for draw, on the same random stream."""

from __future__ import annotations

import numpy as np
import pytest

from service.simulation.environments import Environment, instance, of_means
from studies.production_equality import first_difference

pytestmark = pytest.mark.study
DRAWS = 2000
POLICIES = (
    "simple_tracking",
    "simple_tracking:ties=paper",
    "almost_tracking:ties=paper",
    "almost_tracking:realised",
    "simple_tracking:s=1.5:ties=paper",
    "simple_tracking:s=2:guard=0.5",
    "almost_tracking:s=1.25",
    "almost_tracking:s=3:guard=0.25",
)


def binary(arms: int) -> Environment:
    """Binary arms, whose means tie all the time."""
    rng = np.random.default_rng(arms)
    means = [*rng.uniform(0.05, 0.5, arms - 1), 0.6]
    return of_means([float(mean) for mean in rng.permutation(means)], "bernoulli", f"binary {arms}")


ENVIRONMENTS = (
    of_means([0.3, 0.0], label="two"),
    instance("movielens"),
    instance("9"),
    instance("open_bandit"),
    binary(2),
    binary(31),
    binary(40),
    binary(80),
    instance("7").with_traffic(300, 0.1),
    binary(40).with_traffic(100, 0.2),
)


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda world: f"{world.label} delay {world.delay}")
@pytest.mark.parametrize("policy", POLICIES)
def test_same_arms_as_production(environment: Environment, policy: str) -> None:
    """2,000 draws, 80 combinations of arms, rewards, policies and traffic: never another arm."""
    assert first_difference(environment, policy, DRAWS, seed=environment.arms) is None


def test_a_difference_would_be_seen() -> None:
    """The comparison can fail: two sharpnesses part after the first round."""
    environment = instance("9")
    first = first_difference(environment, "simple_tracking", DRAWS, seed=1, against="simple_tracking:s=1.5")
    assert first is not None
    assert first >= environment.arms


def test_the_rule_of_ties_shows_where_means_tie() -> None:
    """Binary arms part under the two rules, so the comparison above does hold each of them to its own."""
    assert first_difference(binary(31), "simple_tracking", DRAWS, seed=1, against="simple_tracking:ties=paper") is not None

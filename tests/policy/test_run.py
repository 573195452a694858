"""A run makes the choices of its policy, one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.policy.base import Evidence, Floats, Policy
from service.policy.floor_keeper import FloorKeeper
from service.policy.run import FEW
from service.policy.simple_tracking import SimpleTracking
from service.policy.uniform import Uniform
from service.policy.weights import LIMIT, WeightRule

_DRAWS = 300
POLICIES = [
    SimpleTracking(),
    SimpleTracking(WeightRule(2.0, 0.5, "limit")),
    Uniform(),
    FloorKeeper(SimpleTracking(LIMIT)),
    FloorKeeper(Uniform()),
]


@pytest.mark.parametrize(
    "policy",
    [
        SimpleTracking(),
        SimpleTracking(WeightRule(2.0, 0.5, "limit")),
        Uniform(),
        FloorKeeper(SimpleTracking(LIMIT)),
        FloorKeeper(Uniform()),
    ],
)
@given(data=st.data())
def test_a_run_chooses_as_the_policy_does(policy: Policy, data: st.DataObject) -> None:
    """Same arms, same reasons, ties included: few means of few values make many of them."""
    arms = data.draw(st.integers(1, FEW))
    means = data.draw(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")]), min_size=arms, max_size=arms))
    counts = data.draw(st.lists(st.integers(1, 40), min_size=arms, max_size=arms))
    floors = data.draw(st.lists(st.sampled_from([0.0, 0.0, 0.01, 0.03]), min_size=arms, max_size=arms))
    evidence = Evidence(np.array(means), np.array(counts, np.int64), np.zeros(arms, np.bool_), np.array(floors))
    targets = policy.targets(evidence)
    run = policy.run(evidence, lambda: targets)
    assert run is not None
    for _ in range(_DRAWS):
        chosen, _plan = policy.choose(evidence, lambda: targets, None)
        assert run.next() == chosen
        evidence.draws[chosen.index] += 1


def test_counts_of_nothing_are_a_run_as_well() -> None:
    """A new epoch begins with no draw of its own, though every arm was drawn before."""
    evidence = Evidence(np.array([0.1, 0.2, 0.3]), np.zeros(3, np.int64), np.zeros(3, np.bool_), np.zeros(3))
    policy = SimpleTracking()
    run = policy.run(evidence, lambda: policy.targets(evidence))
    assert run is not None
    for _ in range(20):
        chosen, _plan = policy.choose(evidence, lambda: policy.targets(evidence), None)
        assert run.next() == chosen
        evidence.draws[chosen.index] += 1


@pytest.mark.parametrize(("arms", "undrawn"), [(FEW + 1, False), (3, True)])
def test_no_run_for_many_arms_or_before_each_was_drawn(arms: int, *, undrawn: bool) -> None:
    """There the policy itself chooses, and no target is computed in vain."""
    evidence = Evidence(np.zeros(arms), np.ones(arms, np.int64), np.full(arms, undrawn), np.zeros(arms))

    def never() -> Floats:
        raise AssertionError

    assert SimpleTracking().run(evidence, never) is None

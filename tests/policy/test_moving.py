"""Targets that move along with one mean after the other are the direct ones, within the bound that choices allow for."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.policy.base import Evidence
from service.policy.moving import MovingTargets
from service.policy.run import FEW
from service.policy.simple_tracking import SimpleTracking
from service.policy.weights import LIMIT, PAPER, WeightRule
from tests.policy.evidence import evidence_of, magnitudes

_BOUND = 1e-11
_RULES = [PAPER, LIMIT, WeightRule(1.5), WeightRule(2.0, 0.5, "limit"), WeightRule(3.0, 0.25)]
_unhurried = settings(deadline=None, max_examples=20)
_few_means = st.lists(magnitudes, min_size=2, max_size=FEW)


@pytest.mark.parametrize("rule", _RULES)
@_unhurried
@given(means=_few_means, moves=st.lists(st.tuples(st.integers(0, FEW - 1), magnitudes), max_size=40))
def test_any_moves_lead_to_the_direct_targets(rule: WeightRule, means: list[float], moves: list[tuple[int, float]]) -> None:
    """Whatever moves, the best arm included, by whatever amount."""
    moving = MovingTargets.over(evidence_of(np.array(means)), rule)
    assert moving is not None
    for index, mean in moves:
        assert moving.move(index % len(means), mean)
        assert moving.targets() == pytest.approx(moving.direct(), abs=_BOUND)


@pytest.mark.parametrize("rule", _RULES)
@_unhurried
@given(data=st.data())
def test_many_small_moves_do_not_add_up(rule: WeightRule, data: st.DataObject) -> None:
    """A thousand draws of arms that are not the best, each a little worse than before."""
    arms = data.draw(st.integers(3, FEW))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    means = rng.random(arms)
    moving = MovingTargets.over(evidence_of(means), rule)
    assert moving is not None
    best = int(means.argmax())
    for _ in range(1_000):
        index = int(rng.integers(arms))
        if index != best:
            means[index] *= 1 - rng.random() / 100
            assert moving.move(index, float(means[index]))
    assert moving.targets() == pytest.approx(SimpleTracking(rule).targets(evidence_of(means)).tolist(), abs=_BOUND)


@pytest.mark.parametrize("rule", _RULES)
@_unhurried
@given(data=st.data())
def test_a_run_whose_draws_count_as_rewards_chooses_as_the_policy_does(rule: WeightRule, data: st.DataObject) -> None:
    """Whole counts of whole rewards, so that ties of means and of scores abound."""
    arms = data.draw(st.integers(2, 12))
    counts = np.array(data.draw(st.lists(st.integers(1, 9), min_size=arms, max_size=arms)), np.int64)
    sums = np.array([data.draw(st.integers(0, int(count))) for count in counts], np.float64)
    floors = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.0, 0.05]), min_size=arms, max_size=arms)))
    silence = data.draw(st.sampled_from([0.0, 1.0, 0.25]))
    policy = SimpleTracking(rule)
    evidence = Evidence(sums / counts, counts.copy(), np.zeros(arms, np.bool_), floors)
    first = policy.targets(evidence)
    run = policy.run(evidence, lambda: first)
    assert run is not None
    seen = Evidence(sums / counts, counts, np.zeros(arms, np.bool_), floors)
    for _ in range(300):
        chosen, _plan = policy.choose(seen, partial(policy.targets, seen), None)
        assert run.next() == chosen
        seen.draws[chosen.index] += 1
        sums[chosen.index] += silence
        seen.means[chosen.index] = sums[chosen.index] / seen.draws[chosen.index]
        assert run.moved(chosen.index, float(seen.means[chosen.index]))


def test_gaps_that_could_overflow_are_left_to_the_direct_formula() -> None:
    """So are arms without a mean."""
    assert MovingTargets.over(evidence_of(np.array([1e308, -1e308])), PAPER) is None
    assert MovingTargets.over(evidence_of(np.array([0.5, np.nan])), PAPER) is None
    moving = MovingTargets.over(evidence_of(np.array([0.5, 0.25])), PAPER)
    assert moving is not None
    assert not moving.move(0, -1e305)

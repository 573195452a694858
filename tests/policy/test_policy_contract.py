"""What every policy of the registry promises, whatever it is."""

from __future__ import annotations

from functools import partial
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.domain import PolicyKind, PolicySpec
from service.policy.base import Evidence, Floats, Policy, Reason
from service.policy.plan import Plan
from service.policy.registry import make_policy
from tests.policy.evidence import evidence_of, magnitudes

SPECS = [PolicySpec(kind, seed=11) for kind in get_args(PolicyKind)] + [
    PolicySpec("almost_tracking", seed=11, sufficiency_by="realised", batch_size=30),
    PolicySpec("simple_tracking", sharpness=1.5),
    PolicySpec("simple_tracking", sharpness=2.0, guard=0.5, ties="limit"),
    PolicySpec("almost_tracking", seed=11, sharpness=3.0, guard=0.25, ties="limit"),
]
every_policy = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.kind}-{spec.sharpness}-{spec.sufficiency_by}")


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    """Any evidence: arms never drawn, arms without a reward, floors."""
    arms = draw(st.integers(1, 12))
    draws = draw(st.lists(st.integers(0, 50), min_size=arms, max_size=arms))
    means = np.array(draw(st.lists(magnitudes, min_size=arms, max_size=arms)))
    silent = np.array(draw(st.lists(st.booleans(), min_size=arms, max_size=arms))) | (np.array(draws) == 0)
    floors = draw(st.lists(st.floats(0, 1 / arms), min_size=arms, max_size=arms))
    return evidence_of(np.where(silent, np.nan, means), draws, floors)


def play(policy: Policy, true_means: Floats, draws: int, seed: int = 0) -> list[tuple[int, Reason]]:
    """A run in which every reward is told before the next choice."""
    rng = np.random.default_rng(seed)
    arms = len(true_means)
    counts, sums = np.zeros(arms, np.int64), np.zeros(arms)
    plan: Plan | None = None
    chosen: list[tuple[int, Reason]] = []
    for _ in range(draws):
        means = np.array([total / count if count else np.nan for total, count in zip(sums, counts, strict=True)])
        evidence = Evidence(means, counts.copy(), counts == 0, np.zeros(arms))
        choice, plan = policy.choose(evidence, partial(policy.targets, evidence), plan)
        chosen.append((choice.index, choice.reason))
        counts[choice.index] += 1
        sums[choice.index] += rng.normal(true_means[choice.index])
    return chosen


@every_policy
@given(evidence=evidences())
@settings(max_examples=40)
def test_targets_are_shares_above_the_floors(spec: PolicySpec, evidence: Evidence) -> None:
    """Targets are finite, sum to one, and no arm is below its floor."""
    targets = make_policy(spec).targets(evidence)
    assert np.isfinite(targets).all()
    assert abs(float(targets.sum()) - 1) <= 1e-12
    assert (targets >= evidence.floors).all()


@every_policy
@given(evidence=evidences())
@settings(max_examples=40)
def test_a_choice_is_an_arm_and_changes_no_evidence(spec: PolicySpec, evidence: Evidence) -> None:
    """The same evidence gives the same choice, and is not touched."""
    policy = make_policy(spec)
    before = [array.copy() for array in (evidence.means, evidence.draws, evidence.undrawn, evidence.floors)]
    first, _ = policy.choose(evidence, lambda: policy.targets(evidence), None)
    again, _ = policy.choose(evidence, lambda: policy.targets(evidence), None)
    assert first == again
    assert 0 <= first.index < len(evidence.draws)
    assert first.reason in get_args(Reason)
    for array, copy in zip((evidence.means, evidence.draws, evidence.undrawn, evidence.floors), before, strict=True):
        assert np.array_equal(array, copy, equal_nan=array.dtype == np.float64)


@every_policy
def test_every_arm_is_drawn_first(spec: PolicySpec) -> None:
    """The first K draws are the K arms in position order."""
    chosen = play(make_policy(spec), np.linspace(0, 1, 7), 7)
    assert [index for index, _ in chosen] == list(range(7))


@every_policy
def test_a_run_can_be_played_again(spec: PolicySpec) -> None:
    """Equal rewards, equal draws: the only randomness is the policy's own seed."""
    means = np.array([0.1, 0.5, 0.9, 0.85])
    assert play(make_policy(spec), means, 150) == play(make_policy(spec), means, 150)


@every_policy
def test_no_arm_is_starved(spec: PolicySpec) -> None:
    """Every arm goes on being drawn, the worst ones too."""
    chosen = [index for index, _ in play(make_policy(spec), np.array([5.0, 1.0, 0.9, 0.0]), 400)]
    assert min(chosen[-200:].count(arm) for arm in range(4)) >= 1


def test_uniform_is_a_round_robin() -> None:
    """Equal targets with ties to the lowest position go around."""
    chosen = [index for index, _ in play(make_policy(PolicySpec("uniform")), np.zeros(3), 9)]
    assert chosen == [0, 1, 2] * 3


def test_scores_within_the_tie_go_to_the_lowest_position() -> None:
    """A score less than 1e-9 below the largest counts as the largest; one further below does not."""
    policy = make_policy(PolicySpec("simple_tracking"))
    near = evidence_of(np.array([0.0, 0.0]), [10, 10])
    assert policy.choose(near, lambda: np.array([0.5, 0.5 + 0.9e-9]), None)[0].index == 0
    assert policy.choose(near, lambda: np.array([0.5, 0.5 + 1.1e-9]), None)[0].index == 1

"""Almost Tracking: how batches are planned and handed out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.policy.almost_tracking import AlmostTracking
from service.policy.base import Evidence
from service.policy.plan import Plan
from service.policy.weights import h1_weights
from tests.policy.evidence import evidence_of

MEANS = np.array([0.9, 0.5, 0.4, 0.1])


def plan_of(policy: AlmostTracking, evidence: Evidence, last: Plan | None = None) -> Plan:
    """The next plan for this evidence."""
    return policy.next_plan(evidence, lambda: policy.targets(evidence), last or Plan.before_first(len(evidence.draws)))


def hand_out(policy: AlmostTracking, evidence: Evidence, plan: Plan | None, draws: int) -> tuple[list[int], Plan | None]:
    """So many choices in a row."""
    chosen = []
    for _ in range(draws):
        choice, plan = policy.choose(evidence, lambda: policy.targets(evidence), plan)
        chosen.append(choice.index)
    return chosen, plan


def test_the_first_batch_draws_every_arm_alike() -> None:
    """Batch 1 holds floor(N/K) draws of each arm, and the remainder by the generator of batch 1."""
    even = plan_of(AlmostTracking(seed=5), evidence_of(np.full(4, np.nan), [0] * 4))
    assert (even.batch, even.planned.tolist()) == (1, [2, 2, 2, 2])
    uneven = plan_of(AlmostTracking(seed=5, batch_size=11), evidence_of(np.full(4, np.nan), [0] * 4))
    extra = np.random.default_rng([5, 1]).choice(4, size=3, p=np.full(4, 0.25))
    assert uneven.planned.tolist() == [2 + int((extra == arm).sum()) for arm in range(4)]


def test_a_batch_holds_at_least_two_draws_an_arm() -> None:
    """A batch size below 2K (arms were added since) is raised to 2K, as the lemma needs it."""
    assert plan_of(AlmostTracking(seed=0, batch_size=4), evidence_of(MEANS)).planned.sum() == 8


def test_draws_are_handed_out_in_passes_over_the_positions() -> None:
    """Each arm with draws left once per pass, across the end of the pass."""
    policy = AlmostTracking(seed=0)
    counts = np.array([3, 1, 0, 2])
    plan = replace(Plan.before_first(4), batch=1, planned=counts, left=counts)
    chosen, after = hand_out(policy, evidence_of(MEANS), plan, 6)
    assert chosen == [0, 1, 3, 0, 3, 0]
    assert after is not None
    assert after.finished


@pytest.mark.parametrize(("by", "draws"), [("planned", [2, 2, 2, 2]), ("realised", [20, 2, 2, 2])])
def test_only_insufficient_arms_are_planned(by: str, draws: list[int]) -> None:
    """An arm whose share is above its weight / C_suf waits; the share is the planned average, or draws/t."""
    policy = AlmostTracking(seed=1, sufficiency_by=by)  # type: ignore[arg-type] # parametrized
    evidence = evidence_of(MEANS, draws)
    first = plan_of(policy, evidence_of(MEANS, [0] * 4))
    second = plan_of(policy, evidence, first)
    weights = h1_weights(MEANS)
    shares = np.full(4, 0.25) if by == "planned" else np.array(draws) / sum(draws)
    waiting = shares > weights / 0.999 + 1e-9
    assert waiting.any()
    assert (second.planned[waiting] == 0).all()
    assert (second.planned[~waiting] > 0).all()
    assert second.planned.sum() == 8
    expected = np.where(waiting, 0, weights) / weights[~waiting].sum()
    assert second.weight_sums == pytest.approx(0.25 + expected, abs=1e-15)


def test_after_a_change_of_arms_the_test_is_left_out() -> None:
    """The first batch after a restart is planned from the targets of all arms."""
    policy = AlmostTracking(seed=1)
    plan = plan_of(policy, evidence_of(MEANS), Plan(7, np.zeros(4, np.int64), np.zeros(4, np.int64), 0, np.zeros(4), 0))
    assert (plan.batch, plan.averaged) == (8, 1)
    assert plan.weight_sums == pytest.approx(h1_weights(MEANS), abs=1e-15)
    assert (plan.planned > 0).all()


def test_a_new_arm_is_drawn_once_beside_the_plan() -> None:
    """An arm without any draw that the running plan does not hold comes first, and takes nothing from the plan."""
    policy = AlmostTracking(seed=1)
    counts = np.array([2, 2, 2, 0])
    plan = replace(Plan.before_first(4), batch=1, planned=counts, left=counts)
    choice, after = policy.choose(evidence_of(MEANS, [1, 1, 1, 0]), lambda: MEANS, plan)
    assert (choice.index, choice.reason) == (3, "warmup")
    assert after is plan


def test_the_same_seed_plans_the_same() -> None:
    """A plan is a function of the evidence, the seed and the batch number."""
    means = np.linspace(0, 1, 30)
    plans = [plan_of(AlmostTracking(seed=9), evidence_of(means)).planned.tolist() for _ in range(2)]
    assert plans[0] == plans[1]


def test_floors_shape_every_batch() -> None:
    """With floors batch 1 is split by w' as well."""
    plan = plan_of(AlmostTracking(seed=3, batch_size=100), evidence_of(np.full(4, np.nan), [0] * 4, [0.7, 0, 0, 0]))
    assert plan.planned[0] >= 1 + int(0.775 * 96)
    assert plan.planned.sum() == 100

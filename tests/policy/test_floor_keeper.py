"""Floors are promises that every policy keeps."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import PolicySpec
from service.policy.base import Evidence, Floats, Ints
from service.policy.floor_keeper import FloorKeeper
from service.policy.plan import Plan
from service.policy.registry import make_policy
from service.policy.simple_tracking import SimpleTracking

DRAWS = 2_000
SPECS = [
    PolicySpec("simple_tracking", ties="limit", keeps_floors=True),
    PolicySpec("simple_tracking", sharpness=3.0, guard=0.5, ties="paper", keeps_floors=True),
    PolicySpec("uniform", keeps_floors=True),
    PolicySpec("almost_tracking", seed=3, keeps_floors=True),
    PolicySpec("almost_tracking", seed=3, sufficiency_by="realised", keeps_floors=True),
    PolicySpec("almost_tracking", seed=3, batch_size=1_000_000, keeps_floors=True),
    PolicySpec("almost_tracking", seed=3, batch_size=1_500, sufficiency=0.01, keeps_floors=True),
]
FLOORS = [
    [0.9, 0.05, 0.05],
    [0.7, 0.2, 0.1],
    [0.0, 0.0, 1.0],
    [0.1, 0.0, 0.0, 0.0, 0.0],
    [0.3, 0.3, 0.3, 0.0],
    [0.0] * 400 + [0.9],
    [1 / 60] * 60,
]


def drawn_counts(spec: PolicySpec, floors: list[float], draws: int = DRAWS) -> Ints:
    """The draws of each arm after every draw of a run with binary rewards, each told before the next choice."""
    arms = len(floors)
    policy = make_policy(spec, has_floors=True)
    rng, rates = np.random.default_rng(arms), np.linspace(0.6, 0.1, arms)
    counts, sums, course = np.zeros(arms, np.int64), np.zeros(arms), np.zeros((draws, arms), np.int64)
    plan: Plan | None = None
    for draw in range(draws):
        means = np.divide(sums, counts, out=np.full(arms, np.nan), where=counts > 0)
        evidence = Evidence(means, counts.copy(), counts == 0, np.array(floors))
        choice, plan = policy.choose(evidence, partial(policy.targets, evidence), plan)
        counts[choice.index] += 1
        sums[choice.index] += rng.random() < rates[choice.index]
        course[draw] = counts
    return course


@pytest.mark.parametrize("floors", FLOORS, ids=lambda floors: f"{len(floors)} arms, {max(floors):.2f}")
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{spec.kind}-{spec.ties}-{spec.batch_size}-{spec.sufficiency_by}")
def test_from_a_thousand_draws_on_no_arm_is_more_than_one_percent_below_its_floor(spec: PolicySpec, floors: list[float]) -> None:
    """Whatever the policy, its batches and the number of arms; and long before, no arm is behind by more than is proved."""
    course = drawn_counts(spec, floors)
    totals = np.arange(1, DRAWS + 1)[:, None]
    behind = np.array(floors) * totals - course
    assert (behind[999:] <= 0.01 * totals[999:]).all()
    assert behind.max() <= 1 + np.log(np.count_nonzero(floors)) + 1e-9


def test_batches_alone_would_break_the_promise() -> None:
    """An experiment from before floors were kept goes on as it was: two thirds for an arm that was promised nine tenths."""
    kept = drawn_counts(PolicySpec("almost_tracking", seed=3, keeps_floors=True), [0.9, 0.05, 0.05])[-1]
    policy = make_policy(PolicySpec("almost_tracking", seed=3), has_floors=True)
    assert not isinstance(policy, FloorKeeper)
    before = drawn_counts(PolicySpec("almost_tracking", seed=3), [0.9, 0.05, 0.05])[-1]
    assert kept[0] >= 0.89 * DRAWS
    assert before[0] < 0.75 * DRAWS


def test_without_floors_nothing_is_between_the_experiment_and_its_policy() -> None:
    """Most experiments promise nothing, and their draws pay nothing for it."""
    assert isinstance(make_policy(PolicySpec(keeps_floors=True)), SimpleTracking)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12), st.data())
def test_debts_stay_small_whatever_the_policy_does(shares: list[float], data: st.DataObject) -> None:
    """A policy that always draws the same arm, or any, cannot bring another below its floor by more than 1 + ln K draws."""
    total = sum(shares)
    floors: Floats = np.array(shares) / max(total, 1.0)
    arms = len(floors)
    counts = np.zeros(arms, np.int64)
    stubborn = data.draw(st.integers(0, arms - 1))
    policy = FloorKeeper(SimpleTracking())
    for draw in range(1, 200):
        evidence = Evidence(np.zeros(arms), counts.copy(), np.zeros(arms, np.bool_), floors)
        choice, _ = policy.choose(evidence, lambda: np.eye(arms)[stubborn], None)
        counts[choice.index] += 1
        assert (floors * draw - counts).max() <= 1 + np.log(arms) + 1e-9

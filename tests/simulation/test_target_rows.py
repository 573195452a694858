"""Targets and draws of many runs side by side."""

from __future__ import annotations

import numpy as np
import pytest

from service.domain import PolicySpec
from service.policy.automatic import AutomaticPolicy
from service.policy.base import Evidence, Floats
from service.policy.registry import make_policy
from service.policy.weights import WeightRule
from service.simulation.target_rows import splitter_of, targets_of_rows, whole

AUTO = AutomaticPolicy(0).resolved("binary", 6)


def means_of(runs: int, arms: int, seed: int = 1) -> Floats:
    """Shares of successes among few rewards, so that many tie; some arms have no reward yet."""
    rng = np.random.default_rng(seed)
    means = rng.binomial(4, 0.4, (runs, arms)) / 4.0
    means[rng.random((runs, arms)) < 0.15] = np.nan
    means[0], means[1] = np.nan, 0.25
    return means


@pytest.mark.parametrize("spec", [AUTO, PolicySpec(ties="paper"), PolicySpec(ties="limit"), PolicySpec(sharpness=3.0, guard=0.0)])
@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_every_row_has_the_policy_s_targets(spec: PolicySpec, floor: float) -> None:
    """The formula over a table of means is the policy's own, ties and silent arms included."""
    means, floors = means_of(200, 6), np.full(6, floor)
    rows = targets_of_rows(means, floors, WeightRule(spec.sharpness, spec.guard, spec.ties))
    policy, never = make_policy(spec), np.zeros(6, np.bool_)
    for row, targets in zip(means, rows, strict=True):
        evidence = Evidence(row, np.ones(6, np.int64), never, floors)
        assert targets == pytest.approx(policy.targets(evidence), abs=1e-12)


@pytest.mark.parametrize("kind", ["simple_tracking", "almost_tracking", "uniform"])
def test_a_step_is_handed_out_to_the_last_draw(kind: str) -> None:
    """Whole draws, none negative, and as many in every run as the step has."""
    rng, floors = np.random.default_rng(2), np.array([0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
    splitter = splitter_of(PolicySpec(kind, ties="limit"), floors, 50)  # type: ignore[arg-type]
    draws = np.ones((50, 6))
    for step in (1, 1, 7, 100, 1_000):
        new = whole(splitter.split(means_of(50, 6, step), draws, step), step, rng)
        assert (new >= 0.0).all()
        assert (new == np.floor(new)).all()
        assert (new.sum(axis=1) == step).all()
        draws += new


def test_tracking_fills_up_what_is_furthest_behind() -> None:
    """Equal targets and unequal draws: the arm with the fewest draws gets the most, and all that are behind end alike."""
    splitter = splitter_of(PolicySpec("uniform"), np.zeros(3), 1)
    parts = splitter.split(np.zeros((1, 3)), np.array([[100.0, 60.0, 50.0]]), 12)
    assert parts[0] == pytest.approx([0.0, 1.0, 11.0])


def test_no_arm_grows_by_more_than_a_quarter_in_a_step() -> None:
    """An arm that leads by luck with few rewards does not take a whole long step."""
    splitter = splitter_of(AUTO, np.zeros(3), 1)
    parts = splitter.split(np.array([[0.9, 0.1, 0.1]]), np.array([[40.0, 5_000.0, 5_000.0]]), 500)
    assert parts[0, 0] == pytest.approx(10.0)
    assert parts.sum() == pytest.approx(500.0)

"""What plans are held against draws as the service does, and the committed figures say that plans hold."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.plan_accuracy import RESULTS, WITHIN, settings
from benchmarks.plan_demo import demo_prospects
from benchmarks.plan_reference import advance, new_state, rules_of, seed_rewards
from service.policy.base import Evidence
from service.policy.registry import make_policy
from tests.docs.texts import text_of


@pytest.mark.parametrize("place", [2, 3, 4, 5, 9, 11])
def test_the_compiled_experiment_draws_what_the_service_draws(place: int) -> None:
    """Arm for arm, with floors, delays and silence, for 400 draws."""
    prospect = settings()[place].prospect
    if prospect.delay:
        object.__setattr__(prospect, "delay", 7)
        object.__setattr__(prospect, "window", None if prospect.window is None else 400)
    rules, arms = rules_of(prospect), len(prospect.means)
    state = new_state(1, arms, max(rules.lag, 400))
    seed_rewards(1)
    advance(np.arange(1), 0, 400, rules, state)
    policy, floors = make_policy(prospect.policy, has_floors=any(prospect.floors)), np.array(prospect.floors)
    draws, told, sums = np.zeros(arms, np.int64), np.zeros(arms, np.int64), np.zeros(arms)
    for draw in range(400):
        if draw > prospect.delay:
            arm = state.drawn[0, draw - 1 - prospect.delay]
            told[arm] += 1
            sums[arm] += state.values[0, draw - 1 - prospect.delay]
        over = told if prospect.silence is None else draws
        with np.errstate(invalid="ignore"):
            means = prospect.reward.sign * (sums + (prospect.silence or 0.0) * (draws - told)) / over
        evidence = Evidence(means, draws, draws == 0, floors)
        choice, _ = policy.choose(evidence, lambda known=evidence: policy.targets(known), None)  # type: ignore[misc]
        assert choice.index == state.drawn[0, draw], draw
        draws[choice.index] += 1


def test_the_measured_plans_are_within_their_bound() -> None:
    """Twelve settings and the demo's experiments: each median of plan and form within 15% of those played, and on the page."""
    measured = {row["setting"]: row for row in json.loads(RESULTS.read_text())["settings"]}
    assert list(measured) == [setting.name for setting in settings()] + list(demo_prospects())
    assert len(settings()) == 12
    for name, row in measured.items():
        for answer in ("plan", "form"):
            assert abs(row[answer]["ratio"] - 1.0) <= WITHIN, (name, answer)
        assert f"| {name} | {row['draws']:,} |" in text_of("docs/planning.md")

"""The studies play the service's own policies: side by side they draw the same arms as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.inference_coverage import misses, separated_runs
from benchmarks.inference_instances import instances
from benchmarks.inference_lockstep import DEFAULT, PLAYERS, UNIFORM, Player, h1_weights_of_rows, play
from service.domain import RewardKind, Ties
from service.inference.intervals import confidence_intervals
from service.inference.levels import pair_levels
from service.inference.separation import all_shown, rival_evidence
from service.policy.almost_tracking import AlmostTracking
from service.policy.automatic import AutomaticPolicy
from service.policy.base import Evidence
from service.policy.registry import make_policy
from service.policy.simple_tracking import SimpleTracking
from service.policy.uniform import Uniform
from service.policy.weights import WeightRule, h1_weights

RUNS, DRAWS, SEED = 4, 300, 3


@pytest.mark.parametrize("player", PLAYERS, ids=lambda player: player.name)
def test_every_run_follows_the_policy_draw_for_draw(player: Player) -> None:
    """Before each draw the policy itself is asked, with the means and counts of that run."""
    instance = instances()[0]
    arms = len(instance.means)
    policies: dict[str, list[Any]] = {
        "simple_tracking": [SimpleTracking(player.rule)] * RUNS,
        "almost_tracking": [AlmostTracking(SEED * RUNS + run, rule=player.rule) for run in range(RUNS)],
        "uniform": [Uniform()] * RUNS,
    }
    plans: list[Any] = [None] * RUNS
    counts, means = np.zeros((RUNS, arms), np.int64), np.full((RUNS, arms), np.nan)
    for state, drawn in play(instance, player, RUNS, DRAWS, SEED, as_served=True):
        for run, policy in enumerate(policies[player.policy]):
            evidence = Evidence(means[run], counts[run], counts[run] == 0, np.zeros(arms))
            choice, plans[run] = policy.choose(evidence, lambda policy=policy, seen=evidence: policy.targets(seen), plans[run])
            assert choice.index == drawn[run]
        counts = state.counts.copy()
        means = np.where(counts > 0, state.means, np.nan)


@pytest.mark.parametrize("reward", ["binary", "bounded", "real"])
@pytest.mark.parametrize("arms", [2, 10, 1000])
def test_the_default_of_the_studies_is_what_auto_becomes(reward: RewardKind, arms: int) -> None:
    """For every kind of rewards and number of arms: were `auto` to choose by them, so would the studies have to."""
    assert make_policy(AutomaticPolicy(0).resolved(reward, arms)) == SimpleTracking(DEFAULT.rule)


@pytest.mark.parametrize("ties", ["paper", "limit"])
@pytest.mark.parametrize(("sharpness", "guard"), [(1.0, 0.0), (2.0, 0.5), (1.5, 0.0), (2.0, 1.0)])
def test_weights_of_many_runs_are_those_of_each(ties: Ties, sharpness: float, guard: float) -> None:
    """Every rule, with two and more means tied for the best, all tied, and none."""
    rule = WeightRule(sharpness, guard, ties)
    means = np.random.default_rng(SEED).integers(0, 4, (200, 6)) / 4.0
    means[0], means[1] = 0.5, np.arange(6) / 7.0
    np.testing.assert_allclose(h1_weights_of_rows(means, rule), [h1_weights(row, rule) for row in means], rtol=1e-12)


def test_the_study_separates_as_the_service_does() -> None:
    """The closest rival first and then the others, for all runs at once: the same verdicts as the recommendation's."""
    verdicts = set()
    for instance in (instances()[index] for index in (0, 4, 9)):
        *_, (state, _) = play(instance, UNIFORM, 30, 1500, SEED)
        arms = len(instance.means)
        leaders = state.leaders()
        added, active = np.zeros(arms, np.int64), np.ones(arms, np.bool_)
        levels = pair_levels(added, active, 0, 0.5)
        shown = separated_runs(state, np.arange(30), leaders, levels)
        for run in range(30):
            counts, means = state.counts[run], state.means[run]
            variances = state.squares[run] / (counts - 1)
            leader = int(leaders[run])
            parts = rival_evidence(
                instance.reward, counts, means, variances, leader=leader, active=active, added=added, alpha=0.5
            )
            verdict = all_shown(parts)
            assert verdict == (run in shown)
            verdicts.add(verdict)
    assert verdicts == {True, False}


@pytest.mark.parametrize("index", [0, 3, 4, 5, 9])
def test_the_study_counts_a_miss_where_the_interval_leaves_the_mean_out(index: int) -> None:
    """Asked about wrong means, which are soon left out, evidence and interval agree but for a few close calls."""
    instance = instances()[index]
    arms, levels = np.arange(400) % 10, np.full(400, 0.05)
    counted, left_out = [], []
    for step, (state, _) in enumerate(play(instance, UNIFORM, 400, 1500, SEED)):
        if step % 50 == 49:
            sample = state.samples(np.arange(400), arms)
            variances = sample.squares / np.maximum(sample.counts - 1.0, 1.0)
            moments = (sample.counts.astype(np.int64), sample.means, variances)
            lower, upper = confidence_intervals(instance.reward, *moments, levels)
            for wrong in (0.6 * instance.means[arms], 1.0 - 0.6 * (1.0 - instance.means[arms])):
                counted.append(misses(instance, sample, wrong, levels))
                left_out.append((wrong < lower) | (wrong > upper))
    assert 1000 < np.sum(left_out) < 23_000
    assert np.sum(np.array(counted) != np.array(left_out)) <= 40

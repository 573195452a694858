"""Experiments played from the first draw to the verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.domain import RewardSpec
from service.policy.automatic import AutomaticPolicy
from service.simulation.prospect import Prospect
from service.simulation.verdict_runs import VerdictRuns

AUTO = AutomaticPolicy(0).resolved("binary", 3)
EASY = Prospect(reward=RewardSpec("binary"), policy=AUTO, means=(0.2, 0.2, 0.5), floors=(0.0, 0.0, 0.0))


def played(prospect: Prospect, runs: int = 60, *, until_separated: bool = True) -> VerdictRuns:
    """To the end."""
    made = VerdictRuns(prospect, runs, np.random.default_rng(3))
    made.play(until_separated=until_separated)
    return made


def test_every_run_ends_and_nearly_always_with_the_best_arm() -> None:
    """At 95% confidence fewer than 5% are wrong; the best arm gets the largest share."""
    ends = played(EASY, 200).separated
    assert np.isfinite(ends.draws).all()
    assert ends.right.mean() >= 0.95
    assert ends.share.mean() > 1 / 3


@pytest.mark.parametrize(
    "reward", [RewardSpec("real"), RewardSpec("real", "minimize"), RewardSpec("bounded", "minimize", minimum=-10.0, maximum=10.0)]
)
def test_all_kinds_and_goals_find_their_best(reward: RewardSpec) -> None:
    """Where less is better the lowest mean is the best."""
    means = (1.0, 1.0, 1.0 + reward.sign * 0.8)
    ends = played(replace(EASY, reward=reward, means=means, deviation=1.0)).separated
    assert np.isfinite(ends.draws).all()
    assert ends.right.mean() >= 0.95


def test_late_rewards_delay_the_verdict_by_at_least_their_delay() -> None:
    """Nobody can know before the rewards are there; silence that counts waits for its window."""
    plain = np.median(played(EASY).separated.draws)
    late = played(replace(EASY, delay=2_000)).separated.draws
    silent = played(replace(EASY, delay=10, window=3_000, silence=0.0)).separated.draws
    assert late.min() > 2_000
    assert np.median(late) > plain + 1_000
    assert silent.min() > 3_000


def test_lost_rewards_take_more_draws() -> None:
    """Half of the rewards never come: about twice the draws."""
    plain = np.median(played(EASY, 200).separated.draws)
    lost = np.median(played(replace(EASY, loss=0.5), 200).separated.draws)
    assert 1.6 * plain < lost < 2.5 * plain


def test_a_floor_is_kept() -> None:
    """An arm with a floor of 60% gets it, whatever it is worth."""
    ends = played(replace(EASY, floors=(0.0, 0.0, 0.6))).separated
    assert ends.share.min() > 0.58


def test_what_is_worthwhile_decides_sooner_and_among_equals_at_all() -> None:
    """Decided is never after separated; equal arms are decided and not separated."""
    both = played(replace(EASY, worthwhile=0.2))
    assert (both.decided.draws <= both.separated.draws).all()
    assert np.median(both.decided.draws) < np.median(both.separated.draws)
    equals = played(replace(EASY, worthwhile=0.2).among_equals(), until_separated=False)
    assert np.isfinite(equals.decided.draws).all()


def test_enough_is_enough() -> None:
    """With nine of ten runs at their end the others are let go."""
    made = VerdictRuns(EASY, 100, np.random.default_rng(3))
    heard: list[float] = []
    made.play(until_separated=True, enough=0.9, moved=heard.append)
    assert 90 <= np.isfinite(made.separated.draws).sum() < 100
    assert heard == sorted(heard)
    assert heard[-1] == 1.0


def test_hopeless_experiments_end_too() -> None:
    """A billion draws are the most, and cost a few hundred steps."""
    ends = played(replace(EASY, means=(0.5, 0.5, 0.500001)), 10).separated
    assert np.isinf(ends.draws).any()

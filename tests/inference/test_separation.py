"""Separation: the leader against every other active arm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import RewardSpec
from service.inference import bounded as bounded_rewards
from service.inference import real
from service.inference.bounded_pairs import BETS, log_evidence_ceiling
from service.inference.levels import pair_levels
from service.inference.pairs import evidence, independent_product_goal, real_ceiling
from service.inference.samples import Samples
from service.inference.separation import all_shown, rival_evidence
from tests.inference.arms import BINARY, REAL, Arms, arms_of, bounded, rewards_between, unhurried

KINDS = [BINARY, bounded(), REAL]
MIXED = [0.0, 1.0, 1.0, 1.0]


def is_separated(
    reward: RewardSpec,
    arms: Arms,
    leader: int | None,
    active: list[bool] | None = None,
    *,
    alpha: float = 0.05,
    margin: float = 0.0,
) -> bool:
    """With the first arms only, all active unless said."""
    count = len(arms.counts)
    switched_on = np.array(active if active is not None else [True] * count)
    added = np.zeros(count, np.int64)
    return all_shown(rival_evidence(reward, *arms, leader=leader, active=switched_on, added=added, alpha=alpha, margin=margin))


def clear_winner(times: int = 300) -> Arms:
    """The last of three arms wins three rewards of four, the others one."""
    return arms_of([1.0, 0.0, 0.0, 0.0] * times, [0.0, 0.0, 0.0, 1.0] * times, MIXED * times)


@pytest.mark.parametrize("reward", KINDS)
def test_a_clear_winner_is_separated_and_a_narrow_one_is_not(reward: RewardSpec) -> None:
    """Many rewards and a wide gap suffice, few rewards do not."""
    assert is_separated(reward, clear_winner(), 2)
    assert not is_separated(reward, clear_winner(3), 2)


@pytest.mark.parametrize("kind", ["binary", "bounded", "real"])
def test_where_smaller_is_better_the_smallest_mean_wins(kind: str) -> None:
    """The mirrored experiment is separated alike."""
    reward = RewardSpec(kind, "minimize", 0.0, 1.0)  # type: ignore[arg-type]  # parametrised over the kinds
    arms = arms_of(MIXED * 300, MIXED * 300, [1.0, 0.0, 0.0, 0.0] * 300)
    assert is_separated(reward, arms, 2)
    assert not is_separated(reward, arms, 0)


@pytest.mark.parametrize("reward", KINDS)
def test_fewer_than_two_active_arms_are_never_separated(reward: RewardSpec) -> None:
    """There is nothing to be better than."""
    assert not is_separated(reward, clear_winner(), 2, [False, False, True])
    assert not is_separated(reward, arms_of([1.0, 0.0] * 500), 0)


@pytest.mark.parametrize("reward", KINDS)
def test_without_data_or_leader_nothing_is_separated(reward: RewardSpec) -> None:
    """No rewards, a rival without rewards, one reward each, no leader, a disabled leader."""
    assert not is_separated(reward, arms_of([], []), None)
    assert not is_separated(reward, arms_of([1.0] * 500, []), 0)
    assert not is_separated(reward, arms_of([1.0], [0.0]), 0)
    assert not is_separated(reward, clear_winner(), 2, [True, True, False])


@pytest.mark.parametrize("reward", [*KINDS, RewardSpec("binary", "minimize"), RewardSpec("real", "minimize")])
def test_equals_are_good_enough_and_never_separated(reward: RewardSpec) -> None:
    """Three arms of the same mean: none is better, and with many rewards none can be better by a tenth; few say nothing."""
    many, few = arms_of(*[[0.0, 1.0] * 3000] * 3), arms_of(*[[0.0, 1.0] * 20] * 3)
    assert not is_separated(reward, many, 0)
    assert is_separated(reward, many, 0, margin=0.1)
    assert not is_separated(reward, few, 0, margin=0.1)


@pytest.mark.parametrize("reward", KINDS)
def test_a_rival_that_is_better_by_what_matters_stands_in_the_way(reward: RewardSpec) -> None:
    """However many rewards: the second arm is better than the first by a quarter."""
    arms = arms_of([0.0, 0.0, 0.0, 1.0] * 2000, [0.0, 0.0, 1.0, 1.0] * 2000)
    assert not is_separated(reward, arms, 0, margin=0.2)
    assert is_separated(reward, arms, 0, margin=0.3)
    assert is_separated(reward, arms, 1, margin=0.2)


@unhurried
@given(first=rewards_between(0.0, 1.0), second=rewards_between(0.0, 1.0), margin=st.floats(0.001, 0.9))
def test_a_margin_never_takes_evidence_away(first: list[float], second: list[float], margin: float) -> None:
    """What is separated is decided; up to what the search for the least evidence gives away."""
    arms = arms_of([*first, *first, *first], second)
    for reward in (bounded(), REAL):
        active, added = np.ones(2, np.bool_), np.zeros(2, np.int64)
        plain, eased = (
            rival_evidence(reward, *arms, leader=0, active=active, added=added, alpha=0.2, margin=each)[1]
            for each in (0.0, margin)
        )
        assert eased >= plain - 0.25


@pytest.mark.parametrize("reward", KINDS)
def test_evidence_tells_how_far_each_rival_is_and_who_holds_it_up(reward: RewardSpec) -> None:
    """Nothing for the leader and for disabled arms, all of it for a rival far behind, a part for the closest one."""
    arms = arms_of([0.0, 0.0, 0.0, 1.0] * 225, [0.0, 1.0, 1.0] * 300, MIXED * 225, MIXED * 225)
    active, added = np.array([True, True, True, False]), np.zeros(4, np.int64)
    parts = rival_evidence(reward, *arms, leader=2, active=active, added=added, alpha=1e-6)
    assert np.isnan(parts).tolist() == [False, False, True, True]
    assert parts[0] == 1.0
    assert 0.0 < parts[1] < 1.0


@pytest.mark.parametrize("reward", KINDS)
def test_a_disabled_arm_need_not_be_beaten(reward: RewardSpec) -> None:
    """The promise is about the active arms."""
    arms = arms_of([1.0, 0.0, 0.0, 0.0] * 300, MIXED * 300, MIXED * 300)
    assert not is_separated(reward, arms, 2)
    assert is_separated(reward, arms, 2, [True, False, True])


def test_equal_real_rewards_are_no_evidence() -> None:
    """An arm of all zeros has no scale to judge by; the others are as they are."""
    assert not is_separated(REAL, arms_of([0.0] * 1000, MIXED * 300), 1)
    assert not is_separated(REAL, arms_of([0.0] * 1000, [1.0] * 1000), 1)


def test_the_level_is_the_leaders_share_and_later_rivals_cost_more() -> None:
    """An arm added later has a smaller level, so beating it takes more."""
    levels = pair_levels(np.array([0, 0, 1]), np.ones(3, np.bool_), 0, 0.05)
    assert levels.tolist() == pytest.approx([0.0225 * 0.81, 0.0225 * 0.81, 0.0225 * 0.05])
    one_disabled = pair_levels(np.array([0, 0, 1]), np.array([True, False, True]), 0, 0.05)
    assert one_disabled[2] == levels[2]
    assert one_disabled[0] == pytest.approx(0.0225 * 0.9 * 0.05)


@unhurried
@given(first=rewards_between(-5.0, 5.0), second=rewards_between(-5.0, 5.0), alpha=st.floats(0.01, 0.5))
def test_separation_agrees_with_a_fine_grid_of_common_means(first: list[float], second: list[float], alpha: float) -> None:
    """If it says yes, no common mean on a fine grid has less evidence against it than asked."""
    arms = arms_of([*first, *first, *first], second)
    leader = 0 if arms.counts[1] == 0 or (arms.counts[0] and arms.means[0] > arms.means[1]) else 1
    if is_separated(REAL, arms, leader, alpha=alpha):
        samples = Samples.of(*arms)
        grid = np.linspace(samples.means.min(), samples.means.max(), 2001)
        evidence = sum(real.log_evidence(samples.pick(np.array([arm])), grid) for arm in (0, 1))
        goal = independent_product_goal(np.array([-np.log(0.9 * alpha / 2 * 0.81)]))[0]
        assert np.min(evidence) >= goal - 1e-9


def test_the_goal_for_a_product_of_independent_evidence_solves_its_equation() -> None:
    """(1 + log z)/z = alpha."""
    goals = -np.log(np.array([0.05, 1e-6, 1e-12]))
    log_z = independent_product_goal(goals)
    np.testing.assert_allclose((1 + log_z) * np.exp(-log_z), np.exp(-goals), rtol=1e-9)
    for goal, alone in zip(goals, log_z, strict=True):  # many that are alike are solved once
        assert independent_product_goal(np.full(3, goal)).tolist() == [alone] * 3


@unhurried
@given(
    counts=st.tuples(st.integers(2, 10**6), st.integers(2, 10**6)),
    gap=st.floats(0.0, 30.0),
    spreads=st.tuples(st.floats(0.0, 100.0), st.floats(0.001, 100.0)),
    short=st.floats(-1e-6, 1.0),
)
def test_real_rewards_are_shown_only_if_no_common_mean_has_less_evidence(
    counts: tuple[int, int], gap: float, spreads: tuple[float, float], short: float
) -> None:
    """For gaps of any size in standard errors, and levels right where the least evidence on a fine grid is."""
    low, high = (
        Samples(np.array([float(count)]), np.array([0.0]), np.array([count * spread]))
        for count, spread in zip(counts, spreads, strict=True)
    )
    high = high.shifted(gap * float(np.sqrt(low.squares[0] / counts[0] ** 2 + high.squares[0] / counts[1] ** 2)))
    grid = np.linspace(0.0, high.means[0], 4001)
    least = float(np.min(real.log_evidence(high, grid) + real.log_evidence(low, grid)))
    asked = least + 1e-6 * (1.0 + abs(least)) - short
    level = (1.0 + asked) * np.exp(-asked)  # of which this is the goal
    if 0.5 < asked < 600.0:
        shown = float(evidence(REAL, high, low, np.array([level]))[0]) == 1.0
        assert not shown or least >= asked


@unhurried
@given(
    counts=st.tuples(st.integers(2, 10**6), st.integers(2, 10**6)),
    means=st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)),
    spreads=st.tuples(st.floats(0.001, 1.0), st.floats(0.001, 1.0)),
)
def test_the_cheap_first_look_never_rules_out_a_pair_that_could_be_shown(
    counts: tuple[int, int], means: tuple[float, float], spreads: tuple[float, float]
) -> None:
    """The evidence on a grid of common means does not exceed the ceiling, for real and for bounded rewards."""
    low, high = (
        Samples(np.array([float(count)]), np.array([mean]), np.array([count * spread * mean * (1 - mean)]))
        for mean, count, spread in sorted(zip(means, counts, spreads, strict=True))
    )
    grid = np.linspace(low.means[0], high.means[0], 4001)
    least = np.min(real.log_evidence(high, grid) + real.log_evidence(low, grid))
    assert least <= real_ceiling(high, low)[0] * 1.001 + 1e-6
    above = bounded_rewards.log_bet_wealth(bounded_rewards.worst_coin(high), BETS[:, None], grid)
    below = bounded_rewards.log_bet_wealth(bounded_rewards.worst_coin(bounded_rewards.mirrored(low)), BETS[:, None], 1.0 - grid)
    best = above.max(axis=0) + below.max(axis=0)
    ceilings = log_evidence_ceiling(high.pick(np.zeros(len(grid), int)), low.pick(np.zeros(len(grid), int)), grid)
    assert (best <= ceilings + 1e-6 * (1.0 + ceilings)).all()


def test_a_rival_is_judged_by_its_own_rewards_whatever_others_are_judged_with_it() -> None:
    """Where as many cells of means are open as there are rivals, two of them may belong to one rival."""
    counts, means = np.array([562, 465, 42, 82]), np.array([0.4664, 0.3136, 0.2535, 0.1988])
    arms = Arms(counts, means, np.array([0.09544, 0.0878, 0.01482, 0.08077]))
    everyone, first = np.ones(4, np.bool_), np.zeros(4, np.int64)
    parts = rival_evidence(bounded(), *arms, leader=0, active=everyone, added=first, alpha=0.05)
    assert parts[1] == parts[3] == 1.0
    assert parts[2] == pytest.approx(0.966, abs=0.001)


@pytest.mark.parametrize("arms", [2, 300])
@pytest.mark.parametrize("reward", [*KINDS, RewardSpec("binary", "minimize")], ids=["binary", "bounded", "real", "minimize"])
def test_rivals_with_the_same_rewards_are_judged_as_each_of_them_alone(reward: RewardSpec, arms: int) -> None:
    """Few kinds of rivals: without rewards, of one, at both ends, equal to the leader, a little and far behind, of a billion."""
    kinds = np.array(
        [[0, 0.0], [1, 0.0], [1, 1.0], [50, 0.0], [50, 1.0], [900, 0.3], [900, 0.29], [900, 0.2], [10**9, 0.1], [9, 0.3]]
    )
    rng = np.random.default_rng(arms)
    chosen = kinds[np.concatenate([[5], rng.integers(0, len(kinds), arms - 1)])]
    counts, means = chosen[:, 0].astype(np.int64), chosen[:, 1]
    variances, added = means * (1.0 - means), (np.arange(arms) % 3 == 2).astype(np.int64)
    known = {"leader": 0, "added": added, "alpha": 0.05}
    together = rival_evidence(reward, counts, means, variances, active=np.ones(arms, np.bool_), **known)
    samples, levels = Samples.of(counts, means, variances), pair_levels(added, np.ones(arms, np.bool_), 0, 0.05)
    for rival in range(1, arms):
        sides = samples.pick(np.array([0])), samples.pick(np.array([rival]))
        high, low = sides if reward.sign > 0 else sides[::-1]
        np.testing.assert_allclose(together[rival], evidence(reward, high, low, levels[[rival]])[0], rtol=1e-9)


@pytest.mark.parametrize("reward", KINDS, ids=["binary", "bounded", "real"])
def test_many_pairs_at_once_are_the_pairs_one_by_one(reward: RewardSpec) -> None:
    """In batches of every size, at levels that are only just attained or missed: there it is looked at most closely."""
    shown = []
    for seed in range(60):
        rng, pairs = np.random.default_rng(seed), 2 + seed % 11
        counts = np.rint(10 ** rng.uniform(1.0, 3.5, (2, pairs)))
        means = np.sort(rng.uniform(0.05, 0.95, (2, pairs)), axis=0)
        squares = counts * means * (1.0 - means) * rng.uniform(0.05, 1.0, (2, pairs))
        low, high = (Samples(counts[side], means[side], squares[side]) for side in (0, 1))
        attained = 40.0 * evidence(reward, high, low, np.full(pairs, np.exp(-40.0)))
        levels = np.exp(-np.maximum(attained, 0.5) * rng.uniform(0.97, 1.0, pairs))
        together = evidence(reward, high, low, levels)
        rows = np.arange(pairs)[:, None]
        alone = np.array([evidence(reward, high.pick(row), low.pick(row), levels[row])[0] for row in rows])
        np.testing.assert_allclose(together, alone, rtol=1e-9)
        shown += list(together == 1.0)
    assert 0.1 < np.mean(shown) < 0.9

"""The intervals: inside their bounds, around their means, and exactly where the evidence reaches the level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from service.domain import RewardSpec
from service.inference import binary, real
from service.inference import bounded as bounded_rewards
from service.inference.intervals import METHODS, confidence_intervals
from service.inference.samples import Floats, Samples
from tests.inference.arms import BINARY, REAL, Arms, arms_of, binary_rewards, bounded, rewards_between, unhurried

LEVEL = 0.005
WIDE = bounded(-3.0, 1e15)


def intervals(reward: RewardSpec, arms: Arms, level: float = LEVEL) -> tuple[Floats, Floats]:
    """All arms at one level."""
    return confidence_intervals(reward, *arms, np.full(len(arms.counts), level))


def test_every_reward_kind_names_its_method() -> None:
    """The method is fixed per kind, before any data."""
    assert set(METHODS) == {"binary", "bounded", "real"}


@pytest.mark.parametrize(("reward", "possible"), [(BINARY, (0.0, 1.0)), (WIDE, (-3.0, 1e15)), (REAL, (-np.inf, np.inf))])
def test_without_rewards_every_possible_mean_remains(reward: RewardSpec, possible: tuple[float, float]) -> None:
    """No data: the trivial interval, and no NaN."""
    lower, upper = intervals(reward, arms_of([], []))
    assert (lower.tolist(), upper.tolist()) == ([possible[0]] * 2, [possible[1]] * 2)


@unhurried
@given(rewards=st.lists(binary_rewards(), min_size=1, max_size=5), level=st.floats(1e-12, 0.5))
def test_binary_intervals_hold_their_mean_and_stay_in_the_unit_interval(rewards: list[list[float]], level: float) -> None:
    """0 <= lower <= mean <= upper <= 1 whatever the rewards."""
    _assert_sound(BINARY, arms_of(*rewards), level, 0.0, 1.0)


@unhurried
@given(rewards=st.lists(rewards_between(-3.0, 1e15), min_size=1, max_size=5), level=st.floats(1e-12, 0.5))
def test_bounded_intervals_hold_their_mean_and_stay_in_bounds(rewards: list[list[float]], level: float) -> None:
    """Minimum <= lower <= mean <= upper <= maximum, on a scale of 1e15 and with rewards at the bounds."""
    _assert_sound(WIDE, arms_of(*rewards), level, -3.0, 1e15)


@unhurried
@given(rewards=st.lists(rewards_between(-1e100, 1e100), min_size=1, max_size=5), level=st.floats(1e-12, 0.5))
def test_real_intervals_hold_their_mean(rewards: list[list[float]], level: float) -> None:
    """Lower <= mean <= upper for rewards of any allowed size."""
    _assert_sound(REAL, arms_of(*rewards), level, -np.inf, np.inf)


def _assert_sound(reward: RewardSpec, arms: Arms, level: float, minimum: float, maximum: float) -> None:
    lower, upper = intervals(reward, arms, level)
    assert not np.isnan(lower).any()
    assert not np.isnan(upper).any()
    assert (lower >= minimum).all()
    assert (upper <= maximum).all()
    seen = arms.counts > 0
    assert (lower[seen] <= arms.means[seen]).all()
    assert (arms.means[seen] <= upper[seen]).all()


@pytest.mark.parametrize("counts", [1, 7, 1000, 10**6])
def test_binary_bounds_lie_where_the_evidence_reaches_the_level(counts: int) -> None:
    """Inverting is right: the log evidence at either bound is log(1/level), or the bound is the end of the range."""
    ones = np.unique(np.array([0, 1, counts // 100, counts // 2, counts - 1, counts]).clip(0, counts))
    samples = Samples(np.full(len(ones), float(counts)), ones / counts, np.zeros(len(ones)))
    lower, upper = binary.bounds(samples, np.full(len(ones), LEVEL))
    inner = ones > 0
    np.testing.assert_allclose(binary.log_evidence(samples, lower)[inner], -np.log(LEVEL), rtol=1e-4)
    np.testing.assert_allclose(binary.log_evidence(samples, upper)[::-1][inner], -np.log(LEVEL), rtol=1e-4)
    assert lower[0] == 0.0
    assert upper[-1] == 1.0


def test_bounded_bounds_lie_where_the_whole_mixture_nearly_reaches_the_level() -> None:
    """Adding up a few odds only costs little: all of them together are at most 5% of the log level above it at the bound."""
    counts = np.array([50.0, 1000.0, 1e6, 1e9])
    for mean, deviation in [(0.5, 0.5), (0.5, 0.1), (0.05, 0.1), (0.97, 0.02)]:
        samples = Samples(counts, np.full(4, mean), counts * deviation**2)
        lower, upper = bounded_rewards.bounds(samples, np.full(4, LEVEL))
        everything = np.arange(len(bounded_rewards.ODDS))[:, None]
        below = bounded_rewards.log_wealth(samples, everything, lower)
        above = bounded_rewards.log_wealth(bounded_rewards.mirrored(samples), everything, 1.0 - upper)
        goal = np.log(2.0 / LEVEL)
        inner = np.concatenate([below[lower > 0.0], above[upper < 1.0]])
        assert ((inner >= goal * (1 - 1e-9)) & (inner <= 1.05 * goal)).all()


@pytest.mark.parametrize(
    ("mean", "deviation", "most"),
    [(0.5, 0.289, 1.53), (0.5, 0.1, 1.79), (0.5, 0.035, 2.45), (0.05, 0.073, 1.93), (0.4, 0.022, 3.1)],
)
def test_bounded_intervals_are_not_much_wider_than_for_one_look(mean: float, deviation: float, most: float) -> None:
    """Beside Student's, after 1,000 rewards, each of ten arms at 95%: what docs/inference.md tells."""
    level, counts = 0.0045, np.array([1000.0])
    lower, upper = bounded_rewards.bounds(Samples(counts, np.array([mean]), counts * deviation**2), np.array([level]))
    one_look = -2.0 * stdtrit(999, level / 2) * deviation / np.sqrt(1000)
    assert float(upper[0] - lower[0]) <= most * one_look


def test_real_bounds_lie_where_the_evidence_reaches_the_level() -> None:
    """The closed form inverts the t-mixture."""
    counts = np.array([10.0, 11.0, 1000.0, 1e9])
    samples = Samples(counts, np.full(4, -7.0), counts * 9.0)
    lower, upper = real.bounds(samples, np.full(4, LEVEL))
    np.testing.assert_allclose(real.log_evidence(samples, lower), -np.log(LEVEL), rtol=1e-6)
    np.testing.assert_allclose(real.log_evidence(samples, upper), -np.log(LEVEL), rtol=1e-6)


def test_equal_real_rewards_say_nothing_yet() -> None:
    """Without any spread the scale is unknown: no bound, rather than a point that looks certain."""
    lower, upper = intervals(REAL, arms_of([0.0] * 50, [3.0]))
    assert np.isneginf(lower).all()
    assert np.isposinf(upper).all()


def test_all_zeros_give_an_upper_bound_that_falls_like_one_over_the_count() -> None:
    """All rewards 0: the lower bound is 0, the upper one is small and above 0."""
    for reward in (BINARY, bounded()):
        lower, upper = intervals(reward, arms_of([0.0] * 100, [0.0] * 1000))
        assert (lower == 0.0).all()
        assert 0.05 < upper[0] < 0.2
        assert 0.005 < upper[1] < 0.02


def test_large_offsets_do_not_cost_precision() -> None:
    """At 1e15 the same deviations give the same width."""
    deviations = [float(step % 9) for step in range(200)]
    near, far = arms_of(deviations), arms_of([1e15 + each for each in deviations])
    for reward_near, reward_far in [(REAL, REAL), (bounded(0.0, 8.0), bounded(1e15, 1e15 + 8.0))]:
        low, high = intervals(reward_near, near)
        far_low, far_high = intervals(reward_far, far)
        np.testing.assert_allclose(far_high - far_low, high - low, atol=0.5)


@unhurried
@given(rewards=rewards_between(0.0, 1.0), scale=st.floats(0.01, 100.0), shift=st.floats(-100.0, 100.0))
def test_bounded_intervals_move_with_their_scale(rewards: list[float], scale: float, shift: float) -> None:
    """The unit of the rewards does not matter."""
    plain = intervals(bounded(), arms_of(rewards))
    moved_arms = arms_of([shift + scale * each for each in rewards])
    moved = intervals(bounded(shift, shift + scale), moved_arms)
    for one, other in zip(plain, moved, strict=True):
        np.testing.assert_allclose(shift + scale * one, other, atol=1e-4 * scale)


def test_more_rewards_and_higher_levels_narrow_the_interval() -> None:
    """Same mean and spread: ten times the rewards, or ten times the level, is narrower."""
    for reward in (BINARY, bounded(), REAL):
        few, many = arms_of([0.0, 1.0] * 50), arms_of([0.0, 1.0] * 500)
        widths = [float(np.ptp(intervals(reward, arms, level))) for arms, level in [(few, 0.001), (few, 0.01), (many, 0.01)]]
        assert widths[0] > widths[1] > widths[2]


def test_ten_thousand_arms_are_quick() -> None:
    """One call for all arms: vectorised, not a loop (a loop over arms takes seconds)."""
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 5000, 10_000)
    means = np.rint(counts * rng.random(10_000)) / np.maximum(counts, 1)
    lower, upper = intervals(BINARY, Arms(counts, means, means * (1 - means)))
    assert ((lower <= means) & (means <= upper)).all()


def test_few_bounded_rewards_far_from_the_middle_have_no_wider_an_interval_than_the_others() -> None:
    """The evidence just outside the lower bound is what is asked for, and no more, whatever the first guess of the bound was."""
    counts = np.repeat(np.arange(15.0, 200.0), 10)
    means = np.tile(np.arange(1.0, 11.0), 185) / counts
    samples = Samples(counts, means, 0.3 * counts * means * (1.0 - means))
    goals = np.full(len(counts), 10.7)
    lower = bounded_rewards.lower_bounds(samples, goals)
    places = bounded_rewards.odds_for(samples, bounded_rewards.likely_lower_bounds(samples, goals))
    some = lower > 0.0
    reached = bounded_rewards.log_wealth(samples, places, np.where(some, lower, means))[some]
    assert np.count_nonzero(some) > 1000
    np.testing.assert_allclose(reached, 10.7, rtol=1e-3)


def test_an_arm_that_is_picked_twice_is_there_twice() -> None:
    """Also where as many are picked as there are."""
    samples = Samples(np.array([100.0, 400.0]), np.array([0.2, 0.7]), np.array([9.0, 30.0]))
    mixture = bounded_rewards.Mixture.of(samples, bounded_rewards.odds_for(samples, np.array([0.1, 0.6])))
    both, twice = (mixture.pick(np.array(rows)).log_wealth(np.full(2, 0.1)) for rows in ((0, 1), (1, 1)))
    assert twice.tolist() == [both[1]] * 2

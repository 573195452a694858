"""Lift: each arm against the control, with intervals that agree with the evidence against every pair of means."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.inference_lift import cases, misses, suspects
from benchmarks.inference_lockstep import DEFAULT, play
from service.domain import RewardSpec
from service.inference.intervals import confidence_intervals
from service.inference.levels import arm_levels
from service.inference.lift import MANY_ARMS, Lift, lifts
from service.inference.pairs import independent_product_goal
from service.inference.samples import Floats, Samples
from tests.inference.arms import BINARY, REAL, Arms, arms_of, binary_rewards, bounded, rewards_between, unhurried
from tests.inference.whole_evidence import LEFT_OUT, Edge

ALPHA = 0.05
KINDS = [BINARY, bounded(), REAL]
_TOO_FAR = 1.003


def of(reward: RewardSpec, arms: Arms, control: int = 0, added: list[int] | None = None) -> list[Lift | None]:
    """With the first arms only, unless said."""
    later = np.array(added if added is not None else [0] * len(arms.counts))
    return lifts(reward, *arms, control=control, added=later, alpha=ALPHA)


def lift_of(reward: RewardSpec, control: list[float], arm: list[float]) -> Lift:
    """Of one arm over the control."""
    found = of(reward, arms_of(control, arm))[1]
    assert found is not None
    return found


def some(share: float, count: int) -> list[float]:
    """So many ones among so many rewards."""
    ones = round(share * count)
    return [1.0] * ones + [0.0] * (count - ones)


def ends_by_looking(reward: RewardSpec, arms: Arms, more: float, *, ratio: bool) -> tuple[float, float]:
    """The ends of the second arm's lift over the first, from all pairs of means with less evidence than asked, and some more."""
    goals = -np.log(arm_levels(np.zeros(2, np.int64), ALPHA) / 2.0)
    goal = float((independent_product_goal(goals) if reward.kind == "real" else goals)[0]) + more
    samples = Samples.of(*arms)
    control, arm = samples.pick([0]), samples.pick([1])
    most = 3.0 if reward.kind == "real" else 1.0

    def farthest(high: Samples, low: Samples) -> float:
        least = 1e-6 if ratio else -1.0 if reward.kind == "real" else 0.0
        edge = Edge(reward.kind, high, low, least=least, most=most)
        return edge.farthest_ratio(goal) if ratio else edge.farthest_difference(goal)

    above, below = farthest(control, arm), farthest(arm, control)
    return (1.0 / below, above) if ratio else (-below, above)


@pytest.mark.parametrize("reward", KINDS)
@pytest.mark.parametrize(("control", "arm"), [((0.4, 300), (0.6, 300)), ((0.2, 2000), (0.3, 80)), ((0.5, 60), (0.5, 3000))])
def test_the_ends_of_the_difference_are_those_of_all_pairs(
    reward: RewardSpec, control: tuple[float, int], arm: tuple[float, int]
) -> None:
    """Nothing possible lies outside, and no more is inside than what the evidence that is left out could rule out."""
    arms = arms_of(some(*control), some(*arm))
    found = lift_of(reward, some(*control), some(*arm))
    assert found.difference_interval is not None
    low, high = found.difference_interval
    inner, outer = (ends_by_looking(reward, arms, more, ratio=False) for more in (0.0, LEFT_OUT))
    assert low <= inner[0] + 1e-9
    assert high >= inner[1] - 1e-9
    assert found.difference - low <= _TOO_FAR * (found.difference - outer[0])
    assert high - found.difference <= _TOO_FAR * (outer[1] - found.difference)


@pytest.mark.parametrize("reward", KINDS)
@pytest.mark.parametrize(("control", "arm"), [((0.4, 400), (0.6, 300)), ((0.2, 3000), (0.3, 300)), ((0.5, 300), (0.5, 3000))])
def test_the_ends_of_the_ratio_are_those_of_all_pairs(
    reward: RewardSpec, control: tuple[float, int], arm: tuple[float, int]
) -> None:
    """No wider than over all pairs; not narrower than what pairs and the control's own interval leave together."""
    arms = arms_of(some(*control), some(*arm))
    found = lift_of(reward, some(*control), some(*arm))
    assert found.ratio is not None
    assert found.ratio_interval is not None
    low, high = found.ratio_interval
    outer = ends_by_looking(reward, arms, LEFT_OUT, ratio=True)
    assert 1.0 / low - 1.0 / found.ratio <= 1.02 * (1.0 / outer[0] - 1.0 / found.ratio)
    assert high - found.ratio <= 1.02 * (outer[1] - found.ratio)
    inner = ends_by_looking(reward, arms, 0.0, ratio=True)
    assert (
        low <= inner[0] + 1e-9 or low <= 1.0 + ends_by_looking(reward, arms, 0.0, ratio=False)[0] / _base(reward, arms)[0] + 1e-6
    )
    assert (
        high >= inner[1] - 1e-9
        or high >= 1.0 + ends_by_looking(reward, arms, 0.0, ratio=False)[1] / _base(reward, arms)[1] - 1e-6
    )


def _base(reward: RewardSpec, arms: Arms) -> tuple[float, float]:
    """The control's own interval."""
    lower, upper = confidence_intervals(reward, *arms, arm_levels(np.zeros(2, np.int64), ALPHA))
    return float(lower[0]), float(upper[0])


@unhurried
@given(control=binary_rewards(), arm=binary_rewards())
def test_binary_lifts_lie_around_what_was_observed(control: list[float], arm: list[float]) -> None:
    """Within what is possible, whatever was told; none without rewards of both."""
    found = of(BINARY, arms_of(control, arm))[1]
    if not control or not arm:
        assert found is None
        return
    assert found is not None
    assert found.difference_interval is not None
    low, high = found.difference_interval
    assert -1.0 <= low <= found.difference <= high <= 1.0
    if found.ratio_interval is not None:
        assert found.ratio is not None
        assert 0.0 <= found.ratio_interval[0] <= found.ratio <= found.ratio_interval[1] < np.inf


@unhurried
@given(control=rewards_between(-2.0, 5.0), arm=rewards_between(-2.0, 5.0))
def test_bounded_lifts_keep_to_the_range_and_to_the_side_of_zero(control: list[float], arm: list[float]) -> None:
    """A ratio needs to know the sign of the control's mean."""
    reward = bounded(-2.0, 5.0)
    arms = arms_of(control, arm)
    found = of(reward, arms)[1]
    if found is None:
        assert not control or not arm
        return
    assert found.difference_interval is not None
    low, high = found.difference_interval
    assert -7.0 - 1e-9 <= low <= found.difference <= high <= 7.0 + 1e-9
    lower, upper = _base(reward, arms)
    assert (found.ratio_interval is not None) == (lower > 0.0 or upper < 0.0)


def test_swapping_arm_and_control_mirrors_the_difference() -> None:
    """Both first arms have the same share of the error."""
    there, back = (lift_of(BINARY, *pair) for pair in ((some(0.3, 200), some(0.5, 500)), (some(0.5, 500), some(0.3, 200))))
    assert there.difference_interval is not None
    assert back.difference_interval is not None
    assert there.difference == -back.difference
    assert there.difference_interval == pytest.approx([-end for end in back.difference_interval[::-1]], rel=5e-3)


@pytest.mark.parametrize("kind", ["binary", "bounded", "real"])
def test_a_lift_is_told_in_the_direction_of_the_rewards(kind: str) -> None:
    """Where smaller is better a good lift is negative: the goal changes nothing here."""
    maximised, minimised = (RewardSpec(kind, goal, 0.0, 1.0) for goal in ("maximize", "minimize"))  # type: ignore[arg-type]  # words of a parameter
    pair = some(0.5, 400), some(0.3, 400)
    assert lift_of(maximised, *pair) == lift_of(minimised, *pair)
    assert lift_of(minimised, *pair).difference == pytest.approx(-0.2)


@pytest.mark.parametrize("reward", KINDS)
def test_the_order_of_the_arms_does_not_matter_and_more_rewards_narrow(reward: RewardSpec) -> None:
    """Every arm keeps its own lift; four times the rewards about halve an interval."""
    rewards = [some(share, 400) for share in (0.4, 0.5, 0.3, 0.45)]
    found = of(reward, arms_of(*rewards))
    shuffled = of(reward, arms_of(*(rewards[place] for place in (2, 0, 3, 1))), control=1)
    for here, there in ((1, 3), (2, 0), (3, 2)):
        _same(found[here], shuffled[there])
    narrow, wide = (_width(lift_of(reward, some(0.4, count), some(0.5, count))) for count in (1600, 400))
    assert 0.4 < narrow / wide < 0.6


def _same(one: Lift | None, other: Lift | None) -> None:
    assert one is not None
    assert other is not None
    assert one.difference == other.difference
    assert one.difference_interval == pytest.approx(other.difference_interval, rel=5e-3)


def _width(lift: Lift) -> float:
    assert lift.difference_interval is not None
    low, high = lift.difference_interval
    return high - low


def test_without_a_control_s_reward_there_is_no_lift() -> None:
    """Nor for an arm without any, nor for the control itself."""
    assert of(BINARY, arms_of([], some(0.5, 10), some(0.5, 10))) == [None, None, None]
    found = of(BINARY, arms_of(some(0.5, 10), [], some(0.5, 10)))
    assert found[:2] == [None, None]
    assert found[2] is not None


def test_a_ratio_needs_a_control_that_is_not_zero() -> None:
    """None at a mean of zero; no interval while zero is possible, and one again where all of it is below zero."""
    silent = lift_of(BINARY, [0.0] * 50, some(0.5, 50))
    assert (silent.ratio, silent.ratio_interval) == (None, None)
    rng = np.random.default_rng(5)
    near, far, arm = (rng.normal(mean, 1.0, 300).tolist() for mean in (0.05, -3.0, -6.0))
    assert lift_of(REAL, near, arm).ratio_interval is None
    found = lift_of(REAL, far, arm)
    assert found.ratio == pytest.approx(2.0, abs=0.1)
    assert found.ratio_interval is not None
    assert 1.7 < found.ratio_interval[0] < 2.0 < found.ratio_interval[1] < 2.4


def test_few_real_rewards_have_no_interval() -> None:
    """An end would be infinite."""
    found = lift_of(REAL, [1.0, 2.0], [3.0, 4.0])
    assert (found.difference, found.difference_interval, found.ratio_interval) == (2.0, None, None)


@pytest.mark.parametrize("reward", KINDS)
def test_many_arms_have_the_difference_of_their_own_intervals(reward: RewardSpec) -> None:
    """More than a hundred first ones, and those added after the hundredth; whoever was there before keeps the closer test."""
    rng = np.random.default_rng(9)
    count = MANY_ARMS + 4
    shares = rng.uniform(0.2, 0.8, count)
    arms = arms_of(*(some(share, 200) for share in shares))
    lower, upper = confidence_intervals(reward, *arms, arm_levels(np.zeros(count, np.int64), ALPHA))
    _are_cheap(of(reward, arms), lower, upper)
    added = [0, 0, *range(1, count - 1)]
    lower, upper = confidence_intervals(reward, *arms, arm_levels(np.array(added), ALPHA))
    found = of(reward, arms, added=added)
    _are_cheap([lift if place >= count - 2 else None for place, lift in enumerate(found)], lower, upper)
    tested = found[1]
    assert tested is not None
    assert _width(tested) < (upper[1] - lower[0]) - (lower[1] - upper[0])


def _are_cheap(found: list[Lift | None], lower: Floats, upper: Floats) -> None:
    for place, lift in enumerate(found):
        if lift is not None:
            assert lift.difference_interval == pytest.approx((lower[place] - upper[0], upper[place] - lower[0]))
            assert lift.ratio_interval == pytest.approx((lower[place] / upper[0], upper[place] / lower[0]))


@unhurried
@given(st.lists(st.sampled_from([1e-9, -1e100, 1e100, 3.0]), min_size=2, max_size=12))
def test_huge_and_tiny_rewards_are_taken(rewards: list[float]) -> None:
    """Nothing is told that is not a number."""
    found = lift_of(REAL, rewards, [*rewards, 0.5])
    numbers = [found.difference, *(found.difference_interval or ()), *(found.ratio_interval or ()), found.ratio or 0.0]
    assert all(isfinite(number) for number in numbers)


@pytest.mark.parametrize("place", range(len(cases())))
def test_the_study_of_coverage_overlooks_no_miss(place: int) -> None:
    """It looks closer only where the evidence against the true means may be enough: every miss is among those."""
    levels, seen = np.full(5, 0.98), 0
    for step, (state, _) in enumerate(play(cases()[place], DEFAULT, 150, 120, seed=3)):
        if step % 17 == 16:
            runs, arms = (each.ravel() for each in np.meshgrid(np.arange(150), np.arange(1, 5), indexing="ij"))
            known = (state.counts[runs, arms] > 1) & (state.counts[runs, 0] > 1)
            difference, ratio, _ = misses(state, runs[known], arms[known], levels)
            missed = difference | ratio
            assert suspects(state, levels)[runs[known][missed], arms[known][missed]].all()
            seen += int(missed.sum())
    assert seen > 0 or place not in (2, 5, 6)

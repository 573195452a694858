"""The H1 weights: the paper's numbers, safe for means of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.policy.base import Floats
from service.policy.weights import h1_weights, targets_from_means
from tests.policy.evidence import any_means, direct_weights, means_of, whole_means


def assert_are_weights(weights: Floats) -> None:
    """Finite, not negative, sum to one."""
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    assert abs(float(weights.sum()) - 1) <= 1e-12


@given(any_means, st.floats(1, 2))
def test_weights_are_shares(means: Floats, sharpness: float) -> None:
    """Whatever the means, the weights are finite, not negative, and sum to one."""
    assert_are_weights(h1_weights(means, sharpness))


@given(any_means, st.sampled_from([1.0, 1.25, 1.5, 2.0]))
def test_weights_equal_the_direct_formula(means: Floats, sharpness: float) -> None:
    """They are those of the formula added term by term, within what the tie rule allows."""
    assert np.abs(h1_weights(means, sharpness) - direct_weights(means, sharpness)).max() <= 1e-11


def test_two_and_three_arms_by_hand() -> None:
    """Two arms share alike; for the gaps 0, 1, 2 the costs are 1 + 1/9 and 1 + 4/9, so the shares are 13:13:10."""
    assert h1_weights(np.array([0.3, 0.9])).tolist() == [0.5, 0.5]
    assert h1_weights(np.array([2.0, 1.0, 0.0])) == pytest.approx([13 / 36, 13 / 36, 10 / 36], abs=1e-15)


@given(means_of(st.one_of(st.floats(1e-200, 1e200), st.integers(-3, 3).map(float))), st.integers(-300, 300))
def test_scaling_by_a_power_of_two_changes_no_bit(means: Floats, exponent: int) -> None:
    """Weights do not depend on the unit of the rewards."""
    assert h1_weights(means * 2.0**exponent).tolist() == h1_weights(means).tolist()


@given(whole_means, st.integers(-(2**30), 2**30))
def test_an_exact_shift_changes_no_bit(means: Floats, shift: int) -> None:
    """Weights depend on the gaps alone; whole numbers shift without rounding."""
    assert h1_weights(means + shift).tolist() == h1_weights(means).tolist()


@given(any_means, st.randoms())
def test_permuting_the_arms_permutes_the_weights(means: Floats, random: object) -> None:
    """No arm is treated by its position."""
    order = list(range(len(means)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert np.abs(h1_weights(means[order]) - h1_weights(means)[order]).max() <= 1e-12


@given(any_means)
def test_better_arms_never_weigh_less(means: Floats) -> None:
    """The order of the weights is the order of the means, and equal means have equal weights."""
    weights = h1_weights(means)
    order = np.argsort(means, kind="stable")
    assert (np.diff(weights[order]) >= -1e-12).all()
    for mean in np.unique(means):
        assert np.ptp(weights[means == mean]) <= 1e-12


@given(st.integers(2, 50), st.floats(-1e300, 1e300))
def test_all_tied_arms_share_alike(arms: int, mean: float) -> None:
    """Without any gap the weights are uniform."""
    assert h1_weights(np.full(arms, mean)).tolist() == [1 / arms] * arms


@given(any_means)
def test_best_arms_take_the_cheapest_cost(means: Floats) -> None:
    """Every empirically best arm weighs as much as the nearest challenger."""
    weights = h1_weights(means)
    challengers = means < means.max()
    if challengers.any():
        assert weights[~challengers] == pytest.approx(weights[challengers].max(), rel=1e-12)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_a_gap_of_one_ulp_is_a_gap(size: float) -> None:
    """One ulp between two means separates them from each other as any gap does, at every magnitude."""
    means = np.array([size, np.nextafter(size, 0), 0.0])
    weights = h1_weights(means)
    assert_are_weights(weights)
    assert weights == pytest.approx([1 / 2.5, 1 / 2.5, 0.5 / 2.5], rel=1e-9)


def test_the_largest_doubles_do_not_overflow() -> None:
    """Means at both ends of the doubles still have the weights of their gaps."""
    largest = np.finfo(np.float64).max
    assert h1_weights(np.array([largest, 0.0, -largest])) == pytest.approx([13 / 36, 13 / 36, 10 / 36], rel=1e-12)


@pytest.mark.parametrize("arms", [2, 3, 40, 1_000, 10_000])
def test_many_arms(arms: int) -> None:
    """From 2 to 10,000 arms the weights stay shares and equal the direct formula where that is computed."""
    means = np.random.default_rng(arms).normal(size=arms)
    weights = h1_weights(means)
    assert_are_weights(weights)
    if arms <= 40:
        assert np.abs(weights - direct_weights(means)).max() <= 1e-11
    else:  # the direct formula for one arm
        gaps = means.max() - means
        worst = int(np.argmax(gaps))
        costs = {i: float(((gaps[i] / (gaps[i] + np.delete(gaps, i))) ** 2).sum()) for i in (worst, int(np.argsort(gaps)[1]))}
        (a, cost_a), (b, cost_b) = costs.items()
        assert weights[a] / weights[b] == pytest.approx(cost_b / cost_a, rel=1e-12)


def test_one_arm_takes_everything() -> None:
    """A single active arm has weight one."""
    assert h1_weights(np.array([0.7])).tolist() == [1.0]


@given(any_means)
def test_sharpness_sharpens(means: Floats) -> None:
    """A larger exponent never takes from the heaviest arm and never gives to the lightest."""
    plain, sharp = h1_weights(means, 1.0), h1_weights(means, 1.5)
    assert sharp.max() >= plain.max() - 1e-12
    assert sharp.min() <= plain.min() + 1e-12


@given(any_means, st.data())
def test_arms_without_a_reward_have_an_equal_share(means: Floats, data: st.DataObject) -> None:
    """They get 1/K each; the others share the rest by their weights."""
    silent = np.array(data.draw(st.lists(st.booleans(), min_size=len(means), max_size=len(means))))
    known = np.where(silent, np.nan, means)
    targets = targets_from_means(known)
    assert_are_weights(targets)
    assert targets[silent].tolist() == [1 / len(means)] * int(silent.sum())
    if not silent.all():
        rest = h1_weights(means[~silent]) * (int((~silent).sum()) / len(means))
        assert np.abs(targets[~silent] - rest).max() <= 1e-12

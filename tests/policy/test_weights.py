"""The H1 weights: the paper's numbers, safe for means of any size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.policy.base import Floats
from service.policy.weights import LIMIT, PAPER, WeightRule, h1_weights, targets_from_means
from tests.policy.evidence import any_means, direct_weights, means_of, rules, whole_means


def assert_are_weights(weights: Floats) -> None:
    """Finite, not negative, sum to one."""
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    assert abs(float(weights.sum()) - 1) <= 1e-12


@given(any_means, rules)
def test_weights_are_shares(means: Floats, rule: WeightRule) -> None:
    """Whatever the means and the rule, the weights are finite, not negative, and sum to one."""
    assert_are_weights(h1_weights(means, rule))


@given(any_means, rules)
def test_weights_equal_the_direct_formula(means: Floats, rule: WeightRule) -> None:
    """They are those of the formula added term by term, within what the tie rule allows."""
    assert np.abs(h1_weights(means, rule) - direct_weights(means, rule)).max() <= 1e-11


@given(any_means, rules)
def test_a_guard_is_a_floor_under_every_weight(means: Floats, rule: WeightRule) -> None:
    """No arm has less than `guard` times its weight without sharpening; nor less than a quarter of that by the paper's ties."""
    weights = h1_weights(means, rule)
    assert (weights >= rule.guard * h1_weights(means, WeightRule(ties=rule.ties)) - 1e-15).all()
    assert (weights >= rule.guard / 4 * h1_weights(means, PAPER) - 1e-15).all()


@given(st.integers(2, 60), st.lists(st.floats(1e-3, 1e3), max_size=40))
def test_a_tie_costs_no_arm_more_than_three_quarters_of_its_weight(tied: int, gaps: list[float]) -> None:
    """Ties by their limit against the paper's: the tied arms never lose, and nobody loses more than docs/weights.md proves."""
    means = -np.array([0.0] * tied + gaps)
    limit, paper = h1_weights(means, LIMIT), h1_weights(means, PAPER)
    assert (limit[:tied] >= paper[:tied] - 1e-15).all()
    least = 0.5 if tied == 2 else 0.25
    assert (limit >= least * paper - 1e-15).all()


@given(st.integers(2, 8), st.lists(st.floats(0.01, 10), max_size=12), st.data())
def test_weights_run_continuously_into_a_tie(tied: int, gaps: list[float], data: st.DataObject) -> None:
    """One leader stays, whichever; the others come to it together: in the limit the weights are those of the tie."""
    rule = data.draw(rules.filter(lambda rule: rule.ties == "limit"))
    leader, step = data.draw(st.integers(0, tied - 1)), data.draw(st.floats(1e-9, 1e-7))
    means = -np.array([step] * tied + gaps)
    means[leader] = 0.0
    at_the_tie = -np.array([0.0] * tied + gaps)
    assert np.abs(h1_weights(means, rule) - h1_weights(at_the_tie, rule)).max() <= 1e-4


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=12), st.sampled_from([1e-4, 1e-6, 1e-8, 1e-12]))
def test_two_leaders_part_continuously_whoever_leads(gaps: list[float], step: float) -> None:
    """From either side of a tie of two the weights come to the same, as fast as the gap closes; the paper's jump at the tie."""
    tie = -np.array([0.0, 0.0, *gaps])
    for leading in (0, 1):
        means = tie.copy()
        means[1 - leading] = -step
        assert np.abs(h1_weights(means, LIMIT) - h1_weights(tie, LIMIT)).max() <= 100 * len(gaps) * step
    assert h1_weights(tie, LIMIT)[0] > h1_weights(tie, PAPER)[0]


def test_the_example_of_the_documentation() -> None:
    """Almost tied and tied leaders have the same weights by the limit, and not by the paper's rule."""
    near, tied = np.array([0.130, 0.1299, 0.10, 0.10, 0.10]), np.array([0.130, 0.130, 0.10, 0.10, 0.10])
    assert h1_weights(near, LIMIT) == pytest.approx([0.312, 0.312, 0.125, 0.125, 0.125], abs=1e-3)
    assert h1_weights(tied, LIMIT) == pytest.approx([0.3125, 0.3125, 0.125, 0.125, 0.125], abs=1e-12)
    assert h1_weights(tied, PAPER) == pytest.approx([0.2] * 5, abs=1e-12)


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


@given(any_means, rules, st.randoms())
def test_permuting_the_arms_permutes_the_weights(means: Floats, rule: WeightRule, random: object) -> None:
    """No arm is treated by its position."""
    order = list(range(len(means)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert np.abs(h1_weights(means[order], rule) - h1_weights(means, rule)[order]).max() <= 1e-12


@given(any_means, rules)
def test_better_arms_never_weigh_less(means: Floats, rule: WeightRule) -> None:
    """The order of the weights is the order of the means, and equal means have equal weights."""
    weights = h1_weights(means, rule)
    order = np.argsort(means, kind="stable")
    assert (np.diff(weights[order]) >= -1e-12).all()
    for mean in np.unique(means):
        assert np.ptp(weights[means == mean]) <= 1e-12


@given(st.integers(2, 50), st.floats(-1e300, 1e300))
def test_all_tied_arms_share_alike(arms: int, mean: float) -> None:
    """Without any gap the weights are uniform."""
    assert h1_weights(np.full(arms, mean)).tolist() == [1 / arms] * arms


@given(any_means)
def test_by_the_paper_best_arms_take_the_cheapest_cost(means: Floats) -> None:
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
    plain, sharp = h1_weights(means), h1_weights(means, WeightRule(1.5))
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

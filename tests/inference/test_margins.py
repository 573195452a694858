"""How far from the data a difference or ratio is ruled out: never closer than the definition says, and hardly farther."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import RewardKind
from service.inference.margins import distances
from service.inference.samples import Floats, Samples
from tests.inference.arms import unhurried
from tests.inference.whole_evidence import LEFT_OUT, Edge, binary_arm, log_evidence, one

GOAL = 5.0
DIFFERENCE = np.array([np.nan])
RATIO = np.array([0.0])
# As many parts of the farthest difference or ratio as the search may go too far.
_TOO_FAR = 1.003


def distance(kind: RewardKind, high: Samples, low: Samples, zeros: Floats, goal: float = GOAL) -> float:
    """Of one pair."""
    return float(distances(kind, high, low, np.array([goal]), zeros)[0])


def arms(kind: RewardKind, counts: tuple[int, int], means: tuple[float, float]) -> tuple[Samples, Samples]:
    """A high and a low one."""
    if kind == "binary":
        first, second = (binary_arm(count, round(count * mean)) for count, mean in zip(counts, means, strict=True))
        return first, second
    first, second = (one(count, mean, 0.5 * mean * (1.0 - mean) + 1e-4) for count, mean in zip(counts, means, strict=True))
    return first, second


def edge(kind: RewardKind, high: Samples, low: Samples) -> Edge:
    """Of all that is possible; for real rewards as far as matters."""
    least, most = (float(high.means[0]) - 2.0, float(low.means[0]) + 2.0) if kind == "real" else (0.0, 1.0)
    return Edge(kind, high, low, least=least, most=most)


CASES = [((400, 300), (0.6, 0.4)), ((50, 2000), (0.3, 0.7)), ((2000, 50), (0.5, 0.5)), ((90, 90), (0.1, 0.05))]


@pytest.mark.parametrize("kind", ["binary", "bounded", "real"])
@pytest.mark.parametrize(("counts", "means"), CASES)
def test_the_farthest_difference_agrees_with_looking_everywhere(
    kind: RewardKind, counts: tuple[int, int], means: tuple[float, float]
) -> None:
    """Not inside what is possible by the definition, and not outside what would be with the evidence that is left out."""
    high, low = arms(kind, counts, means)
    observed = float(low.means[0] - high.means[0])
    found, everywhere = distance(kind, high, low, DIFFERENCE), edge(kind, high, low)
    assert everywhere.farthest_difference(GOAL) <= observed + found + 1e-9
    assert found <= _TOO_FAR * (everywhere.farthest_difference(GOAL + LEFT_OUT) - observed)


@pytest.mark.parametrize("kind", ["binary", "bounded", "real"])
@pytest.mark.parametrize(("counts", "means"), [((400, 300), (0.6, 0.4)), ((300, 2000), (0.3, 0.7)), ((2000, 300), (0.5, 0.5))])
def test_the_farthest_ratio_agrees_with_looking_everywhere(
    kind: RewardKind, counts: tuple[int, int], means: tuple[float, float]
) -> None:
    """Of means above zero."""
    high, low = arms(kind, counts, means)
    observed = float(low.means[0] / high.means[0])
    found = distance(kind, high, low, RATIO)
    everywhere = Edge(kind, high, low, least=1e-6, most=3.0 if kind == "real" else 1.0)
    assert everywhere.farthest_ratio(GOAL) <= observed + found + 1e-9
    assert found <= _TOO_FAR * (everywhere.farthest_ratio(GOAL + LEFT_OUT) - observed)


@unhurried
@given(
    counts=st.tuples(st.integers(1, 2_000), st.integers(1, 2_000)),
    shares=st.tuples(st.sampled_from([0.0, 0.001, 0.1, 0.5, 0.97, 1.0]), st.sampled_from([0.0, 0.002, 0.1, 0.5, 0.9, 1.0])),
    kind=st.sampled_from(["binary", "bounded"]),
    ratio=st.booleans(),
)
def test_whatever_the_successes_nothing_possible_is_ruled_out(
    counts: tuple[int, int], shares: tuple[float, float], kind: RewardKind, *, ratio: bool
) -> None:
    """Arms without any success, or with nothing else, included: everywhere on the line there is enough evidence."""
    high, low = arms("binary", counts, shares)  # zeros and ones are bounded, too
    if ratio and high.means[0] == 0.0:
        return
    found = distance(kind, high, low, RATIO if ratio else DIFFERENCE)
    at = (low.means[0] / high.means[0] if ratio else low.means[0] - high.means[0]) + found
    if not np.isfinite(at) or (not ratio and at >= 1.0):
        return  # nothing can be said
    grid = np.linspace(0.0, 1.0, 2001)
    means = grid / max(at, 1.0) if ratio else max(0.0, -at) + grid * (min(1.0, 1.0 - at) - max(0.0, -at))
    lows = np.clip(at * means if ratio else means + at, 0.0, 1.0)
    assert log_evidence(kind, high, low, means, lows).min() >= GOAL - 1e-7


@pytest.mark.parametrize("kind", ["binary", "bounded", "real"])
@pytest.mark.parametrize("zeros", [DIFFERENCE, RATIO])
def test_more_rewards_bring_it_closer_and_a_higher_goal_moves_it_off(kind: RewardKind, zeros: Floats) -> None:
    """Four times the rewards about halve it."""
    near, far = (distance(kind, *arms(kind, (count, count), (0.4, 0.5)), zeros) for count in (1600, 400))
    assert 0.4 < near / far < 0.6
    goals = [distance(kind, *arms(kind, (400, 400), (0.4, 0.5)), zeros, goal) for goal in (3.0, 5.0, 8.0, 13.0)]
    assert goals == sorted(goals)


@pytest.mark.parametrize("kind", ["binary", "bounded", "real"])
def test_many_pairs_at_once_are_the_pairs_one_by_one(kind: RewardKind) -> None:
    """In any order, within the tolerance of the search."""
    cases = [(arms(kind, counts, means), zeros) for counts, means in CASES for zeros in (DIFFERENCE, RATIO)]
    order = np.random.default_rng(3).permutation(len(cases))
    highs, lows = (
        Samples(*(np.concatenate(each) for each in zip(*(pair[side] for pair, _ in cases), strict=True))) for side in (0, 1)
    )
    zeros = np.concatenate([zero for _, zero in cases])
    together = distances(kind, highs.pick(order), lows.pick(order), np.full(len(cases), GOAL), zeros[order])
    alone = np.array([distance(kind, *pair, zero) for pair, zero in cases])[order]
    np.testing.assert_allclose(together, alone, rtol=2.5e-3)


def test_where_nothing_can_be_said_it_is_infinite_or_the_end_of_the_range() -> None:
    """Two real rewards without spread say nothing; a few binary ones leave every difference."""
    silent = one(2, 0.0, 0.0)
    assert distance("real", silent, silent, DIFFERENCE) == np.inf
    assert distance("binary", binary_arm(1, 1), binary_arm(1, 0), DIFFERENCE) == pytest.approx(2.0)
    assert distance("binary", binary_arm(2, 1), binary_arm(2, 1), RATIO) == np.inf

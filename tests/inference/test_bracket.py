"""Brackets around the least of convex functions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.inference.bracket import Bracket
from service.inference.samples import Floats
from tests.inference.arms import unhurried

places = st.integers(0, 1000).map(lambda thousandths: thousandths / 1000.0)


def corner(steep: float, at: Floats) -> tuple[Floats, Floats]:
    """A function that falls steeply to a corner at 0.3 and rises slowly behind it, with its slope."""
    behind = at > 0.3
    slope = np.where(behind, 0.5, -steep)
    return slope * (at - 0.3) + 1.0, slope


@pytest.mark.parametrize("steep", [1.0, 1e3, 1e6])
def test_a_corner_is_found_where_the_tangents_cross(steep: float) -> None:
    """However steep one side is: after a look at each side."""
    bracket = Bracket.between(0.0, 1.0, 1)
    for place in (0.9, 0.01):
        at = np.array([place])
        bracket = bracket.narrowed(at, *corner(steep, at))
    way, bound = bracket.crossing()
    assert (bracket.left + way)[0] == pytest.approx(0.3)
    assert bound[0] == pytest.approx(1.0)
    assert bracket.next_points(np.array([0.5]), np.array([False]), way)[0] == pytest.approx(0.3)


@unhurried
@given(least=places, bend=st.floats(0.1, 1e4), looks=st.lists(places, min_size=1, max_size=5))
def test_the_bound_is_nowhere_above_the_function_and_the_least_stays_inside(
    least: float, bend: float, looks: list[float]
) -> None:
    """A parabola, looked at anywhere between the ends; the next point is inside."""
    bracket = Bracket.between(0.0, 1.0, 1)
    for look in looks:
        at = np.clip(np.array([look]), bracket.left, bracket.right)
        bracket = bracket.narrowed(at, bend * (at - least) ** 2, 2.0 * bend * (at - least))
    way, bound = bracket.crossing()
    assert bound[0] <= 1e-9 * bend
    assert bracket.left[0] <= least <= bracket.right[0]
    assert bracket.left[0] <= bracket.next_points(np.array([least]), np.array([True]), way)[0] <= bracket.right[0]


def test_newton_is_followed_where_it_is_plausible_and_inside() -> None:
    """Outside of the bracket, or where it is not plausible, the tangents are."""
    bracket = Bracket.between(0.0, 1.0, 3).narrowed(np.full(3, 0.8), np.ones(3), np.ones(3))
    bracket = bracket.narrowed(np.full(3, 0.2), np.ones(3), -np.ones(3))
    way, _ = bracket.crossing()
    found = bracket.next_points(np.array([0.6, 0.6, 0.9]), np.array([True, False, True]), way)
    assert found.tolist() == pytest.approx([0.6, 0.5, 0.5])
    assert bracket.pick(np.array([1])).left.tolist() == [0.2]

"""Lower bounds of the evidence along a line: whatever the function, they are nowhere above it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.inference.lines import between_tangents, largest_log_product, least_of_convex, least_of_limited_bend
from service.inference.samples import Floats
from tests.inference.arms import unhurried

numbers = st.floats(-5.0, 5.0)
# No two of them are equal.
places = st.lists(st.integers(0, 200), min_size=4, max_size=9, unique=True).map(
    lambda given: np.array(sorted(given))[None, :] / 200.0
)
GRID = np.linspace(0.0, 1.0, 2001)


def convex(slopes: list[float], bend: float, at: Floats) -> Floats:
    """The largest of some straight lines, and a parabola."""
    lines = [slope * at + 0.3 * number * slope for number, slope in enumerate(slopes)]
    found: Floats = np.max(lines, axis=0) + bend * (at - 0.4) ** 2
    return found


@unhurried
@given(slopes=st.lists(numbers, min_size=1, max_size=4), bend=st.floats(0.0, 20.0), points=places)
def test_a_convex_function_is_nowhere_below_its_bound(slopes: list[float], bend: float, points: Floats) -> None:
    """Between the outermost points."""
    least = least_of_convex(points, convex(slopes, bend, points))
    assert least[0] <= convex(slopes, bend, GRID[(points.min() <= GRID) & (points.max() >= GRID)]).min() + 1e-9


def test_the_bound_of_a_convex_function_is_close_where_the_points_are() -> None:
    """Four points around the minimum of a parabola."""
    points = np.array([[0.0, 0.2, 0.38, 0.42, 0.6, 1.0]])
    least = least_of_convex(points, convex([0.0], 10.0, points))
    assert -0.05 < least[0] <= 0.0


def test_points_that_coincide_are_not_taken_for_chords() -> None:
    """A slope of zero between them would be a promise that nobody made."""
    points = np.array([[0.0, 0.0, 0.3, 0.6, 1.0], [0.0, 0.2, 0.3, 0.6, 1.0]])
    least = least_of_convex(points, convex([0.0], 10.0, points))
    assert least[0] == -np.inf
    assert -1.0 < least[1] <= 0.0


def test_where_there_is_one_point_its_value_is_the_least() -> None:
    """A line of which one pair of means is possible."""
    assert least_of_convex(np.full((1, 8), 0.3), np.full((1, 8), 2.5)).tolist() == [2.5]


@unhurried
@given(first=st.floats(0.0, 50.0), second=st.floats(0.0, 50.0), sharp=st.floats(0.0, 3.0), points=places)
def test_a_function_of_limited_bend_is_nowhere_below_its_bound(first: float, second: float, sharp: float, points: Floats) -> None:
    """One part falls to the right end, the other rises from the left one; wiggles are bounded by the bend alone."""

    def falling(at: Floats) -> Floats:
        return first * np.log1p((1.0 - at) ** 2) - sharp * at

    def rising(at: Floats) -> Floats:
        return second * np.log1p(at**2) + sharp * at

    # The second derivative of log(1 + y^2) is nowhere above 2.
    bends = np.array([2.0 * first + 2.0 * second])
    least = least_of_limited_bend(points, falling(points), rising(points), bends)
    between = GRID[(points.min() <= GRID) & (points.max() >= GRID)]
    lowest = (falling(between) + rising(between)).min() if len(between) else np.inf
    assert least[0] <= lowest + 1e-9


@unhurried
@given(
    slopes=st.lists(numbers, min_size=1, max_size=4),
    bend=st.floats(0.1, 20.0),
    left=st.floats(0.0, 0.5),
    width=st.floats(0.01, 0.5),
)
def test_tangents_cross_below_a_convex_function(slopes: list[float], bend: float, left: float, width: float) -> None:
    """Or it is least at an end; also where only one of them is known."""
    start, end, step = left, left + width, 1e-4
    # Chords that lie outside the interval are less steep than the function is at its ends.
    before, first, last, after = convex(slopes, bend, np.array([start - step, start, end, end + step]))
    left_slope, right_slope = (first - before) / step, (after - last) / step
    lowest = convex(slopes, bend, np.linspace(start, end, 501)).min()

    def bound(left_value: float, right_value: float) -> float:
        tangents = (np.array([each]) for each in (left_value, left_slope, right_value, right_slope, width))
        return float(min(first, last, between_tangents(*tangents)[0]))

    assert bound(first, last) <= lowest + 1e-9
    assert right_slope < 0 or bound(-np.inf, last) <= lowest + 1e-9
    assert left_slope > 0 or bound(first, -np.inf) <= lowest + 1e-9


@unhurried
@given(
    high=st.floats(1.0, 1e9),
    low=st.floats(1.0, 1e9),
    octave=st.integers(-20, 12),
    margin=st.floats(-0.99, 0.99),
)
def test_the_largest_product_is_that_of_a_fine_grid_and_never_below_it(
    high: float, low: float, octave: int, margin: float
) -> None:
    """For any counts, growth and margin, also where it is largest at an end."""
    growth, means = 2.0**octave, np.linspace(max(0.0, -margin), min(1.0, 1.0 - margin), 2001)
    on_grid = float((high * np.log1p(growth * means) + low * np.log1p(growth * (1.0 - margin - means))).max())
    found = float(largest_log_product(np.array([high]), np.array([low]), np.array([growth]), margin)[0])
    assert on_grid * (1.0 - 1e-12) <= found <= on_grid * (1.0 + 1e-4)

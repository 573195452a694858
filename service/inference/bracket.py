"""Where a convex function is least, between two points whose tangents are known: many functions at once, a step at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from service.inference.lines import tangents_crossing
from service.inference.samples import Bools, Floats, Ints


class Bracket(NamedTuple):
    """Two points around the least of each function: where they are, the value and the slope there, on the first axis.

    The value is minus infinity where none was seen.
    """

    before: Floats
    after: Floats

    @staticmethod
    def between(left: float, right: float, count: int) -> Bracket:
        """Nothing was seen yet."""
        before, after = np.zeros((3, count)), np.zeros((3, count))
        before[0], after[0] = left, right
        before[1] = after[1] = -np.inf
        return Bracket(before, after)

    @property
    def left(self) -> Floats:
        """Where the functions are not least before."""
        left: Floats = self.before[0]
        return left

    @property
    def right(self) -> Floats:
        """Where the functions are not least after."""
        right: Floats = self.after[0]
        return right

    def narrowed(self, at: Floats, value: Floats, slope: Floats) -> Bracket:
        """By what was seen at these points inside."""
        falls, here = slope < 0.0, np.array([at, value, slope])
        return Bracket(np.where(falls, here, self.before), np.where(falls, self.after, here))

    def pick(self, rows: Ints) -> Bracket:
        """Of some of the functions."""
        return Bracket(np.take(self.before, rows, axis=1), np.take(self.after, rows, axis=1))

    def crossing(self) -> tuple[Floats, Floats]:
        """How far from the left point the tangents cross, and how high: no function is lower anywhere."""
        (left, left_value, left_slope), (right, right_value, right_slope) = self.before, self.after
        return tangents_crossing(left_value, left_slope, right_value, right_slope, right - left)

    def next_points(self, newton: Floats, plausible: Bools, way: Floats) -> Floats:
        """Newton's, where they are plausible and inside; else where the tangents cross, at such a way; else in the middle.

        A parabola that would fall below the crossing is not plausible: there the function has a bend as sharp as a corner.
        """
        width = self.right - self.left
        crossing = self.left + np.where((way > 0.0) & (way < width), way, 0.5 * width)
        return np.where((newton > self.left) & (newton < self.right) & plausible, newton, crossing)

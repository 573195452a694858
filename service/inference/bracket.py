"""Where a convex function is least, between two points whose tangents are known: many functions at once, a step at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from service.inference.lines import tangents_crossing
from service.inference.samples import Bools, Floats, Ints


class Bracket(NamedTuple):
    """Two points around the least of each function, with the value and the slope there; minus infinity where none was seen."""

    left: Floats
    left_value: Floats
    left_slope: Floats
    right: Floats
    right_value: Floats
    right_slope: Floats

    @staticmethod
    def between(left: float, right: float, count: int) -> Bracket:
        """Nothing was seen yet."""
        unseen, level = np.full(count, -np.inf), np.zeros(count)
        return Bracket(np.full(count, left), unseen, level, np.full(count, right), unseen, level)

    def narrowed(self, at: Floats, value: Floats, slope: Floats) -> Bracket:
        """By what was seen at these points inside."""
        falls = slope < 0.0
        return Bracket(
            *(np.where(falls, new, old) for new, old in zip((at, value, slope), self[:3], strict=True)),
            *(np.where(falls, old, new) for new, old in zip((at, value, slope), self[3:], strict=True)),
        )

    def pick(self, rows: Ints) -> Bracket:
        """Of some of the functions."""
        return Bracket(*(each[rows] for each in self))

    def crossing(self) -> tuple[Floats, Floats]:
        """How far from the left point the tangents cross, and how high: no function is lower anywhere."""
        width = self.right - self.left
        return tangents_crossing(self.left_value, self.left_slope, self.right_value, self.right_slope, width)

    def next_points(self, newton: Floats, plausible: Bools, way: Floats) -> Floats:
        """Newton's, where they are plausible and inside; else where the tangents cross, at such a way; else in the middle.

        A parabola that would fall below the crossing is not plausible: there the function has a bend as sharp as a corner.
        """
        width = self.right - self.left
        crossing = self.left + np.where((way > 0.0) & (way < width), way, 0.5 * width)
        return np.where((newton > self.left) & (newton < self.right) & plausible, newton, crossing)

"""The least log evidence along a line in the plane of two arms' means, from below, out of its values at a few points.

Each reward kind has its own reason why nothing lower hides between the points. The points are on the last axis, in order.
"""

from __future__ import annotations

import numpy as np

from service.inference.samples import Floats

# Two points that are closer count as one, and so does what a bend changes between them.
_CLOSEST = 1e-300


def least_of_convex(points: Floats, values: Floats) -> Floats:
    """A convex function between the outermost of four points or more: it lies above its chords where these are extended.

    Where some points are equal, and not all, there are not chords enough: then nothing is known, and it is minus infinity.
    """
    steps = np.diff(points)
    with np.errstate(divide="ignore", invalid="ignore"):
        chords = np.where(steps > 0.0, np.diff(values) / steps, 0.0)
    left, right = values[:, :-1], values[:, 1:]
    inner = between_tangents(left[:, 1:-1], chords[:, :-2], right[:, 1:-1], chords[:, 2:], steps[:, 1:-1])
    # At the outermost steps only one chord can be extended.
    bounds = [
        values[:, 1] - np.maximum(chords[:, 1], 0.0) * steps[:, 0],
        values.min(axis=1),
        inner.min(axis=1),
        values[:, -2] + np.minimum(chords[:, -2], 0.0) * steps[:, -1],
    ]
    least = np.minimum.reduce(bounds)
    known = (steps > 0.0).all(axis=1) | (points[:, 0] == points[:, -1])
    return np.where(known, least, -np.inf)


def least_of_limited_bend(points: Floats, falling: Floats, rising: Floats, bends: Floats) -> Floats:
    """The sum of two functions whose second derivative is nowhere above `bends`, between the outermost points."""
    least: Floats = least_by_step(points, falling, rising, bends).min(axis=1)
    return least


def least_by_step(points: Floats, falling: Floats, rising: Floats, bends: Floats) -> Floats:
    """The same between each two points that follow each other.

    There it lies above the parabola of that bend through its values, and above the sum of what falls, at the second, and what
    rises, at the first.
    """
    values, steps = falling + rising, np.diff(points)
    left, rise, bend = values[:, :-1], np.diff(values), bends[:, None]
    apart = np.maximum(steps, _CLOSEST)
    with np.errstate(over="ignore"):
        lowest = np.minimum(np.maximum(0.5 * steps - rise / np.maximum(bend * apart, _CLOSEST), 0.0), steps)
        chord = rise / apart
    parabola = left + lowest * (chord - 0.5 * bend * (steps - lowest))
    least: Floats = np.maximum(parabola, falling[:, 1:] + rising[:, :-1])
    return least


def between_tangents(left_value: Floats, left_slope: Floats, right_value: Floats, right_slope: Floats, width: Floats) -> Floats:
    """The least that a convex function can be between two points: where its tangents there cross."""
    return tangents_crossing(left_value, left_slope, right_value, right_slope, width)[1]


def tangents_crossing(
    left_value: Floats, left_slope: Floats, right_value: Floats, right_slope: Floats, width: Floats
) -> tuple[Floats, Floats]:
    """How far from the left one of two points its tangents cross, and how high: nowhere between is a convex function lower.

    At an end that was not looked at the value is minus infinity: then the other tangent is followed to that end.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        way = (right_value - left_value - right_slope * width) / (left_slope - right_slope)
    way = np.fmin(np.fmax(way, 0.0), width)
    way = np.where(left_value == -np.inf, 0.0, np.where(right_value == -np.inf, width, way))
    return way, np.maximum(left_value + left_slope * way, right_value - right_slope * (width - way))


def largest_log_product(high: Floats, low: Floats, growth: Floats, margin: float, low_growth: Floats | None = None) -> Floats:
    """The largest value of n log(1 + g m) + k log(1 + h (1 - d - m)) where m and m + d are both between 0 and 1.

    The h is g unless given. It is concave in m, and its derivative is zero at m = (n g (1 + h (1 - d)) - k h) / (g h (n + k)).
    """
    room, other = 1.0 - margin, growth if low_growth is None else low_growth
    at = (high * (1.0 / other + room) - low / growth) / (high + low)
    at = np.minimum(np.maximum(at, max(0.0, -margin)), min(1.0, room))
    return high * np.log1p(growth * at) + low * np.log1p(other * (room - at))

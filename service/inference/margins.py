"""How far from the data a difference or a ratio of two means is ruled out: the pair tests, inverted.

The pair tests hold evidence E(h, l) against every pair of means of a high and a low arm; it falls in h and rises in l (for real
rewards: towards the sample means). So to rule out all pairs on and above a line l = h + t, or l = t h, it is enough that E
attains its goal on the line, wherever both means are possible there. Sought is the smallest such t; the least log E on a line is
known from below by a few of its values (`surfaces`). It is sought from inside, where E is too small, and given to the outside,
where it was seen to be enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from service.inference.samples import Bools, Floats, Ints, Samples
from service.inference.solving import reach
from service.inference.surfaces import OFFSETS, SURFACES, Lines, Surface

if TYPE_CHECKING:
    from service.domain import RewardKind

# Excess of width accepted over the exact bound, always to the outside.
TOLERANCE = 1e-3
# A ratio that far beyond what one would expect says nothing.
_FARTHEST = 1e6
# The four points around the centre, and how far they are from it.
_AROUND = slice(2, 6)
_INNER, _OUTER = OFFSETS[3:5]
# The outermost points keep off the ends, by a part of the offsets' unit: two points that are one have no chord.
_ASIDE = OFFSETS[-1] + 0.1
_ROOM = 0.45 / _ASIDE
# Points that are closer together, as parts of the line, have chords of nothing but rounding.
_CLOSEST = 1e-6
# Log evidence may be given away up to this much; no closer look is needed where there is more than enough of it.
_SLACK, _CLEAR = 0.03, 1.1
_CLOSER_LOOKS = 8


class Families(NamedTuple):
    """For each pair the lines of a difference or, with a zero, of a ratio."""

    zeros: Floats
    """Where a mean is zero on the scale of the samples; not a number for the lines of a difference."""
    ratio: Bools

    def lines(self, rows: Ints, at: Floats) -> Lines:
        """The line of this difference or ratio."""
        ratio = self.ratio[rows]
        return Lines(np.where(ratio, (1.0 - at) * self.zeros[rows], at), np.where(ratio, at, 1.0), self.zeros[rows])

    def through(self, high: Floats, low: Floats) -> Floats:
        """The difference or ratio of these means; infinite where the high mean is not above zero."""
        size = np.where(self.ratio, np.maximum(high - self.zeros, 0.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.ratio, 1.0, 0.0) + np.where(size > 0.0, (low - high) / size, np.inf)


def distances(kind: RewardKind, high: Samples, low: Samples, goals: Floats, zeros: Floats) -> Floats:
    """How far beyond the observed difference low - high (with a zero, ratio low / high) of each pair nothing is possible.

    Infinite where nothing can be said. The goals are those of the log evidence. Both arms have rewards, binary and bounded ones
    are on the unit scale. Where there is a zero (not nan) the mean of `high` is above it and that of `low` not below.
    """
    families = Families(zeros, ~np.isnan(zeros))
    surface = SURFACES[kind](high, low, goals)
    observed = families.through(high.means, low.means)
    # Not a number where nothing can be said.
    with np.errstate(invalid="ignore", over="ignore"):
        limits = families.through(*surface.farthest) - observed
        start = np.minimum(_start(families, surface, observed), limits)
    found = np.where(np.isfinite(limits), limits, np.inf)
    search = np.flatnonzero(np.isfinite(start))
    lines = families.lines(search, (observed + start)[search])
    surface.aim(search, lines, _about_least(surface, search, lines)[0])
    sights = _Sights(surface, goals)

    def log_evidence(places: Ints, at: Floats) -> Floats:
        rows = search[places]
        return sights.least(rows, families.lines(rows, observed[rows] + at))

    ends = np.where(np.isfinite(limits), limits, _FARTHEST * start)[search]
    reached = reach(log_evidence, goals[search], surface.baselines[search], start[search], ends, tolerance=TOLERANCE)
    found[search] = np.where(reached < ends, reached, found[search])
    return found


class _Sights:
    """Where on the lines of each pair the evidence was least when it was last looked at, and how sharply, in standard errors."""

    def __init__(self, surface: Surface, goals: Floats) -> None:
        self.surface, self.goals = surface, goals
        self.shifts, self.scales = np.zeros(len(goals)), np.ones(len(goals))

    def least(self, rows: Ints, lines: Lines) -> Floats:
        """The least log evidence on the lines, from below; where it is not enough, the least that was seen."""
        least, seen = self._look(rows, lines)
        for _ in range(_CLOSER_LOOKS):
            doubtful = np.flatnonzero((seen >= self.goals[rows]) & (least < np.minimum(seen - _SLACK, _CLEAR * self.goals[rows])))
            if len(doubtful) == 0:
                break
            again, seen_again = self._look(rows[doubtful], lines.pick(doubtful))
            least[doubtful] = np.maximum(least[doubtful], again)
            seen[doubtful] = np.minimum(seen[doubtful], seen_again)
        return np.where(seen < self.goals[rows], seen, least)

    def _look(self, rows: Ints, lines: Lines) -> tuple[Floats, Floats]:
        """A bound, and the least of the values at some points, by which the next look is better directed."""
        first, last = self.surface.ends(rows, lines)
        guess, error = _about_least(self.surface, rows, lines)
        scale = np.clip(error * self.scales[rows], _CLOSEST * (last - first), _ROOM * (last - first))
        centre = np.clip(guess + self.shifts[rows] * error, first + _ASIDE * scale, last - _ASIDE * scale)
        points = np.column_stack([first, centre[:, None] + scale[:, None] * OFFSETS, last])
        least, values = self.surface.least(rows, lines, points)
        lowest = values.argmin(axis=1)
        step, width = _vertex(values)
        every = np.arange(len(rows))
        around = (lowest >= _AROUND.start) & (lowest < _AROUND.stop)
        self.shifts[rows] = (np.where(around, centre + scale * step, points[every, lowest]) - guess) / error
        self.scales[rows] = np.clip(scale / error * width, 0.05, 10.0)
        return least, values[every, lowest]


def _start(families: Families, surface: Surface, observed: Floats) -> Floats:
    """About how far the bound will be, from how far each of the two means alone reaches."""
    above, below = surface.reaches
    size = surface.high.means - families.zeros
    room = np.where(families.ratio, np.maximum(size - 0.7 * above, 0.3 * size), 1.0)
    reached = np.hypot(below, np.where(families.ratio, observed, 1.0) * above)
    return np.where(room > 0.0, reached / np.where(room > 0.0, room, 1.0), np.inf)


def _about_least(surface: Surface, rows: Ints, lines: Lines) -> tuple[Floats, Floats]:
    """About where on the line the evidence is least, and the standard error there, as if both means were Gaussian."""
    above, below = (error[rows] for error in surface.errors)
    below = below / lines.slope
    high = surface.high.means[rows]
    total = above * above + below * below
    return high - (high - lines.high(surface.low.means[rows])) * (above * above / total), above * below / np.sqrt(total)


def _vertex(values: Floats) -> tuple[Floats, Floats]:
    """Of the parabola through the four points around the centre: how far it is and how wide, in the unit of the offsets."""
    one, two, three, four = values[:, _AROUND].T
    slope = (four - one) / (2.0 * _OUTER)
    bend = np.maximum((four + one - two - three) / (_OUTER * _OUTER - _INNER * _INNER), 0.01)
    return np.clip(-slope / bend, -2.0, 2.0), 1.0 / np.sqrt(bend)

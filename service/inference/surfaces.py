"""The evidence against pairs of means, one class a reward kind, and its least value on a line of them.

`binary_pairs`, `bounded_pairs` and (for real rewards) `pairs` have the formulas. On a line l = offset + slope h a few values
bound log E from below (`lines`), because there
- binary and bounded: log E is convex, as log A and log B are (for bounded rewards the bets of one slope have none of its weight
  here: EQUAL has all of it);
- real: d^2/dm^2 log T is at most (n^2 / Q) (1 + c^2 / (8 (n + c^2))).

Tilts and bets are chosen once, against a guess of the pair of means at which the goal is attained: any choice is safe, a good one
is near the best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from service.inference import binary_pairs, bounded, bounded_pairs, real
from service.inference.binary import successes
from service.inference.lines import least_of_convex, least_of_limited_bend
from service.inference.samples import Floats, Ints, Samples

if TYPE_CHECKING:
    from service.domain import RewardKind

# About what the mixtures cost, in log evidence.
_PRICE = 3.0
# Where a line is looked at beside the two sample means, in standard errors from where the evidence is about least.
OFFSETS = np.array([-2.0, -0.3, -0.1, 0.1, 0.3, 2.0])
_LOG_PARTS = np.log([0.6, 0.1, 0.1, 0.1, 0.1])[:, None, None]
_WINDOW, _QUARTER_STEPS = 5, 2


class Lines(NamedTuple):
    """A line for each pair: the low arm's mean is offset + slope * the high arm's."""

    offset: Floats
    slope: Floats
    zeros: Floats
    """Where there is one, both means are above it."""

    def low(self, high: Floats) -> Floats:
        """The low arm's means (several candidates a pair) where the high arm has these."""
        return self.offset[:, None] + self.slope[:, None] * high

    def pick(self, rows: Ints) -> Lines:
        """The lines of some pairs."""
        return Lines(self.offset[rows], self.slope[rows], self.zeros[rows])

    def high(self, low: Floats | float) -> Floats:
        """The high arm's mean where the low arm has this."""
        return (low - self.offset) / self.slope


class Surface(Protocol):
    """The log evidence of some pairs, all arrays with one entry a pair."""

    high: Samples
    low: Samples
    errors: tuple[Floats, Floats]
    """About the standard errors of the two means."""
    reaches: tuple[Floats, Floats]
    """About how far from either mean its own evidence would be enough; infinite where it never is."""
    farthest: tuple[Floats, Floats]
    """The lowest high mean and the highest low one: beyond both nothing is possible."""
    baselines: Floats
    """About the log evidence against the sample means."""

    def aim(self, rows: Ints, lines: Lines, means: Floats) -> None:
        """Choose what is good against these high means on the lines."""
        ...

    def ends(self, rows: Ints, lines: Lines) -> tuple[Floats, Floats]:
        """Between these high means the lines are looked at."""
        ...

    def least(self, rows: Ints, lines: Lines, points: Floats) -> tuple[Floats, Floats]:
        """A lower bound of log E on the whole line, and its values at these high means, of which the outermost are the ends."""
        ...


class Binary:
    """Binary rewards."""

    def __init__(self, high: Samples, low: Samples, goals: Floats) -> None:
        self.high, self.low = high, low
        self.counts = np.stack([high.counts, low.counts])
        self.wins = np.stack([successes(high), low.counts - successes(low)])
        price = goals + _PRICE
        shares = (self.wins + 0.5) / (self.counts + 1.0)
        above, below = np.sqrt(shares * (1.0 - shares) / self.counts)
        self.errors = above, below
        # As in Wilson's interval, which does not vanish where all rewards are alike.
        shares = (self.wins + price) / (self.counts + 2.0 * price)
        above, below = np.sqrt(2.0 * price * shares * (1.0 - shares) / (self.counts + 2.0 * price))
        self.reaches = above, below
        self.farthest = np.zeros(len(goals)), np.ones(len(goals))
        self.baselines = np.full(len(goals), -_PRICE)

    def aim(self, rows: Ints, lines: Lines, means: Floats) -> None:
        """The tilts around the effect between the smoothed shares and these means."""
        first, last = self.ends(rows, lines)
        means = np.clip(means, first, last)
        counts, wins = self.counts[:, rows], self.wins[:, rows]
        margin = 0.5 / (counts + 1.0)
        candidates = np.clip(np.stack([means, 1.0 - lines.low(means[:, None])[:, 0]]), margin, 1.0 - margin)
        effect = (np.log((wins + 0.5) / (counts - wins + 0.5)) + np.log((1.0 - candidates) / candidates)).sum(axis=0)
        every = np.zeros(self.counts.shape[1])
        every[rows] = effect
        self.tilts, self.growth, log_weights = binary_pairs.window(every)
        self.log_weights = log_weights + _LOG_PARTS

    def ends(self, rows: Ints, lines: Lines) -> tuple[Floats, Floats]:  # noqa: ARG002 - real rewards need them
        """All that is possible: with unequal counts, or where all rewards are alike, log E may be least beyond a sample mean."""
        return _possible(lines)

    def least(self, rows: Ints, lines: Lines, points: Floats) -> tuple[Floats, Floats]:
        """By convexity."""
        growth, tilts = self.growth[:, rows, None], self.tilts[:, rows, None]
        (high_counts, low_counts), (high_wins, low_wins) = self.counts[:, rows, None], self.wins[:, rows, None]
        above = tilts * high_wins - high_counts * np.log1p(growth * points)
        below = tilts * low_wins - low_counts * np.log1p(growth * (1.0 - lines.low(points)))
        values = _log_sum(_joined(above, below, self.log_weights[:, :, rows, None]))
        return least_of_convex(points, values), values


class Bounded:
    """Bounded rewards."""

    def __init__(self, high: Samples, low: Samples, goals: Floats) -> None:
        self.high, self.low = high, low
        self.mirror = bounded.mirrored(low)
        self.coins = bounded.worst_coin(high), bounded.worst_coin(self.mirror)
        price = goals + _PRICE
        # Rewards that are all alike may still differ by what a single other one would change.
        self.errors = np.sqrt(high.squares + 0.5) / high.counts, np.sqrt(low.squares + 0.5) / low.counts
        above, below = (
            np.sqrt(2.0 * price * each.squares) / each.counts + price * each.means / each.counts for each in (high, self.mirror)
        )
        self.reaches = above, below
        self.farthest = np.zeros(len(goals)), np.ones(len(goals))
        self.baselines = np.full(len(goals), -_PRICE)

    def aim(self, rows: Ints, lines: Lines, means: Floats) -> None:
        """The bets for arms that are together so far from these means."""
        first, last = _possible(lines)
        means = np.clip(means, first, last)
        gaps = np.zeros(len(self.high.means))
        gaps[rows] = self.high.means[rows] - means + lines.low(means[:, None])[:, 0] - self.low.means[rows]
        self.bets, log_weights = bounded_pairs.window(self.high, self.mirror, gaps)
        self.log_weights = log_weights + _LOG_PARTS

    def ends(self, rows: Ints, lines: Lines) -> tuple[Floats, Floats]:  # noqa: ARG002 - real rewards need them
        """All that is possible, as for binary rewards."""
        return _possible(lines)

    def least(self, rows: Ints, lines: Lines, points: Floats) -> tuple[Floats, Floats]:
        """By convexity."""
        bets, picked = self.bets[:, rows, None], (rows, None)
        high, low = (coin.pick(picked) for coin in self.coins)
        above = bounded.log_bet_wealth(high, bets, points)
        below = bounded.log_bet_wealth(low, bets, 1.0 - lines.low(points))
        values = _log_sum(_joined(above, below, self.log_weights[:, :, rows, None]))
        return least_of_convex(points, values), values


class Real:
    """Real rewards."""

    def __init__(self, high: Samples, low: Samples, goals: Floats) -> None:
        self.high, self.low = high, low
        self.errors = _errors(high), _errors(low)
        at_means = [np.where(each.squares > 0.0, real.log_evidence(each, each.means), 0.0) for each in (high, low)]
        self.baselines = at_means[0] + at_means[1]
        # So far from its mean one arm is evidence enough, wherever the other is.
        lowest = real.bounds(high, np.exp(at_means[1] - goals))[0]
        highest = real.bounds(low, np.exp(at_means[0] - goals))[1]
        self.farthest = lowest, highest
        self.reaches = high.means - lowest, highest - low.means

    def aim(self, rows: Ints, lines: Lines, means: Floats) -> None:
        """There is nothing to choose."""

    def ends(self, rows: Ints, lines: Lines) -> tuple[Floats, Floats]:
        """The two sample means, if they are above zero where they have to be."""
        right = self.high.means[rows]
        return np.minimum(np.fmax(lines.high(self.low.means[rows]), lines.zeros), right), right

    def least(self, rows: Ints, lines: Lines, points: Floats) -> tuple[Floats, Floats]:
        """By the largest bend."""
        falling = real.log_evidence(self.high.pick((rows, None)), points)
        rising = real.log_evidence(self.low.pick((rows, None)), lines.low(points))
        bends = real.largest_bend(self.high.pick(rows)) + lines.slope**2 * real.largest_bend(self.low.pick(rows))
        return least_of_limited_bend(points, falling, rising, bends), falling + rising


SURFACES: dict[RewardKind, type[Binary | Bounded | Real]] = {"binary": Binary, "bounded": Bounded, "real": Real}


def _possible(lines: Lines) -> tuple[Floats, Floats]:
    """The high means on the lines for which both means are between 0, or the zero of a ratio, and 1."""
    first = np.minimum(np.maximum(np.fmax(0.0, lines.zeros), lines.high(0.0)), 1.0)
    return first, np.clip(lines.high(1.0), first, 1.0)


def _errors(samples: Samples) -> Floats:
    """Standard errors of the means."""
    return np.sqrt(samples.squares) / samples.counts + 1e-9 * np.abs(samples.means) + 1e-150


def _joined(above: Floats, below: Floats, log_weights: Floats) -> Floats:
    """The logs of the terms of E from those of the two arms: kind of term, tilt or bet, pair, point."""
    whole, quarter = slice(_QUARTER_STEPS, None), slice(0, _WINDOW)
    terms = np.empty((len(_LOG_PARTS), *above[whole].shape))
    np.add(above[whole], below[whole], out=terms[0])
    np.add(above[whole], below[quarter], out=terms[1])
    np.add(above[quarter], below[whole], out=terms[2])
    terms[3], terms[4] = above[whole], below[whole]
    terms += log_weights
    return terms


def _log_sum(terms: Floats) -> Floats:
    """Log E from the logs of its terms."""
    largest = terms.max(axis=(0, 1))
    terms -= largest
    values: Floats = largest + np.log(np.exp(terms, out=terms).sum(axis=(0, 1)))
    return values

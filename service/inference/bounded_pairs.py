"""Bounded rewards, one arm against another: bets on both arms, tied by one size, least over the common mean.

With W_d(m) of `bounded` for the high arm (A) and for the low arm counted from the upper end (B, at 1 - m), both at most what a
nonnegative supermartingale that starts at 1 under mean_high <= m <= mean_low is then, whatever the policy does,

    E(m) = sum over bets d of w(d) ( .4 S_d + .2 A_d B_d + .1 A_d B_{d/4} + .1 A_{d/4} B_d + .1 A_d + .1 B_d )

is no more either, and the least of E over all m rejects "mean_high <= mean_low" as for binary rewards (`binary_pairs`, where the
parts are explained: a binary arm tilted by x has the bet e^x - 1).

S_d is A B with bets of one slope. The factor of a bet rises with the reward by its slope k = d/(1 + d m), and the best slopes of
two arms are as their counts are inversely, whatever their variances: where E is least its derivative in m is zero. Bets of one
size have one slope only about m = 1/2 or where they are small. A slope is below 1/m for A and below 1/(1 - m) for B, so

    S_d = product of (1 + k (X - m)) over the high arm and of (1 + k (m - X)) over the low one,    k = d/(1 + d max(m, 1 - m)).

It depends on m through k, too, which is allowed: E(m) is held against this m alone.

The bets are 2^-20, ..., 2^8, w halves every two octaves away from 2^-1. Bets far from what the data ask for are left out, which
only lowers E. What E is nowhere below on a cell [s, t] of common means:
- A falls in m and B rises: the sum with A at t and B at s.
- Log S is concave in m for each k, and in k for each m: it is at least the least of its values at the four corners, s or t with
  the smallest or the largest k of the cell.
- Above the last cell at least the part that bets on B alone, at its end; likewise below the first, with A.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr

from service.inference import bounded
from service.inference.bracket import Bracket
from service.inference.cells import least_over_means
from service.inference.lines import largest_log_product
from service.inference.samples import Floats, Ints, Samples, are_all

_LOWEST, _HIGHEST, _CENTRE = -20, 8, -1
_OCTAVES = np.arange(_LOWEST, _HIGHEST + 1)
BETS: Floats = np.exp2(_OCTAVES, dtype=np.float64)
WEIGHTS: Floats = 2.0 ** (-np.abs(_OCTAVES - _CENTRE) / 2.0)
WEIGHTS /= WEIGHTS.sum()
EQUAL, QUARTER, ALONE = 0.6, 0.1, 0.1
# Of the first, the part with equal slopes.
SLOPE = 0.4
_TERMS = 6
_LOG_PARTS = np.log([SLOPE, EQUAL - SLOPE, QUARTER, QUARTER, ALONE, ALONE])[:, None, None, None]
_WINDOW, _QUARTER_STEPS = 5, 2
_LATTICE = 2.0 ** np.arange(_LOWEST - _QUARTER_STEPS, _HIGHEST + 1)
_PLACES = np.arange(_WINDOW + _QUARTER_STEPS)[:, None]
# Of the bets that have their log wealth computed, those of the window and their quarters.
_WHOLE, _QUARTER = slice(_QUARTER_STEPS, None), slice(0, _WINDOW)
# Where in the window the bet is that is about the best.
_BEST = _WINDOW // 2
_LITTLE = 1e-30
# How far beyond the two means, as a part of their distance, both arms' bets are looked at.
_ASIDE = 0.5
# How many looks an evidence is worth that does not attain the goal, and how near to the least is near enough.
_LOOKS, _ROUGH = 5, 0.05
# An exponent that keeps a power finite.
_MOST = 500.0
# Logs of shares of E below this count as this.
_NEGLIGIBLE = -600.0


def least_log_evidence(high: Samples, low: Samples, middle: Floats, goals: Floats, margin: float = 0.0) -> Floats:
    """For each pair the goal or more where log E attains it at every common mean, else the least log E seen.

    Samples on the unit scale, both with rewards, the mean of `high` with the margin above that of `low`; `middle` is about
    where E is least. The margin is between -1 and 1; with it B is taken at m + margin in place of m.
    """
    mirror = bounded.mirrored(low)
    bets, log_weights = window(high, mirror, high.means + mirror.means - 1.0 + margin)
    pairs = _Pairs.of(bounded.worst_coin(high), bounded.worst_coin(mirror), bets, log_weights, margin)
    least = _least_of_one_bet(pairs)
    rows = np.flatnonzero(least < goals)
    if len(rows):
        ends = pairs.ends()
        left, right = np.clip(low.means[rows] - margin, *ends), np.clip(high.means[rows], *ends)
        least[rows] = _least(pairs.pick(rows), left, np.clip(middle[rows], left, right), right, goals[rows])
    return least


def log_evidence_ceiling(high: Samples, low: Samples, means: Floats) -> Floats:
    """What log E at these common means cannot exceed: both arms with the best of all bets, for each alone."""
    ceiling: Floats = np.zeros(len(means))
    for arm, candidates in ((high, means), (bounded.mirrored(low), 1.0 - means)):
        counts, heads, size = bounded.worst_coin(arm)
        shares = candidates / np.maximum(size, _LITTLE)
        ceiling += rel_entr(heads, counts * shares) + rel_entr(counts - heads, counts * (1.0 - shares))
    return ceiling


class _Pairs(NamedTuple):
    """Some pairs of arms on the last axis, with the bets that matter for them on the first."""

    high: bounded.Coin
    low: bounded.Coin
    """Counted from the upper end."""
    bets: Floats
    """The window of bets, below it the two that are quarters of its lowest."""
    gains: Floats
    """What the rewards that are not zero earn with each bet, by bet, arm and pair."""
    log_weights: Floats
    """Of the bets in the window."""
    margin: float

    @staticmethod
    def of(high: bounded.Coin, low: bounded.Coin, bets: Floats, log_weights: Floats, margin: float) -> _Pairs:
        heads, size = (np.array(both) for both in zip(high[1:], low[1:], strict=True))
        return _Pairs(high, low, bets, heads * np.log1p(bets[:, None] * size), log_weights, margin)

    def pick(self, rows: Ints) -> _Pairs:
        """Some of them, a pair as often as it is named; nothing is copied where all are meant."""
        if are_all(rows, self.bets.shape[1]):
            return self
        bets, gains, log_weights = (np.take(each, rows, axis=-1) for each in (self.bets, self.gains, self.log_weights))
        return _Pairs(self.high.pick(rows), self.low.pick(rows), bets, gains, log_weights, self.margin)

    def ends(self) -> tuple[float, float]:
        """Between these the common mean lies."""
        return max(0.0, -self.margin), min(1.0, 1.0 - self.margin)

    def alone(self, means: Floats) -> tuple[Floats, Floats]:
        """Log A_d and log B_d at several m (the first axis here, then the second); of B at m + margin."""
        found = []
        for arm, (coin, candidates) in enumerate(((self.high, means), (self.low, 1.0 - self.margin - means))):
            log_wealth: Floats = np.log1p(self.bets[:, None] * candidates)
            log_wealth *= -coin.counts
            log_wealth += self.gains[:, None, arm]
            found.append(log_wealth)
        return found[0], found[1]

    def sloped(self, room: Floats, means: Floats) -> Floats:
        """Log S with the slopes d/(1 + d room) of the bets in the window."""
        bets = self.bets[_WHOLE, None]
        slopes = bets / (1.0 + bets * room)
        above = bounded.log_slope_wealth(self.high, slopes, means)
        above += bounded.log_slope_wealth(self.low, slopes, 1.0 - self.margin - means)
        return above

    def room(self, means: Floats) -> Floats:
        """The max(m, 1 - m) in the slopes."""
        return np.maximum(means, 1.0 - self.margin - means)

    def values(self, means: Floats) -> Floats:
        """Log E at several m, on the first axis."""
        return _log_sum(self.sloped(self.room(means), means), *self.alone(means), self.log_weights[:, None])

    def least_sloped(self, edges: Floats) -> Floats:
        """Log S of each bet is nowhere below this within cells of m: the least of its four corners."""
        start, end, at_edges = edges[:-1], edges[1:], self.room(edges)
        # Least in the middle of the range of m, else at one of the ends.
        least, most = np.minimum(at_edges[:-1], at_edges[1:]), np.maximum(at_edges[:-1], at_edges[1:])
        middle = 0.5 * (1.0 - self.margin)
        least = np.where((start < middle) & (middle < end), middle, least)
        corners = self.sloped(np.concatenate([least, least, most, most]), np.concatenate([start, end, start, end]))
        lowest: Floats = corners.reshape(len(corners), 4, len(start), -1).min(axis=1)
        return lowest

    def at(self, rows: Ints, means: Floats) -> Floats:
        """Log E of these pairs, at several m each (the last axis)."""
        return self.pick(rows).values(np.ascontiguousarray(means.T)).T

    def over(self, rows: Ints, edges: Floats) -> tuple[Floats, Floats]:
        """Log E at the edges of cells, and what it is nowhere below within each of them."""
        some, points = self.pick(rows), np.ascontiguousarray(edges.T)
        above, below = some.alone(points)
        weights = some.log_weights[:, None]
        bounds = _log_sum(some.least_sloped(points), above[:, 1:], below[:, :-1], weights)
        return _log_sum(some.sloped(some.room(points), points), above, below, weights).T, bounds.T


def _least_of_one_bet(pairs: _Pairs) -> Floats:
    """What log E is nowhere below: the least of its term with one bet on both arms, which settles most that is shown."""
    place = _QUARTER_STEPS + _BEST
    lost = largest_log_product(pairs.high.counts, pairs.low.counts, pairs.bets[place], pairs.margin)
    least: Floats = pairs.log_weights[_BEST] + np.log(EQUAL - SLOPE) - lost
    least += pairs.gains[place].sum(axis=0)
    return least


def _least(pairs: _Pairs, left: Floats, middle: Floats, right: Floats, goals: Floats) -> Floats:
    """A look at the middle settles most that is not shown, one wide cell most that is; the others are looked at cell by cell."""
    least = _least_seen(pairs, middle, goals)
    rows = np.flatnonzero(least >= goals)
    if len(rows):
        some = (each[rows] for each in (left, middle, right, goals))
        least[rows] = _least_by_cells(pairs.pick(rows), *some)
    return least


def _least_seen(pairs: _Pairs, start: Floats, goals: Floats) -> Floats:
    """Log E at the start; where that is below the goal, what is seen on a few steps towards the least, as if E were convex."""
    least = np.full(len(start), np.inf)
    rows, at = np.arange(len(start)), start
    bracket = Bracket.between(*pairs.ends(), len(rows))
    for looks in range(_LOOKS):
        value, shares = _log_sum_and_shares(pairs, at)
        least[rows] = np.minimum(least[rows], value)
        slope, second = _derivatives(pairs, at, shares)
        bracket = bracket.narrowed(at, value, slope)
        step = slope / np.maximum(second, _LITTLE)
        fall = 0.5 * slope * step
        kept = np.flatnonzero((value > 0.0) & (least[rows] < goals) & (fall > _ROUGH))
        if len(kept) == 0:
            break
        pairs, bracket = pairs.pick(kept), bracket.pick(kept)
        rows, goals, at = rows[kept], goals[kept], at[kept]
        step, value, fall = step[kept], value[kept], fall[kept]
        way, bound = bracket.crossing()
        if looks == 0:
            high_wall, low_wall = _walls(pairs, at, value)
            step = np.minimum(np.maximum(step, -low_wall), high_wall)
        at = bracket.next_points(at - step, value - fall >= bound - 1.0, way)
    return least


def _log_sum_and_shares(pairs: _Pairs, means: Floats) -> tuple[Floats, Floats]:
    """Log E at one m for each pair, and what each term has of E, by kind and bet."""
    points = means[None]
    terms = _log_terms(pairs.sloped(pairs.room(points), points), *pairs.alone(points))
    log_sum = _log_sum_of(terms, pairs.log_weights[:, None])[0]
    shares = terms[:, :, 0]
    shares /= shares.sum(axis=(0, 1))
    return log_sum, shares


def _derivatives(pairs: _Pairs, at: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """About those of log E, the first and the second; the shares are overwritten.

    A bet's log wealth changes with m by minus or plus n/(m + 1/d), in S by the sum of k/(1 + k (X - m)); the second derivative is
    nearly the variance of these.
    """
    mirror = 1.0 - pairs.margin - at
    falling, rising = (coin.counts / (each + 1.0 / pairs.bets) for coin, each in ((pairs.high, at), (pairs.low, mirror)))
    slopes = np.empty(shares.shape)
    bets = pairs.bets[_WHOLE]
    slope = bets / (1.0 + bets * pairs.room(at))
    slopes[0] = _slope_rate(pairs.low, slope, mirror) - _slope_rate(pairs.high, slope, at)
    slopes[1] = rising[_WHOLE] - falling[_WHOLE]
    slopes[2] = rising[_QUARTER] - falling[_WHOLE]
    slopes[3] = rising[_WHOLE] - falling[_QUARTER]
    slopes[4], slopes[5] = -falling[_WHOLE], rising[_WHOLE]
    shares *= slopes
    first: Floats = shares.sum(axis=(0, 1))
    shares *= slopes
    second: Floats = shares.sum(axis=(0, 1)) - first * first
    return first, second


def _slope_rate(coin: bounded.Coin, slopes: Floats, means: Floats) -> Floats:
    """The sum of k/(1 + k (X - m)) over the coin's rewards."""
    kept = np.maximum(1.0 - slopes * means, _LITTLE)
    rates: Floats = slopes * ((coin.counts - coin.heads) / kept + coin.heads / (kept + slopes * coin.size))
    return rates


def _walls(pairs: _Pairs, at: Floats, value: Floats) -> tuple[Floats, Floats]:
    """How far below m a bet on the high arm alone grows to about all of E, and how far above one on the low arm.

    Where this arm has many more rewards than the other E is least about there, and rises steeply beyond.
    """
    found = []
    for arm, (coin, each) in enumerate(((pairs.high, at), (pairs.low, 1.0 - pairs.margin - at))):
        logs = pairs.gains[_WHOLE, arm] + pairs.log_weights + np.log(ALONE) - value + 1.0
        walls = np.expm1(np.minimum(logs / coin.counts, _MOST)) / pairs.bets[_WHOLE]
        found.append(np.maximum(each - walls.max(axis=0), 0.0))
    return found[0], found[1]


def _least_by_cells(pairs: _Pairs, left: Floats, middle: Floats, right: Floats, goals: Floats) -> Floats:
    """From a little below the low mean to a little above the high one, and by the bets on one arm alone beyond."""
    first, last = pairs.ends()
    tried = np.stack([left, 0.5 * (left + middle), middle, 0.5 * (middle + right), right], axis=1)
    aside = _ASIDE * (right - left)
    left, right = np.maximum(left - aside, first), np.minimum(right + aside, last)
    least = _least_over_wide_cell(pairs, np.array([left, right]))
    rows = np.flatnonzero(least < goals)
    if len(rows):
        ends = {"left": left[rows], "right": right[rows]}
        some = pairs.pick(rows)
        least[rows] = least_over_means(some.at, some.over, **ends, tried=tried[rows], goals=goals[rows])
    rows = np.flatnonzero(least >= goals)
    if len(rows):
        some, left, right = pairs.pick(rows), left[rows], right[rows]
        above, below = some.alone(np.array([left, right]))
        shares = some.log_weights + np.log(ALONE)
        # Where an end of the range of m is reached, nothing lies beyond.
        for wealth, inside in ((above[_WHOLE, 0], left > first), (below[_WHOLE, 1], right < last)):
            beyond = np.where(inside, np.logaddexp.reduce(wealth + shares, axis=0), np.inf)
            least[rows] = np.minimum(least[rows], beyond)
    return least


def _least_over_wide_cell(pairs: _Pairs, edges: Floats) -> Floats:
    """What log E is nowhere below within one cell: S by its corners, every other term on both arms by its least over all m."""
    terms = np.full((_TERMS, _WINDOW, len(edges) - 1, edges.shape[1]), -np.inf)
    terms[0] = pairs.least_sloped(edges)
    (whole_high, quarter_high), (whole_low, quarter_low) = (
        (pairs.gains[_WHOLE, arm], pairs.gains[_QUARTER, arm]) for arm in (0, 1)
    )
    whole, quarter, counts = pairs.bets[_WHOLE], pairs.bets[_QUARTER], (pairs.high.counts, pairs.low.counts)
    terms[1] = (whole_high + whole_low - largest_log_product(*counts, whole, pairs.margin))[:, None]
    terms[2] = (whole_high + quarter_low - largest_log_product(*counts, whole, pairs.margin, quarter))[:, None]
    terms[3] = (quarter_high + whole_low - largest_log_product(*counts, quarter, pairs.margin, whole))[:, None]
    lowest: Floats = _log_sum_of(terms, pairs.log_weights[:, None]).min(axis=0)
    return lowest


def window(high: Samples, low: Samples, gaps: Floats) -> tuple[Floats, Floats]:
    """The bets that matter where the two means are together so far from a common one, and the log weights; others are left out.

    Around the bet that is best where both arms bet alike, gap / (the two variances together). Two more bets below them than there
    are weights: the quarters of the lowest.
    """
    spread = high.squares / high.counts + low.squares / low.counts
    best = np.minimum(np.maximum(gaps, _LITTLE) / np.maximum(spread, _LITTLE), BETS[-1])
    octave = np.rint(np.log2(best)).astype(np.int64) - _LOWEST
    places = np.clip(octave - _WINDOW // 2, 0, len(BETS) - _WINDOW) + _PLACES
    return _LATTICE[places], np.log(WEIGHTS[places[:_WINDOW]])


def _log_terms(sloped: Floats, above: Floats, below: Floats) -> Floats:
    """The logs of the terms of E by kind and bet, without their weights, from the log wealth of the bets."""
    terms = np.empty((_TERMS, *sloped.shape))
    terms[0] = sloped
    np.add(above[_WHOLE], below[_WHOLE], out=terms[1])
    np.add(above[_WHOLE], below[_QUARTER], out=terms[2])
    np.add(above[_QUARTER], below[_WHOLE], out=terms[3])
    terms[4], terms[5] = above[_WHOLE], below[_WHOLE]
    return terms


def _log_sum(sloped: Floats, above: Floats, below: Floats, log_weights: Floats) -> Floats:
    """Log E from the log wealth of the bets on both arms and on either."""
    return _log_sum_of(_log_terms(sloped, above, below), log_weights)


def _log_sum_of(terms: Floats, log_weights: Floats) -> Floats:
    """The same from the logs of its terms without their weights; what is left of these is their shares of E, but for a factor."""
    terms += log_weights
    terms += _LOG_PARTS
    largest = terms.max(axis=(0, 1))
    terms -= largest
    np.maximum(terms, _NEGLIGIBLE, out=terms)  # powers that underflow take long
    log_sum: Floats = np.log(np.exp(terms, out=terms).sum(axis=(0, 1))) + largest
    return log_sum

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
from service.inference.cells import least_over_means
from service.inference.lines import largest_log_product
from service.inference.samples import Floats, Ints, Samples

_LOWEST, _HIGHEST, _CENTRE = -20, 8, -1
_OCTAVES = np.arange(_LOWEST, _HIGHEST + 1)
BETS: Floats = np.exp2(_OCTAVES, dtype=np.float64)
WEIGHTS: Floats = 2.0 ** (-np.abs(_OCTAVES - _CENTRE) / 2.0)
WEIGHTS /= WEIGHTS.sum()
EQUAL, QUARTER, ALONE = 0.6, 0.1, 0.1
# Of the first, the part with equal slopes.
SLOPE = 0.4
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


def least_log_evidence(high: Samples, low: Samples, middle: Floats, goals: Floats, margin: float = 0.0) -> Floats:
    """For each pair the goal or more where log E attains it at every common mean, else the least log E seen.

    Samples on the unit scale, both with rewards, the mean of `high` with the margin above that of `low`; `middle` is about
    where E is least. The margin is between -1 and 1; with it B is taken at m + margin in place of m.
    """
    mirror = bounded.mirrored(low)
    bets, log_weights = window(high, mirror, high.means + mirror.means - 1.0 + margin)
    pairs = _Pairs(bounded.worst_coin(high), bounded.worst_coin(mirror), bets, log_weights, margin)
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
    log_weights: Floats
    """Of the bets in the window."""
    margin: float

    def pick(self, rows: Ints) -> _Pairs:
        return _Pairs(self.high.pick(rows), self.low.pick(rows), self.bets[:, rows], self.log_weights[:, rows], self.margin)

    def ends(self) -> tuple[float, float]:
        """Between these the common mean lies."""
        return max(0.0, -self.margin), min(1.0, 1.0 - self.margin)

    def alone(self, rows: Ints, means: Floats) -> tuple[Floats, Floats]:
        """Log A_d and log B_d of these pairs, at several m each; of B at m + margin."""
        bets, mirror = self.bets[:, rows, None], 1.0 - self.margin - means
        above = bounded.log_bet_wealth(self.high.pick((rows, None)), bets, means)
        return above, bounded.log_bet_wealth(self.low.pick((rows, None)), bets, mirror)

    def sloped(self, rows: Ints, room: Floats, means: Floats) -> Floats:
        """Log S with the slopes d/(1 + d room) of the bets in the window."""
        bets = self.bets[_WHOLE, rows, None]
        slopes, mirror = bets / (1.0 + bets * room), 1.0 - self.margin - means
        above = bounded.log_slope_wealth(self.high.pick((rows, None)), slopes, means)
        return above + bounded.log_slope_wealth(self.low.pick((rows, None)), slopes, mirror)

    def room(self, means: Floats) -> Floats:
        """The max(m, 1 - m) in the slopes."""
        return np.maximum(means, 1.0 - self.margin - means)

    def at(self, rows: Ints, means: Floats) -> Floats:
        """Log E."""
        sloped = self.sloped(rows, self.room(means), means)
        return _log_sum(sloped, *self.alone(rows, means), self.log_weights[:, rows, None])

    def over(self, rows: Ints, edges: Floats) -> tuple[Floats, Floats]:
        """Log E at the edges of cells, and what it is nowhere below within each of them."""
        start, end, at_edges = edges[:, :-1], edges[:, 1:], self.room(edges)
        # Least in the middle of the range of m, else at one of the ends.
        least, most = np.minimum(at_edges[:, :-1], at_edges[:, 1:]), np.maximum(at_edges[:, :-1], at_edges[:, 1:])
        middle = 0.5 * (1.0 - self.margin)
        least = np.where((start < middle) & (middle < end), middle, least)
        # All at once: the edges, then the four corners of every cell.
        rooms, means = [at_edges, least, least, most, most], [edges, start, end, start, end]
        sloped = self.sloped(rows, np.concatenate(rooms, axis=1), np.concatenate(means, axis=1))
        on_edges, corners = sloped[..., : edges.shape[1]], sloped[..., edges.shape[1] :]
        lowest = corners.reshape(*corners.shape[:2], 4, -1).min(axis=2)
        (above, below), log_weights = self.alone(rows, edges), self.log_weights[:, rows, None]
        bounds = _log_sum(lowest, above[..., 1:], below[..., :-1], log_weights)
        return _log_sum(on_edges, above, below, log_weights), bounds


def _least_of_one_bet(pairs: _Pairs) -> Floats:
    """What log E is nowhere below: the least of its term with one bet on both arms, which settles most that is shown."""
    bets = pairs.bets[_QUARTER_STEPS + _BEST]
    lost = largest_log_product(pairs.high.counts, pairs.low.counts, bets, pairs.margin)
    least: Floats = pairs.log_weights[_BEST] + np.log(EQUAL - SLOPE) - lost
    for coin in (pairs.high, pairs.low):
        least += coin.heads * np.log1p(bets * coin.size)
    return least


def _least(pairs: _Pairs, left: Floats, middle: Floats, right: Floats, goals: Floats) -> Floats:
    """By cells from a little below the low mean to a little above the high one, and by the bets on one arm alone beyond."""
    first, last = pairs.ends()
    tried = np.stack([left, 0.5 * (left + middle), middle, 0.5 * (middle + right), right], axis=1)
    aside = _ASIDE * (right - left)
    left, right = np.maximum(left - aside, first), np.minimum(right + aside, last)
    least = least_over_means(pairs.at, pairs.over, left=left, right=right, tried=tried, goals=goals)
    rows = np.flatnonzero(least >= goals)
    if len(rows):
        above, below = pairs.alone(rows, np.stack([left[rows], right[rows]], axis=1))
        shares = pairs.log_weights[:, rows] + np.log(ALONE)
        # Where an end of the range of m is reached, nothing lies beyond.
        for wealth, inside in ((above[_WHOLE, :, 0], left[rows] > first), (below[_WHOLE, :, 1], right[rows] < last)):
            beyond = np.where(inside, np.logaddexp.reduce(wealth + shares, axis=0), np.inf)
            least[rows] = np.minimum(least[rows], beyond)
    return least


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


def _log_sum(sloped: Floats, above: Floats, below: Floats, log_weights: Floats) -> Floats:
    """Log E from the log wealth of the bets on both arms and on either."""
    terms = np.empty((len(_LOG_PARTS), *sloped.shape))
    terms[0] = sloped
    np.add(above[_WHOLE], below[_WHOLE], out=terms[1])
    np.add(above[_WHOLE], below[_QUARTER], out=terms[2])
    np.add(above[_QUARTER], below[_WHOLE], out=terms[3])
    terms[4], terms[5] = above[_WHOLE], below[_WHOLE]
    terms += log_weights
    terms += _LOG_PARTS
    largest = terms.max(axis=(0, 1))
    terms -= largest
    log_sum: Floats = np.log(np.exp(terms, out=terms).sum(axis=(0, 1))) + largest
    return log_sum

"""Bounded rewards, one arm against another: bets on both arms, tied by one size, least over the common mean.

With W_d(m) of `bounded` for the high arm (A) and for the low arm counted from the upper end (B, at 1 - m), both at most what a
nonnegative supermartingale that starts at 1 under mean_high <= m <= mean_low is then, whatever the policy does,

    E(m) = sum over bets d of w(d) ( .6 A_d B_d + .1 A_d B_{d/4} + .1 A_{d/4} B_d + .1 A_d + .1 B_d )

is no more either, and the least of E over all m rejects "mean_high <= mean_low" as for binary rewards (`binary_pairs`, where the
parts are explained: a binary arm tilted by x has the bet e^x - 1). The best bets of two arms are as their counts are inversely,
whatever their variances.

The bets are 2^-20, ..., 2^8, w halves every two octaves away from 2^-1. Bets far from what the data ask for are left out, which
only lowers E. A falls in m and B rises, so on a cell [s, t] E is at least the sum with A at t and B at s; beyond the high mean
it is at least the part that bets on B alone, at the high mean; likewise below the low mean.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import rel_entr

from service.inference import bounded
from service.inference.cells import least_over_means
from service.inference.samples import Floats, Ints, Samples

_LOWEST, _HIGHEST, _CENTRE = -20, 8, -1
_OCTAVES = np.arange(_LOWEST, _HIGHEST + 1)
BETS: Floats = np.exp2(_OCTAVES, dtype=np.float64)
WEIGHTS: Floats = 2.0 ** (-np.abs(_OCTAVES - _CENTRE) / 2.0)
WEIGHTS /= WEIGHTS.sum()
EQUAL, QUARTER, ALONE = 0.6, 0.1, 0.1
_LOG_PARTS = np.log([EQUAL, QUARTER, QUARTER, ALONE, ALONE])[:, None, None, None]
_WINDOW, _QUARTER_STEPS = 5, 2
_LATTICE = 2.0 ** np.arange(_LOWEST - _QUARTER_STEPS, _HIGHEST + 1)
_PLACES = np.arange(_WINDOW + _QUARTER_STEPS)[:, None]
_LITTLE = 1e-30


def least_log_evidence(high: Samples, low: Samples, middle: Floats, goals: Floats, margin: float = 0.0) -> Floats:
    """For each pair the goal or more where log E attains it at every common mean, else the least log E seen.

    Samples on the unit scale, both with rewards, the mean of `high` with the margin above that of `low`; `middle` is about
    where E is least. The margin is between -1 and 1; with it B is taken at m + margin in place of m.
    """
    pairs = _pairs(high, bounded.mirrored(low), margin)
    left, right = np.clip(np.stack([1.0 - margin - pairs.low.means, high.means]), *pairs.ends())
    # Up to any point between the means the bets on the high arm alone are worth at least what they are there, and beyond it
    # those on the low arm: that settles most of the rivals that are far behind.
    halfway = 0.5 * (left + right)
    above, below = pairs.above(halfway), pairs.below(halfway)
    least = np.minimum(_alone(above, pairs.log_weights), _alone(below, pairs.log_weights))
    rows = np.flatnonzero(least < goals)
    if len(rows):
        middle = np.clip(middle, left, right)
        least[rows] = _least(pairs.pick(rows), left[rows], middle[rows], right[rows], goals[rows])
    return least


def log_evidence_ceiling(high: Samples, low: Samples, means: Floats) -> Floats:
    """What log E at these common means cannot exceed: both arms with the best of all bets, for each alone."""
    ceiling: Floats = np.zeros(len(means))
    for arm, candidates in ((high, means), (bounded.mirrored(low), 1.0 - means)):
        heads, size = bounded.worst_coin(arm)
        shares = candidates / np.maximum(size, _LITTLE)
        ceiling += rel_entr(heads, arm.counts * shares) + rel_entr(arm.counts - heads, arm.counts * (1.0 - shares))
    return ceiling


class _Pairs(NamedTuple):
    """Some pairs of arms on the last axis, with the bets that matter for them on the first."""

    high: Samples
    low: Samples
    """Counted from the upper end."""
    bets: Floats
    """The window of bets, below it the two that are quarters of its lowest."""
    log_weights: Floats
    """Of the bets in the window."""
    margin: float

    def pick(self, index: Any) -> _Pairs:  # noqa: ANN401 - whatever numpy takes as an index of pairs
        high, low = self.high.pick(index), self.low.pick(index)
        at = index if isinstance(index, tuple) else (index,)
        return _Pairs(high, low, self.bets[:, *at], self.log_weights[:, *at], self.margin)

    def ends(self) -> tuple[float, float]:
        """Between these the common mean lies."""
        return max(0.0, -self.margin), min(1.0, 1.0 - self.margin)

    def above(self, means: Floats) -> Floats:
        """Log A_d at m."""
        return bounded.log_bet_wealth(self.high, self.bets, means)

    def below(self, means: Floats) -> Floats:
        """Log B_d at m + margin, counted from the upper end."""
        return bounded.log_bet_wealth(self.low, self.bets, 1.0 - self.margin - means)


def _pairs(high: Samples, low: Samples, margin: float) -> _Pairs:
    return _Pairs(high, low, *window(high, low, high.means + low.means - 1.0 + margin), margin)


def _least(pairs: _Pairs, left: Floats, middle: Floats, right: Floats, goals: Floats) -> Floats:
    """By cells between the two means, and by the bets on one arm alone beyond them."""

    def falling(rows: Ints, candidates: Floats) -> Floats:
        return pairs.pick((rows, None)).above(candidates)

    def rising(rows: Ints, candidates: Floats) -> Floats:
        return pairs.pick((rows, None)).below(candidates)

    def joined(rows: Ints, above: Floats, below: Floats) -> Floats:
        return _tied(above, below, pairs.log_weights[:, rows, None])

    # Where an end of the range of m is nearer than the mean, nothing lies beyond.
    first, last = pairs.ends()
    before = np.where(left > first, _alone(pairs.above(left), pairs.log_weights), np.inf)
    beyond = np.where(right < last, _alone(pairs.below(right), pairs.log_weights), np.inf)
    tried = np.stack([0.5 * (left + middle), middle, 0.5 * (middle + right)], axis=1)
    least = least_over_means(falling, rising, joined, left=left, right=right, tried=tried, goals=goals)
    return np.minimum(least, np.minimum(before, beyond))


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


def _tied(above: Floats, below: Floats, log_weights: Floats) -> Floats:
    """Log E from the log wealth of the bets on either arm."""
    whole, quarter = slice(_QUARTER_STEPS, None), slice(0, _WINDOW)
    terms = np.empty((len(_LOG_PARTS), *above[whole].shape))
    np.add(above[whole], below[whole], out=terms[0])
    np.add(above[whole], below[quarter], out=terms[1])
    np.add(above[quarter], below[whole], out=terms[2])
    terms[3], terms[4] = above[whole], below[whole]
    terms += log_weights
    terms += _LOG_PARTS
    largest = terms.max(axis=(0, 1))
    terms -= largest
    log_sum: Floats = np.log(np.exp(terms, out=terms).sum(axis=(0, 1))) + largest
    return log_sum


def _alone(log_wealth: Floats, log_weights: Floats) -> Floats:
    """What the bets on one arm alone are worth in E."""
    log_sum: Floats = np.logaddexp.reduce(log_wealth[_QUARTER_STEPS:] + log_weights, axis=0) + np.log(ALONE)
    return log_sum

"""Binary rewards, one arm against another: one mixture over an effect that both arms share, least over the common mean.

Let S successes among n rewards tilt a candidate mean m by x >= 0 on the logit scale:

    A_x(m) = exp( x S - n log(1 + m (e^x - 1)) ),

the likelihood ratio of the tilted mean to m. It is a nonnegative supermartingale that starts at 1 for every mean <= m,
whatever the policy does. B_y(m) is the same for the failures of the other arm at 1 - m: its mean tilted down by y, a
supermartingale for every mean >= m. So with fixed weights that sum to one

    E(m) = sum over tilts x of w(x) ( .6 A_x B_x + .1 A_x B_{x/4} + .1 A_{x/4} B_x + .1 A_x + .1 B_x )

is a supermartingale under every mean_high <= m <= mean_low. If "mean_high <= mean_low" is true there is such an m, and the
least of E over all m in [0, 1] is never above it: reaching 1/a has probability at most a (Ville). What the two arms share is
one effect, so the mixture pays for it once; a product of two mixtures, one an arm, pays twice.

With a margin d the hypothesis is "mean_high + d <= mean_low": B is taken at m + d in place of m, and m runs over [0, 1 - d], or
over [-d, 1] where d is negative. As A falls in m and B rises, the least E never falls as d grows.

The tilts are 2^-20, ..., 2^3, w halves every two octaves away from 2^-3. Where both arms have about as many rewards the best
tilts are equal; where one has r times as many the other's is r times as large, hence the parts with a quarter and with none.

Three things make the least value certain and cheap:
(1) log A and log B are convex in m (minus the log of an affine function), and sums of log-convex functions are log-convex: so
log E is convex on [0, 1], every tangent lies below it, and two tangents bound its minimum from below.
(2) Leaving terms out only lowers E, so it is enough to add up the tilts around the effect that the data show.
(3) E is nowhere below the least of any one term, and that of .6 w(x) A_x B_x is known in closed form (`lines`): this settles
nearly all rivals that are shown to be behind.

Sources: Robbins (1970) and the method of mixtures; Turner, Ly, Grünwald (2024), "Generic e-variables for exact sequential
k-sample tests", whose likelihood ratios are one-look relatives of these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr

from service.inference.binary import successes
from service.inference.lines import between_tangents, largest_log_product
from service.inference.samples import Floats, Ints, Samples

_LOWEST, _HIGHEST, _CENTRE = -20, 3, -3
_OCTAVES = np.arange(_LOWEST, _HIGHEST + 1)
TILTS: Floats = np.exp2(_OCTAVES, dtype=np.float64)
WEIGHTS: Floats = 2.0 ** (-np.abs(_OCTAVES - _CENTRE) / 2.0)
WEIGHTS /= WEIGHTS.sum()
_LOG_WEIGHTS = np.log(WEIGHTS)
# The parts of the terms of each kind, in the order of the formula.
EQUAL, QUARTER, ALONE = 0.6, 0.1, 0.1
_PARTS = np.array([EQUAL, QUARTER, QUARTER, ALONE, ALONE])
_LOG_PARTS = np.log(_PARTS)[:, None, None]
# How many tilts are added up, and the distance in octaves from a tilt to its quarter.
_WINDOW, _QUARTER_STEPS = 5, 2
# Quarters of the lowest tilts in the lattice.
_LATTICE = 2.0 ** np.arange(_LOWEST - _QUARTER_STEPS, _HIGHEST + 1)
_GROWTH = np.expm1(_LATTICE)
_PLACES = np.arange(_WINDOW + _QUARTER_STEPS)[:, None]
# Log evidence may be given away up to this much, always to the safe side.
_SLACK = 1e-3
# Where the goal is certainly not attained it is only shown how far off it is: so much does not matter.
_ROUGH = 0.05
_STEPS = 80


class _Pairs(NamedTuple):
    """Some pairs of arms on the last axis; the successes of the high arm and the failures of the low one on the axis before."""

    counts: Floats
    wins: Floats
    tilts: Floats
    """The window of tilts, below it the two that are quarters of its lowest."""
    growth: Floats
    """e^x - 1."""
    log_weights: Floats
    """Of the tilts in the window."""
    margin: float

    def pick(self, rows: Ints) -> _Pairs:
        counts, wins, tilts, growth, log_weights = (each[..., rows] for each in self[:-1])
        return _Pairs(counts, wins, tilts, growth, log_weights, self.margin)

    def candidates(self, means: Floats) -> Floats:
        """What the high arm's share of successes and the low arm's share of failures would be."""
        return np.array([means, 1.0 - self.margin - means])

    def ends(self) -> tuple[float, float]:
        """Between these the common mean lies."""
        return max(0.0, -self.margin), min(1.0, 1.0 - self.margin)


class _Curve(NamedTuple):
    """Log E at one candidate mean for each pair, with its first derivative and what the second is made of."""

    value: Floats
    slope: Floats
    shares: Floats
    """What each term has of E, by kind, tilt and pair."""
    slopes: Floats
    """The derivatives of the logs of the terms."""
    bends: Floats
    """The second derivatives of log A and log B, by tilt, arm and pair."""

    def newton_steps(self, rows: Ints) -> Floats:
        """Of some of the pairs, from here to where a parabola would be least."""
        slope, slopes = self.slope[rows], self.slopes[..., rows]
        bends = _tied(self.bends[..., rows])
        bends += slopes * slopes
        with np.errstate(divide="ignore", invalid="ignore"):
            steps: Floats = slope / (np.einsum("ijk,ijk->k", self.shares[..., rows], bends) - slope * slope)
        return steps


def least_log_evidence(high: Samples, low: Samples, goals: Floats, margin: float = 0.0) -> Floats:
    """For each pair the least log E over all common means, from below, or a bound that attains the goal.

    Where E is below 1 at some mean nothing is shown, and the bound may be any.
    Both arms have rewards, and the mean of `high` with the margin is above that of `low`; the margin is between -1 and 1.
    """
    counts = np.array([high.counts, low.counts])
    wins = np.array([successes(high), low.counts - successes(low)])
    effects = _effects(counts, wins, margin)
    least = _least_of_one_tilt(counts, wins, effects, margin)
    rows = np.flatnonzero(least < goals)
    if len(rows):
        pairs = _Pairs(counts[:, rows], wins[:, rows], *window(effects[rows]), margin)
        high, low, (first, last) = high.pick(rows), low.pick(rows), pairs.ends()
        pooled = (high.counts * high.means + low.counts * (low.means - margin)) / (high.counts + low.counts)
        start = np.minimum(np.maximum(pooled, first), last)
        least[rows] = np.maximum(least[rows], _least(pairs, start, goals[rows]))
    return least


def log_evidence_ceiling(high: Samples, low: Samples) -> Floats:
    """What the least log E cannot exceed: the largest log likelihood ratio of two means to one, at the pooled share."""
    pooled = (successes(high) + successes(low)) / (high.counts + low.counts)
    ceiling: Floats = np.zeros(len(pooled))
    for arm in (high, low):
        ones = successes(arm)
        ceiling += rel_entr(ones, arm.counts * pooled) + rel_entr(arm.counts - ones, arm.counts * (1.0 - pooled))
    return ceiling


def _effects(counts: Floats, wins: Floats, margin: float) -> Floats:
    """What the data show of the arms' distance on the logit scale, smoothed so that it is finite."""
    effect: Floats = np.log((wins + 0.5) / (counts - wins + 0.5)).sum(axis=0)
    if margin:
        # The common mean in the middle stands a margin higher for the low arm: so much further is its effect.
        above, below = (wins + 0.5) / (counts + 1.0)
        middle = _middle(above, 1.0 - below, margin)
        effect += np.log((middle + margin) / middle * (1.0 - middle) / (1.0 - margin - middle))
    return effect


def _middle(high: Floats, low: Floats, margin: float) -> Floats:
    """Halfway between the two shares of successes, but no nearer to an end than half of what the share there is away from it."""
    half = 0.5 * (1.0 - abs(margin))
    if margin > 0.0:
        first, last = np.minimum(0.5 * high, half), np.maximum(0.5 + 0.5 * low - margin, half)
    else:
        first, last = np.minimum(0.5 * low, half) - margin, np.maximum(0.5 + 0.5 * high, half - margin)
    return np.clip(0.5 * (high + low - margin), first, last)


def window(effects: Floats) -> tuple[Floats, Floats, Floats]:
    """The tilts that matter where the two arms are so far from a common mean, on the logit scale: all the others are left out.

    Each with its e^x - 1, two more below them than there are log weights: the quarters of the lowest.
    """
    places = _window_starts(_octaves(effects)) + _PLACES
    return _LATTICE[places], _GROWTH[places], _LOG_WEIGHTS[places[:_WINDOW]]


def _octaves(effects: Floats) -> Floats:
    octaves: Floats = np.log2(np.maximum(effects, TILTS[0]))
    return octaves


def _window_starts(octaves: Floats) -> Ints:
    below = np.floor(octaves).astype(np.int64) - _LOWEST - _WINDOW // 2
    return np.minimum(np.maximum(below, 0), len(TILTS) - _WINDOW)


def _least_of_one_tilt(counts: Floats, wins: Floats, effects: Floats, margin: float) -> Floats:
    """What log E is nowhere below: the least of its term with the same tilt for both arms, the one nearest to half the effect."""
    octaves = _octaves(effects)
    places = _window_starts(octaves) + np.rint(octaves - np.floor(octaves)).astype(np.int64) + (_WINDOW // 2 - 1)
    tilts = places + _QUARTER_STEPS
    least: Floats = _LATTICE[tilts] * (wins[0] + wins[1])
    least -= largest_log_product(counts[0], counts[1], _GROWTH[tilts], margin)
    least += _LOG_WEIGHTS[places] + np.log(EQUAL)
    return least


def _log_tilted(pairs: _Pairs, candidates: Floats) -> Floats:
    """Log A_x at m and log B_x at 1 - m, by tilt and arm."""
    growth: Floats = np.log1p(pairs.growth[:, None] * candidates)
    growth *= -pairs.counts
    growth += pairs.tilts[:, None] * pairs.wins
    return growth


def _tied(of_tilts: Floats) -> Floats:
    """What adds up over the two arms, for each kind of term and each tilt of the window."""
    high, low = of_tilts[:, 0], of_tilts[:, 1]
    whole, quarter = slice(_QUARTER_STEPS, None), slice(0, _WINDOW)
    sums = np.empty((len(_PARTS), _WINDOW, of_tilts.shape[-1]))
    np.add(high[whole], low[whole], out=sums[0])
    np.add(high[whole], low[quarter], out=sums[1])
    np.add(high[quarter], low[whole], out=sums[2])
    sums[3], sums[4] = high[whole], low[whole]
    return sums


def _curve(pairs: _Pairs, means: Floats) -> _Curve:
    """Terms are divided by the largest, so that no power overflows."""
    candidates = pairs.candidates(means)
    terms = _tied(_log_tilted(pairs, candidates))
    terms += pairs.log_weights
    terms += _LOG_PARTS
    largest = terms.max(axis=(0, 1))
    terms -= largest
    np.exp(terms, out=terms)
    total = terms.sum(axis=(0, 1))
    terms /= total
    # d log A / dm = -rate and d log B / dm = rate; both have the second derivative rate^2 / n.
    rates = pairs.counts / (candidates + 1.0 / pairs.growth[:, None])
    bends = rates * rates / pairs.counts
    np.negative(rates[:, 0], out=rates[:, 0])
    slopes = _tied(rates)
    return _Curve(np.log(total) + largest, np.einsum("ijk,ijk->k", terms, slopes), terms, slopes, bends)


def _least(pairs: _Pairs, start: Floats, goals: Floats) -> Floats:
    """The minimum of the convex log E over all m from below: Newton's steps inside a bracket, bounded by its two tangents."""
    least = np.full(len(goals), -np.inf)
    rows, at = np.arange(len(goals)), start
    # The ends of the bracket, and at each the value and the slope of log E once it was looked at.
    left, right = (np.full(len(rows), end) for end in pairs.ends())
    left_value, left_slope = least.copy(), np.zeros(len(rows))
    right_value, right_slope = left_value, left_slope
    for _ in range(_STEPS):
        here = _curve(pairs, at)
        falls = here.slope < 0.0
        left, right = np.where(falls, at, left), np.where(falls, right, at)
        left_value, right_value = np.where(falls, here.value, left_value), np.where(falls, right_value, here.value)
        left_slope, right_slope = np.where(falls, here.slope, left_slope), np.where(falls, right_slope, here.slope)
        bound = between_tangents(left_value, left_slope, right_value, right_slope, right - left)
        least[rows] = np.maximum(least[rows], bound)
        slack = np.where(here.value < goals, _ROUGH, _SLACK)
        kept = np.flatnonzero((bound < goals) & (here.value > 0.0) & (here.value - bound > slack) & (right > left))
        if len(kept) == 0:
            break
        rows, pairs, goals = rows[kept], pairs.pick(kept), goals[kept]
        left, left_value, left_slope = left[kept], left_value[kept], left_slope[kept]
        right, right_value, right_slope = right[kept], right_value[kept], right_slope[kept]
        newton = at[kept] - here.newton_steps(kept)
        at = np.where((newton > left) & (newton < right), newton, 0.5 * (left + right))
    return least

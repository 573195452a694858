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

Only "attained" has to be certain. Where E is too small one look near its least tells about how far off the goal is (`_least`).

Sources: Robbins (1970) and the method of mixtures; Turner, Ly, Grünwald (2024), "Generic e-variables for exact sequential
k-sample tests", whose likelihood ratios are one-look relatives of these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, rel_entr

from service.inference.binary import successes
from service.inference.bracket import Bracket
from service.inference.lines import largest_log_product
from service.inference.samples import Bools, Floats, Ints, Samples

_LOWEST, _HIGHEST, _CENTRE = -20, 3, -3
_OCTAVES = np.arange(_LOWEST, _HIGHEST + 1)
TILTS: Floats = np.exp2(_OCTAVES, dtype=np.float64)
WEIGHTS: Floats = 2.0 ** (-np.abs(_OCTAVES - _CENTRE) / 2.0)
WEIGHTS /= WEIGHTS.sum()
_LOG_WEIGHTS = np.log(WEIGHTS)
# The parts of the terms of each kind, in the order of the formula.
EQUAL, QUARTER, ALONE = 0.6, 0.1, 0.1
_KINDS, _LOG_EQUAL, _LOG_ALONE = 5, np.log(EQUAL), np.log(ALONE)
# How many tilts are added up, and the distance in octaves from a tilt to its quarter.
_WINDOW, _QUARTER_STEPS = 5, 2
# Of the tilts that have their likelihood ratios computed, those of the window and their quarters.
_WHOLE, _QUARTER = slice(_QUARTER_STEPS, None), slice(0, _WINDOW)
# Quarters of the lowest tilts in the lattice.
_LATTICE = 2.0 ** np.arange(_LOWEST - _QUARTER_STEPS, _HIGHEST + 1)
_GROWTH = np.expm1(_LATTICE)
_PLACES = np.arange(_WINDOW + _QUARTER_STEPS)[:, None]
# Log evidence may be given away up to this much, always to the safe side.
_SLACK = 1e-3
# Where the goal is certainly not attained it is only shown how far off it is: so much does not matter.
_ROUGH = 0.05
_STEPS = 80
# A second derivative is no less.
_LITTLE = 1e-300
# Where neither arm has more than so many times the rewards of the other, and the goal is no farther, log E is like a parabola
# about its least, if that is so near as a part of the way to the next end of the common means; and no step is longer than this.
_EVEN, _USUAL_GOAL, _NEAR, _FAR = 8.0, 60.0, 0.1, 0.2
# Two arms have about as many rewards if one has no more than twice as many as the other.
_CLOSE_OCTAVES = 1.0
# Where the goal seems to be attained the step goes so much beyond the least, so that it is seen from both sides.
_BEYOND = 1.3
# Logs of shares of E below this count as this.
_NEGLIGIBLE = -600.0


class _Pairs(NamedTuple):
    """Some pairs of arms on the last axis; the successes of the high arm and the failures of the low one on the axis before."""

    counts: Floats
    gains: Floats
    """What the successes earn with each tilt, x S: the window of tilts, below it the two that are quarters of its lowest."""
    growth: Floats
    """e^x - 1."""
    log_weights: Floats
    """Of the tilts in the window, as parts of the mixture that are not EQUAL."""
    margin: float

    @staticmethod
    def of(counts: Floats, wins: Floats, effects: Floats, margin: float) -> _Pairs:
        tilts, growth, log_weights = window(effects)
        return _Pairs(counts, tilts[:, None] * wins, growth, log_weights + _LOG_ALONE, margin)

    def pick(self, rows: Ints) -> _Pairs:
        counts, gains, growth, log_weights = (np.take(each, rows, axis=-1) for each in self[:-1])
        return _Pairs(counts, gains, growth, log_weights, self.margin)

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
    counts: Floats
    shares: Floats
    """What each term that bets on both arms has of E, by kind, tilt and pair."""
    rates: Floats
    """Minus the derivatives of log A, and those of log B, by tilt, arm and pair."""
    slopes: Floats
    """These, each times what its tilt of its arm has of E."""

    def newton_steps(self) -> Floats:
        """From here to where a parabola would be least."""
        second_slopes = self.slopes * self.rates
        squares = second_slopes.sum(axis=0)
        # Both log A and log B have the second derivative rate^2 / n; the rest is the variance of the terms' first derivatives.
        second = (squares + squares / self.counts).sum(axis=0) - self.slope * self.slope
        rates, shares = self.rates, self.shares
        products = rates[_WHOLE, 1] * shares[0]
        products += rates[_QUARTER, 1] * shares[1]
        products *= rates[_WHOLE, 0]
        products += rates[_QUARTER, 0] * rates[_WHOLE, 1] * shares[2]
        steps: Floats = self.slope / np.maximum(second - 2.0 * products.sum(axis=0), _LITTLE)
        return steps


def least_log_evidence(high: Samples, low: Samples, goals: Floats, margin: float = 0.0) -> Floats:
    """For each pair the least log E over all common means, or a bound that attains the goal.

    What attains the goal is certainly from below; what misses it may be above the least by hundredths. Where E is below 1 at some
    mean nothing is shown, and it may be any.
    Both arms have rewards, and the mean of `high` with the margin is above that of `low`; the margin is between -1 and 1.
    """
    counts = np.array([high.counts, low.counts])
    wins = np.array([successes(high), low.counts - successes(low)])
    effects = _effects(counts, wins, margin)
    least = _least_of_one_tilt(counts, wins, effects, margin)
    rows = np.flatnonzero(least < goals)
    if len(rows):
        pairs = _Pairs.of(np.take(counts, rows, axis=1), np.take(wins, rows, axis=1), effects[rows], margin)
        first, last = pairs.ends()
        start = np.minimum(np.maximum(_about_least(pairs.counts, np.take(wins, rows, axis=1), margin), first), last)
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


def _about_least(counts: Floats, wins: Floats, margin: float) -> Floats:
    """Where log E may be least: at the pooled share of successes.

    But where both arms have about as many rewards, as far beyond it as it is from the mean that is halfway on the logit scale:
    there both arms' best tilts are the same, and E is larger.
    """
    (high_counts, low_counts), (successes_of_high, failures_of_low) = counts, wins
    pooled: Floats = (successes_of_high + (1.0 - margin) * low_counts - failures_of_low) / (high_counts + low_counts)
    if margin:
        return pooled
    odds = (wins + 0.5) / (counts - wins + 0.5)
    halfway = expit(0.5 * np.log(odds[0] / odds[1]))
    close = np.abs(np.log2(high_counts / low_counts)) <= _CLOSE_OCTAVES
    beyond = np.minimum(np.maximum(2.0 * pooled - halfway, 0.5 * pooled), 0.5 + 0.5 * pooled)
    return np.where(close, beyond, pooled)


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


def _log_terms(pairs: _Pairs, candidates: Floats) -> Floats:
    """The logs of the terms of E, by kind, tilt and pair."""
    alone: Floats = np.log1p(pairs.growth[:, None] * candidates)
    alone *= -pairs.counts
    alone += pairs.gains
    weighed = alone[_WHOLE] + pairs.log_weights[:, None]
    terms = np.empty((_KINDS, _WINDOW, candidates.shape[1]))
    np.add(weighed[:, 0], alone[_WHOLE, 1], out=terms[0])
    terms[0] += _LOG_EQUAL - _LOG_ALONE
    np.add(weighed[:, 0], alone[_QUARTER, 1], out=terms[1])
    np.add(alone[_QUARTER, 0], weighed[:, 1], out=terms[2])
    terms[3], terms[4] = weighed[:, 0], weighed[:, 1]
    return terms


def _curve(pairs: _Pairs, means: Floats) -> _Curve:
    """Terms are divided by the largest, so that no power overflows."""
    candidates = pairs.candidates(means)
    terms = _log_terms(pairs, candidates)
    largest = terms.max(axis=(0, 1))
    terms -= largest
    np.maximum(terms, _NEGLIGIBLE, out=terms)  # powers that underflow take long
    np.exp(terms, out=terms)
    total = terms.sum(axis=(0, 1))
    terms /= total
    # What each tilt of each arm has of E, times d log A / dm = -rate or d log B / dm = rate.
    slopes = np.zeros((len(pairs.growth), *candidates.shape))
    slopes[_WHOLE, 0] = terms[0] + terms[1] + terms[3]
    slopes[_WHOLE, 1] = terms[0] + terms[2] + terms[4]
    slopes[_QUARTER, 0] += terms[2]
    slopes[_QUARTER, 1] += terms[1]
    rates = pairs.counts / (candidates + 1.0 / pairs.growth[:, None])
    slopes *= rates
    falling, rising = slopes.sum(axis=0)
    return _Curve(np.log(total) + largest, rising - falling, pairs.counts, terms[:3], rates, slopes)


def _nearer(pairs: _Pairs, at: Floats, value: Floats, step: Floats) -> Floats:
    """The step, but no further than to where a term that bets on one arm alone has grown to about all of E.

    Where that arm has many more rewards E is least about there, and beyond it a wall.
    """
    arm, columns = np.where(step > 0.0, 0, 1), np.arange(len(step))
    logs = pairs.gains[_WHOLE, arm, columns] + pairs.log_weights - value + 1.0
    walls = (np.expm1(logs / pairs.counts[arm, columns]) / pairs.growth[_WHOLE]).max(axis=0)
    nearer: Floats = np.copysign(np.minimum(np.abs(step), np.maximum(pairs.candidates(at)[arm, columns] - walls, 0.0)), step)
    return nearer


def _least(pairs: _Pairs, start: Floats, goals: Floats) -> Floats:
    """The minimum of the convex log E over all m from below: Newton's steps inside a bracket, bounded by its two tangents.

    Where the goal is missed and E is even (`_are_even`), log E falls no more than twice as far as the parabola at a look, once
    that hardly falls and is least nearby. This leaves third derivatives out of account: enough to tell how far off a goal is, not
    that it is attained.
    """
    least = np.full(len(goals), -np.inf)
    rows, at, even, (first, last) = np.arange(len(goals)), start, _are_even(pairs, goals), pairs.ends()
    bracket = Bracket.between(first, last, len(rows))
    for looks in range(_STEPS):
        here = _curve(pairs, at)
        bracket = bracket.narrowed(at, here.value, here.slope)
        way, bound = bracket.crossing()
        step, room = here.newton_steps(), np.minimum(at - first, last - at)
        fall, missed = 0.5 * here.slope * step, here.value < goals
        parabolic = missed & even & (fall <= _ROUGH) & (np.abs(step) <= _NEAR * room)
        found = np.where(parabolic, here.value - 2.0 * fall, bound)
        least[rows] = np.maximum(least[rows], found)
        doubtful = (found < goals) & (here.value > 0.0) & (bracket.right > bracket.left)
        kept = np.flatnonzero(doubtful & (here.value - found > np.where(missed, _ROUGH, _SLACK)))
        if len(kept) == 0:
            break
        if looks == 0:
            step = np.where(here.value - fall < goals, step, _BEYOND * step)
            nearer = np.minimum(np.maximum(step, -_FAR * room), _FAR * room)
            step = nearer if even.all() else np.where(even, nearer, _nearer(pairs, at, here.value, step))
        at = bracket.next_points(at - step, here.value - fall >= bound, way)
        if len(kept) < len(rows):
            rows, goals, at, even = rows[kept], goals[kept], at[kept], even[kept]
            pairs, bracket = pairs.pick(kept), bracket.pick(kept)
    return least


def _are_even(pairs: _Pairs, goals: Floats) -> Bools:
    """Neither arm has many times the other's rewards, the goal is not far away and there is no margin: then E has no walls."""
    if pairs.margin:
        return np.zeros(len(goals), np.bool_)
    fewer, more = np.minimum(*pairs.counts), np.maximum(*pairs.counts)
    even: Bools = (_EVEN * fewer >= more) & (goals <= _USUAL_GOAL)
    return even

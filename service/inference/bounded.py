"""Bounded rewards: a mixture of empirical-Bernstein bets that needs only count, sum and sum of squares.

Rewards are scaled to [0, 1]. For a candidate mean m, a bet 0 < k < 1/m on "the mean is larger" multiplies one's wealth by
1 + k (X - m), which is 1 on average if m is the mean. As k (X - m) >= -k m > -1, the inequality of Fan, Grama and Liu,

    log(1 + y) >= y - psi(g) y^2 / g^2    for y >= -g, 0 < g < 1, psi(g) = -log(1 - g) - g,

bounds the wealth from below by a function of the three sums alone, with V(m) = sum of (X - m)^2 = Q + n (mean - m)^2:

    W_k(m) = exp( k n (mean - m) - k^2 f(k m) V(m) ),   f(g) = psi(g) / g^2,   W_k(m) = 0 for k m >= 1.

W_k(m), and the average of W_k(m) over a fixed set of bets, is a nonnegative supermartingale that starts at 1 for every mean
<= m, so the m at which the average has stayed below 2/a form a lower confidence sequence of level a/2. The upper one is its
mirror image.

The bets are 2^(j/2), evenly weighted: the same price for samples of any size and spread. Three things keep it simple and
safe:
(1) For fixed k, W_k falls in m below the sample mean, whatever the data, so the confidence set is an interval. With w = k
(mean - m) and V >= n (mean - m)^2 the slope d/dm log W_k is at most -k n (1 - 2 f w + f' w^2), never positive because f^2 <=
f'. (In psi: psi^2 + 2 g psi <= g^3/(1 - g), where the j-th coefficients of the power series are 2/(j-1) + (2/j)(1/2 + ... +
1/(j-2)) <= 1, j >= 3.)
(2) Leaving bets out of the average only lowers it, so it is enough to add up the few bets that matter for the data at hand.
(3) f rises with g, so f(k m + 0.0001) in place of f(k m) is on the safe side; it keeps f away from the cancellation at 0.

Sources: Fan, Grama, Liu (2015), "Exponential inequalities for martingales with applications", Lemma 4.1; Howard et al.
(2021); betting: Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from service.inference.samples import Floats, Ints, Samples
from service.inference.solving import reach

if TYPE_CHECKING:
    from service.domain import RewardSpec

_HALVINGS, _DOUBLINGS = 24, 12
BETS = 2.0 ** (np.arange(-_HALVINGS, _DOUBLINGS + 1) / 2.0)
_LOG_BETS = float(np.log(len(BETS)))
_WINDOW = 5
# Added to every stake k m: f loses all digits to cancellation near 0, and as f rises the shift is on the safe side.
_LEAST_STAKE = 1e-4
_TINY, _LITTLE = 1e-300, 1e-30
# Log wealth beyond this says no more; cut there, sums of wealth stay finite.
_ENOUGH = 700.0
# Few enough for the processor's cache.
_ARMS_AT_ONCE = 1024


def width_of(reward: RewardSpec) -> float:
    """The range of the rewards."""
    return (1.0 if reward.maximum is None else float(reward.maximum)) - float(reward.minimum or 0.0)


def to_unit(reward: RewardSpec, samples: Samples) -> tuple[Samples, float, float]:
    """The samples scaled to [0, 1], with the minimum and the range that undo it."""
    low, width = float(reward.minimum or 0.0), width_of(reward)
    return (
        Samples(samples.counts, np.clip((samples.means - low) / width, 0.0, 1.0), samples.squares / width / width),
        low,
        width,
    )


def mirrored(samples: Samples) -> Samples:
    """The rewards counted from the upper end."""
    return Samples(samples.counts, 1.0 - samples.means, samples.squares)


def bets_for(samples: Samples, candidates: Floats) -> Floats:
    """The bets around the best one against these candidates, k = n (mean - m) / (V + n m (mean - m)); adds a first axis."""
    counts, means, squares = samples
    excess = counts * np.maximum(means - candidates, 0.0)
    best = np.maximum(excess, _LITTLE) / np.maximum(squares + excess * means, _LITTLE)
    nearest = np.rint(2.0 * np.log2(best)).astype(np.int64) + _HALVINGS
    first = np.clip(nearest - _WINDOW // 2, 0, len(BETS) - _WINDOW)
    return np.stack([BETS[first + place] for place in range(_WINDOW)])


def log_bet_wealth(samples: Samples, bets: Floats, candidates: Floats) -> Floats:
    """Log W_k(m) of each bet (first axis); -infinity where a bet stakes more than there is, and cut at 700."""
    excess = samples.means - candidates
    variation = samples.squares + samples.counts * excess * excess + _TINY
    stakes = bets * candidates
    stakes += _LEAST_STAKE
    np.minimum(stakes, 1.0, out=stakes)
    with np.errstate(divide="ignore", over="ignore"):
        exponents: Floats = np.log1p(-stakes)  # -infinity where the stake is too high: no wealth is left
        exponents += stakes
        exponents /= stakes * stakes  # now -f
        exponents *= bets * variation
        exponents += samples.counts * excess
        exponents *= bets
        np.minimum(exponents, _ENOUGH, out=exponents)
    return exponents


def log_wealth(samples: Samples, bets: Floats, candidates: Floats) -> Floats:
    """Log of the average W_k(m) over all bets, only the given ones (first axis) added up: evidence for a mean above m."""
    exponents = log_bet_wealth(samples, bets, candidates)
    np.maximum(exponents, -_ENOUGH, out=exponents)
    log_average: Floats = np.log(np.exp(exponents, out=exponents).sum(axis=0)) - _LOG_BETS
    return log_average


def bounds(samples: Samples, levels: Floats) -> tuple[Floats, Floats]:
    """(lower, upper) on the unit scale, each side with half the level."""
    lower, upper = np.empty(len(levels)), np.empty(len(levels))
    for start in range(0, len(levels), _ARMS_AT_ONCE):
        some = slice(start, start + _ARMS_AT_ONCE)
        part, goals = samples.pick(some), np.log(2.0 / levels[some])
        both = Samples(*(np.concatenate(pair) for pair in zip(part, mirrored(part), strict=True)))
        lower[some], mirror = np.split(lower_bounds(both, np.concatenate([goals, goals])), 2)
        upper[some] = 1.0 - mirror
    return lower, upper


def lower_bounds(samples: Samples, goals: Floats) -> Floats:
    """The m below which the log wealth is at least the goal; 0 where even m = 0 stays below it."""
    likely = likely_lower_bounds(samples, goals)
    bets = bets_for(samples, likely)

    def log_evidence_below(rows: Ints, distances: Floats) -> Floats:
        chosen = samples.pick(rows)
        return log_wealth(chosen, bets[:, rows], chosen.means - distances)

    below = reach(log_evidence_below, goals, np.full_like(goals, -_LOG_BETS), samples.means - likely, samples.means)
    return samples.means - below


def likely_lower_bounds(samples: Samples, goals: Floats) -> Floats:
    """Roughly where the bound will be, by Bernstein's inequality: only used to choose the bets and to start the search."""
    trials = np.maximum(samples.counts, 1.0)
    price = (goals + 2.7) / trials
    gap = np.sqrt(2.0 * price * samples.squares / trials) + price * samples.means
    return np.maximum(samples.means - gap, 0.0)

"""Bounded rewards: bets on the mean, with the least wealth that count, sum and sum of squares leave possible.

Rewards are scaled to [0, 1]. For a candidate mean m and d > 0 the factor (1 + d X)/(1 + d m) is at most 1 on average for every
mean <= m: it stakes the part d m/(1 + d m) of one's wealth on "the mean is larger". So the product over an arm's rewards is a
nonnegative supermartingale that starts at 1, and so is an average over fixed d. Of all rewards in [0, 1] with the same three
sums, n, sum X and sum X^2, the least wealth have those of a coin, zeros and c:

    W_d(m) = (1 + d c)^r / (1 + d m)^n,    c = sum X^2 / sum X,    r = sum X / c of the n are c.

Proof: let q be the parabola that meets p(x) = log(1 + d x) at 0 and touches it at c. The third derivative of p is positive, so
p - q, which is that derivative at some point times x (x - c)^2 / 6, is not negative, and sum p(X) >= sum q(X). The three sums
determine this, and for the coin's rewards it is sum p itself. So no more wealth can be counted on by anyone who knows only
the three sums; docs/inference.md says what that costs.

An interval mixes d = o/m over fixed odds o, which is W = (1 + o c/m)^r / (1 + o)^n. The m at which the mixture has stayed below
2/a form a lower confidence sequence of level a/2, and the upper one is its mirror image. The odds are 2^-24, ..., 2^8; their
weights halve every four octaves away from 1/4, so that samples of any size and spread pay about the same. Two things keep it
simple and safe:
(1) W falls in m, for fixed d and for fixed o, whatever the data, so the confidence set is an interval.
(2) Leaving odds out of the mixture only lowers it, so it is enough to add up the few that matter for the data at hand.

Sources: Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting"; Ryu and Bhatt (2024), "On
confidence sequences for bounded random processes via universal gambling strategies", who bound the wealth by its sums of powers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from service.inference.samples import Floats, Ints, Samples, are_all
from service.inference.solving import reach

if TYPE_CHECKING:
    from service.domain import RewardSpec

_LOWEST, _HIGHEST, _CENTRE = -24, 8, -2
_OCTAVES = np.arange(_LOWEST, _HIGHEST + 1)
ODDS: Floats = np.exp2(_OCTAVES, dtype=np.float64)
WEIGHTS: Floats = 2.0 ** (-np.abs(_OCTAVES - _CENTRE) / 4.0)
WEIGHTS /= WEIGHTS.sum()
_LOG_WEIGHTS, _LOG_TOTALS = np.log(WEIGHTS), np.log1p(ODDS)
_WINDOW = 5
_TINY, _LITTLE, _ALMOST = 1e-300, 1e-30, 1.0 - 1e-9
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


class Coin(NamedTuple):
    """Of each arm, the rewards with the same three sums that earn least: zeros and one other value."""

    counts: Floats
    heads: Floats
    """How many are not zero."""
    size: Floats
    """What these are."""

    def pick(self, index: Any) -> Coin:  # noqa: ANN401 - whatever numpy takes as an index
        """The coins of a selection of the arms."""
        return Coin(self.counts[index], self.heads[index], self.size[index])


def worst_coin(samples: Samples) -> Coin:
    """The coin with the same three sums."""
    counts, means, squares = samples
    sums = counts * means
    size = np.minimum((squares + sums * means) / np.maximum(sums, _TINY), 1.0)
    return Coin(counts, np.minimum(sums / np.maximum(size, _TINY), counts), size)


def log_bet_wealth(coin: Coin, bets: Floats, candidates: Floats) -> Floats:
    """Log W_d(m) of each bet d (first axis): convex in m, and falling."""
    log_wealth: Floats = np.log1p(bets * candidates)
    log_wealth *= -coin.counts
    log_wealth += coin.heads * np.log1p(bets * coin.size)
    return log_wealth


def log_slope_wealth(coin: Coin, slopes: Floats, candidates: Floats) -> Floats:
    """Log W by the slope k = d/(1 + d m) of a bet, whose factor is 1 + k (X - m): concave in k, and concave in m.

    The slope of a bet is below 1/m; where it is not, this is minus infinity.
    """
    lost = slopes * candidates
    log_wealth: Floats = np.log1p(-np.minimum(lost, _ALMOST))
    log_wealth *= coin.counts - coin.heads
    log_wealth += coin.heads * np.log1p(np.maximum(slopes * coin.size - lost, -_ALMOST))
    log_wealth[lost >= _ALMOST] = -np.inf
    return log_wealth


def odds_for(samples: Samples, candidates: Floats) -> Ints:
    """The places of the odds around the best ones against these candidates, mean (mean - m) / variance; adds a first axis."""
    counts, means, squares = samples
    best = np.maximum(counts * means * (means - candidates), _LITTLE) / np.maximum(squares, _LITTLE)
    nearest = np.rint(np.log2(best)).astype(np.int64) - _LOWEST
    return np.clip(nearest - _WINDOW // 2, 0, len(ODDS) - _WINDOW) + np.arange(_WINDOW)[:, None]


class Mixture(NamedTuple):
    """Bets at some odds (the first axis) on some arms, with all that does not depend on the candidate."""

    heads: Floats
    size: Floats
    odds: Floats
    offsets: Floats
    """Log of their weights and of the wealth that rewards of zero would leave."""

    @staticmethod
    def of(samples: Samples, places: Ints) -> Mixture:
        """At the odds of these places."""
        coin = worst_coin(samples)
        return Mixture(coin.heads, coin.size, ODDS[places], _LOG_WEIGHTS[places] - coin.counts * _LOG_TOTALS[places])

    def pick(self, rows: Ints) -> Mixture:
        """Of some of the arms; nothing is copied where all are meant."""
        if are_all(rows, len(self.heads)):
            return self
        return Mixture(self.heads[rows], self.size[rows], self.odds[:, rows], self.offsets[:, rows])

    def log_wealth(self, candidates: Floats) -> Floats:
        """Log of the mixture: evidence for means above these."""
        exponents: Floats = self.odds * (self.size / np.maximum(candidates, _TINY))
        np.log1p(exponents, out=exponents)
        exponents *= self.heads
        exponents += self.offsets
        np.clip(exponents, -_ENOUGH, _ENOUGH, out=exponents)
        log_mixture: Floats = np.log(np.exp(exponents, out=exponents).sum(axis=0))
        return log_mixture


def log_wealth(samples: Samples, places: Ints, candidates: Floats) -> Floats:
    """Log of the mixture over the odds at these places (first axis): evidence for a mean above m."""
    return Mixture.of(samples, places).log_wealth(candidates)


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
    """The m below which the log wealth is at least the goal; 0 where there is none."""
    likely = likely_lower_bounds(samples, goals)
    places = odds_for(samples, likely)
    mixture = Mixture.of(samples, places)

    def log_evidence_below(rows: Ints, distances: Floats) -> Floats:
        return mixture.pick(rows).log_wealth(samples.means[rows] - distances)

    baselines = _LOG_WEIGHTS[places[_WINDOW // 2]]
    below = reach(log_evidence_below, goals, baselines, samples.means - likely, samples.means)
    return samples.means - below


def likely_lower_bounds(samples: Samples, goals: Floats) -> Floats:
    """Roughly where the bound will be, by Bernstein's inequality: only used to choose the odds and to start the search."""
    trials = np.maximum(samples.counts, 1.0)
    price = (goals + 2.7) / trials
    gap = np.sqrt(2.0 * price * samples.squares / trials) + price * samples.means
    return np.maximum(samples.means - gap, 0.0)

"""Real rewards: the scale-invariant t-mixture, exact for Gaussian rewards of unknown variance.

For a candidate mean m let D = mean - m and Q = sum of (reward - mean)^2. Averaging the likelihood over the standardised
effect (mu - m) / sigma ~ N(0, 1/c^2) and, on both sides of the ratio, over sigma by the right Haar measure d sigma / sigma
gives

    T_n(m) = sqrt(c^2 / (n + c^2)) * [ (Q + n D^2) / (Q + n D^2 c^2 / (n + c^2)) ]^(n/2).

T_1 = 1 whatever the first reward is, and under m (any sigma) T_n is a nonnegative martingale in what the ratios of the
deviations reveal, so P(T_n(m) >= 1/a for some n >= 1) <= a. T_n(m) < 1/a solves in closed form: with log R = (2 log(1/a) +
log((n + c^2) / c^2)) / n,

    n D^2 < Q (R - 1) / (1 - R c^2 / (n + c^2)),    without bound while the denominator is not positive (small n).

Sources: Lai (1976), "On confidence sequences"; Wang and Ramdas (2025), "Anytime-valid t-tests and confidence sequences for
Gaussian means with unknown variance". For other distributions it is an approximation that needs many rewards.

Rewards without any spread say nothing about their scale (a Gaussian sample never has none), so they give no bound and no
evidence.
"""

from __future__ import annotations

import numpy as np

from service.inference.samples import Floats, Samples

# c^2: the prior expects effects of half a standard deviation.
PRIOR_REWARDS = 4.0
# Standardised distances beyond this are cut, so that their squares stay finite.
_FARTHEST = 1e100
_LITTLE = 1e-300


def _log_growth(counts: Floats) -> Floats:
    """Of n rewards: log((n + c^2) / c^2)."""
    return np.log1p(counts / PRIOR_REWARDS)


def log_evidence(samples: Samples, candidates: Floats) -> Floats:
    """The values of log T_n(m) at the candidate means; -infinity while the rewards have no spread."""
    gain = log_gain(samples, candidates)
    gain -= 0.5 * _log_growth(samples.counts)
    return gain


def log_gain(samples: Samples, candidates: Floats) -> Floats:
    """What log T_n(m) is above its least, at the samples' own means; -infinity while the rewards have no spread.

    With y = n D^2 / Q the ratio in T is 1 + n y / (n + c^2 (1 + y)): one logarithm.
    """
    counts, means, squares = samples
    spread = squares > 0.0
    everywhere = spread.all()
    deviation: Floats = np.abs(means - candidates)
    deviation /= np.sqrt(squares if everywhere else np.where(spread, squares, 1.0))
    np.minimum(deviation, _FARTHEST, out=deviation)
    deviation *= deviation
    deviation *= counts
    total = deviation + 1.0
    total *= PRIOR_REWARDS
    total += counts
    deviation /= total
    deviation *= counts
    gain: Floats = np.log1p(deviation, out=deviation)
    gain *= 0.5 * counts
    return gain if everywhere else np.where(spread, gain, -np.inf)


def least_log_evidence(samples: Samples) -> Floats:
    """That at the samples' own means."""
    return np.where(samples.squares > 0.0, -0.5 * _log_growth(samples.counts), -np.inf)


def largest_bend(samples: Samples) -> Floats:
    """What the second derivative of log T_n in m is nowhere above.

    With y = n D^2 / Q that of (n/2) log(1 + y) is (n^2 / Q) (1 - y)/(1 + y)^2, between -1/8 and 1 times n^2 / Q.
    """
    counts, _, squares = samples
    return counts * counts / np.maximum(squares, _LITTLE) * (1.0 + 0.125 * np.exp(-_log_growth(counts)))


def bounds(samples: Samples, levels: Floats) -> tuple[Floats, Floats]:
    """All m with T_n(m) < 1/level, as (lower, upper); infinite while nothing can be said."""
    counts, means, squares = samples
    growth = _log_growth(counts)
    log_ratio = (growth - 2.0 * np.log(levels)) / np.maximum(counts, 1.0)
    room = -np.expm1(np.minimum(log_ratio - growth, 1.0))
    bounded = (room > 0.0) & (squares > 0.0)
    factor = np.expm1(np.where(bounded, log_ratio, 0.0)) / np.where(bounded, room * counts, 1.0)
    reach = np.where(bounded, np.sqrt(squares) * np.sqrt(factor), np.inf)
    return means - reach, means + reach

"""Binary rewards: the beta-binomial mixture.

For S successes among n rewards and a candidate mean p,

    M_n(p) = B(S + 1/2, n - S + 1/2) / B(1/2, 1/2) / (p^S (1 - p)^(n - S))

is a nonnegative martingale that starts at 1 when p is the true mean: the likelihood of the data averaged over the Beta(1/2,
1/2) prior, over their likelihood under p. By Ville's inequality it ever reaches 1/a with probability at most a, so the p
with M_n(p) < 1/a form a confidence sequence (two-sided at once: nothing is lost by splitting a).

Sources: Robbins (1970), "Statistical methods related to the law of the iterated logarithm"; Howard, Ramdas, McAuliffe,
Sekhon (2021), "Time-uniform, nonparametric, nonasymptotic confidence sequences"; the prior of Krichevsky and Trofimov
(1981), whose price over the best p is about log(n pi / 2) / 2 whatever p is.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, expit, xlog1py, xlogy

from service.inference.samples import Floats, Ints, Samples
from service.inference.solving import reach

# No more than this is the first guess of a bound corrected.
_ASKEW = 0.3
# For odds of zero, so that what is divided by them stays finite.
_LITTLE = 1e-300
# Few enough for the processor's cache.
_ARMS_AT_ONCE = 1024


def successes(samples: Samples) -> Floats:
    """How many rewards were 1."""
    return np.rint(samples.counts * samples.means)


def log_average_likelihood(samples: Samples) -> Floats:
    """Log of the data's likelihood averaged over the Beta(1/2, 1/2) prior."""
    ones = successes(samples)
    log_average: Floats = betaln(ones + 0.5, samples.counts - ones + 0.5) - np.log(np.pi)
    return log_average


def log_evidence(samples: Samples, candidates: Floats) -> Floats:
    """The values of log M_n(p) at the candidate means."""
    ones = successes(samples)
    log_likelihood: Floats = xlogy(ones, candidates) + xlog1py(samples.counts - ones, -candidates)
    return log_average_likelihood(samples) - log_likelihood


def bounds(samples: Samples, levels: Floats) -> tuple[Floats, Floats]:
    """All p with M_n(p) < 1/level, as (lower, upper)."""
    lower, upper = np.empty(len(levels)), np.empty(len(levels))
    for start in range(0, len(levels), _ARMS_AT_ONCE):
        some = slice(start, start + _ARMS_AT_ONCE)
        lower[some], upper[some] = _bounds_of_some(samples.pick(some), levels[some])
    return lower, upper


def _bounds_of_some(samples: Samples, levels: Floats) -> tuple[Floats, Floats]:
    """The upper bound is the lower one of the failures, mirrored.

    Solved in the angle x, p = sin(x)^2, in which the spread of a share does not depend on the share, so that the square root of
    the evidence is nearly a straight line.
    """
    ones = successes(samples)
    counts, hits = _twice(samples.counts), np.concatenate([ones, samples.counts - ones])
    average = _twice(log_average_likelihood(samples))
    share = hits / np.maximum(counts, 1.0)
    angle = np.arcsin(np.sqrt(share))
    failures = counts - hits
    baseline = average - xlogy(hits, share) - xlog1py(failures, -share)
    goals = _twice(-np.log(levels))

    def log_evidence_below(rows: Ints, distance: Floats) -> Floats:
        some = rows if len(rows) < len(angle) else slice(None)  # at first all of them: nothing is copied
        # The odds p/(1 - p).
        odds: Floats = np.tan(angle[some] - distance)
        odds *= odds
        np.maximum(odds, _LITTLE, out=odds)
        log_evidence: Floats = failures[some] * np.log1p(odds)
        log_evidence += hits[some] * np.log1p(1.0 / odds)
        log_evidence += average[some]
        return log_evidence

    # Where the bound would be for a share in the middle, and for few successes: S log p alone, a bound that is never too narrow.
    plain = np.sqrt((goals - baseline) / (2.0 * np.maximum(counts, 1.0)))
    # To the next order: with c = 2/tan(2x) the evidence is 2 n D^2 (1 + c D/3) more at the distance D.
    with np.errstate(divide="ignore"):
        askew = plain / (3.0 * np.tan(2.0 * angle))
    plain *= 1.0 - np.minimum(np.maximum(askew, -_ASKEW), _ASKEW)
    scarce = angle - np.arcsin(np.sqrt(expit((average - goals) / np.maximum(hits, 1.0))))
    start = np.minimum(plain, scarce)
    odds = np.tan(angle - reach(log_evidence_below, goals, baseline, start, angle)) ** 2
    reached = odds / (1.0 + odds)
    arms = len(ones)
    return reached[:arms], 1.0 - reached[arms:]


def _twice(values: Floats) -> Floats:
    """For the lower bounds and for the upper ones."""
    return np.concatenate([values, values])

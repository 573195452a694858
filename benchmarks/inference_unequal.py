"""Arms with unequal counts: how many rewards the pair test needs against the product of two mixtures, one an arm.

    python -m benchmarks.inference_unequal

No chance is involved: both arms have just the means and variances that they are expected to have, one has `ratio` times as many
rewards as the other, and the count at which the better one is first shown is found by halving. For Gaussian rewards, whose test
is the product, the rewards are held against a test of one effect that would have to know the variance: a normal mixture over the
difference, with the same prior on it. Writes docs/inference/unequal.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.inference_instances import BINARY, BOUNDED, REAL, Floats
from benchmarks.inference_verdicts import Test, product_of_bets, product_of_coins
from service.inference.levels import pair_levels
from service.inference.pairs import exceeds
from service.inference.real import PRIOR_REWARDS
from service.inference.samples import Bools, Samples

RESULTS = Path(__file__).parent.parent / "docs" / "inference" / "unequal.json"
RATIOS = (1, 2, 3, 5, 10, 20, 30, 50, 100)
LEVEL = float(pair_levels(np.zeros(5, np.int64), np.ones(5, np.bool_), 0, 0.05)[1])


class Case(NamedTuple):
    """Two arms, the better one first, each with mean and variance; the service's test and the one it is held against."""

    name: str
    arms: tuple[tuple[float, float], tuple[float, float]]
    test: Test
    other: Test


def known_variance(high: Samples, low: Samples, levels: Floats) -> Bools:
    """One effect for two Gaussian arms of variance 1: a normal mixture over the difference, prior N(0, 2/c^2)."""
    error = 1.0 / high.counts + 1.0 / low.counts
    prior = 2.0 / PRIOR_REWARDS
    gap = high.means - low.means
    found = 0.5 * np.log(error / (error + prior)) + 0.5 * gap * gap / error * prior / (error + prior)
    shown: Bools = found >= -np.log(levels)
    return shown


def coins(high: float, low: float) -> Case:
    """Two binary arms."""
    arms = (high, high * (1.0 - high)), (low, low * (1.0 - low))
    return Case(f"binary, {high:g} and {low:g}", arms, partial(exceeds, BINARY), product_of_coins)


def within_bounds(high: float, low: float, deviation: float) -> Case:
    """Two bounded arms."""
    arms = (high, deviation**2), (low, deviation**2)
    return Case(f"bounded, {high:g} and {low:g}, deviation {deviation:g}", arms, partial(exceeds, BOUNDED), product_of_bets)


def gaussians(gap: float) -> Case:
    """Two Gaussian arms."""
    return Case(f"Gaussian, {gap:g} deviations apart", ((gap, 1.0), (0.0, 1.0)), partial(exceeds, REAL), known_variance)


CASES = (
    *(coins(*shares) for shares in ((0.5, 0.4), (0.13, 0.10), (0.05, 0.04), (0.02, 0.015))),
    *(within_bounds(*arms) for arms in ((0.5, 0.4, 0.16), (0.55, 0.5, 0.1), (0.05, 0.04, 0.06), (0.41, 0.4, 0.02))),
    *(gaussians(gap) for gap in (0.5, 0.2, 0.05)),
)


def least_total(shown: Callable[[float], bool]) -> int:
    """The least number of rewards with which it is shown."""
    low, high = 1.0, 2.0
    while not shown(high):
        low, high = high, 2.0 * high
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if shown(middle) else (middle, high)
    return round(high)


def rewards_needed(case: Case, test: Test, ratio: float) -> int:
    """Of both arms together; the better one has `ratio` times as many."""

    def shown(total: float) -> bool:
        counts = total * ratio / (1.0 + ratio), total / (1.0 + ratio)
        high, low = (
            Samples(np.array([count]), np.array([mean]), np.array([count * variance]))
            for count, (mean, variance) in zip(counts, case.arms, strict=True)
        )
        return bool(test(high, low, np.array([LEVEL]))[0])

    return least_total(shown)


def main() -> None:
    """Every case at every ratio, both ways round."""
    rows = []
    ratios = sorted({1.0 / more for more in RATIOS} | {float(more) for more in RATIOS})
    for case in CASES:
        parts = []
        for ratio in ratios:
            ours, theirs = (rewards_needed(case, test, ratio) for test in (case.test, case.other))
            parts.append(round(ours / theirs, 3))
            rows.append({"case": case.name, "ratio": round(ratio, 4), "test": ours, "other": theirs, "part": parts[-1]})
        print(case.name, parts, flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

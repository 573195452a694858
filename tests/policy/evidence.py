"""Evidence for the policies' tests, and the paper's weights as the paper writes them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from service.policy.base import Evidence, Floats
from service.policy.weights import PAPER, WeightRule


def direct_weights(means: Floats, rule: WeightRule = PAPER) -> list[float]:
    """The H1 weights term by term as the formula stands, each term as an exact fraction so that no gap is too small for it."""
    gaps = [Fraction(float(means.max())) - Fraction(float(mean)) for mean in means]
    if not any(gaps):
        return [1 / len(gaps)] * len(gaps)
    costs = [
        math.fsum(float(own**2 / (other + own) ** 2) for j, other in enumerate(gaps) if j != i) if own else math.inf
        for i, own in enumerate(gaps)
    ]
    tied = gaps.count(Fraction(0))
    of_best = 1 + (tied - 2) / 4 if rule.ties == "limit" and tied > 1 else min(costs)
    inverse = [1 / (of_best if math.isinf(cost) else cost) for cost in costs]
    sharp = [one**rule.sharpness for one in inverse]
    return [
        rule.guard * one / math.fsum(inverse) + (1 - rule.guard) * power / math.fsum(sharp)
        for one, power in zip(inverse, sharp, strict=True)
    ]


def evidence_of(means: Floats, draws: list[int] | None = None, floors: list[float] | None = None) -> Evidence:
    """Evidence in which every arm was drawn, ten times unless said otherwise."""
    arms = len(means)
    counts = np.array(draws or [10] * arms, np.int64)
    return Evidence(means, counts, counts == 0, np.array(floors or [0.0] * arms))


def means_of(elements: st.SearchStrategy[float], most: int = 40) -> st.SearchStrategy[Floats]:
    """Means of 2 to `most` arms."""
    return st.lists(elements, min_size=2, max_size=most).map(np.array)


# Every size of number that a mean may have, and the ties that small integers make.
magnitudes = st.one_of(
    st.floats(1e-300, 1e300),
    st.floats(-1e300, -1e-300),
    st.integers(-3, 3).map(float),
)
any_means = means_of(magnitudes, most=20)
whole_means = means_of(st.integers(-(2**20), 2**20).map(float))

rules = st.builds(
    WeightRule,
    st.one_of(st.sampled_from([1.0, 1.25, 1.5, 2.0, 3.0]), st.floats(1, 3)),
    st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1)),
    st.sampled_from(["limit", "paper"]),
)

"""Evidence for the policies' tests, and the paper's weights as the paper writes them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from service.policy.base import Evidence, Floats


def direct_weights(means: Floats, sharpness: float = 1.0) -> list[float]:
    """The H1 weights term by term as the formula stands, each term as an exact fraction so that no gap is too small for it."""
    gaps = [Fraction(float(means.max())) - Fraction(float(mean)) for mean in means]
    if not any(gaps):
        return [1 / len(gaps)] * len(gaps)
    costs = [
        math.fsum(float(own**2 / (other + own) ** 2) for j, other in enumerate(gaps) if j != i) if own else math.inf
        for i, own in enumerate(gaps)
    ]
    inverse = [(1 / (min(costs) if math.isinf(cost) else cost)) ** sharpness for cost in costs]
    return [one / math.fsum(inverse) for one in inverse]


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

"""The constant-ratio ceiling: the three lines of its lemma."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.policy.base import Floats
from service.policy.ceiling import constant_ratio_ceiling
from service.policy.weights import h1_weights
from tests.policy.evidence import any_means

fractions = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1)), min_size=2, max_size=40).filter(any).map(np.array)


@given(fractions, st.integers(2, 5), st.integers(0, 2**53 - 1))
def test_the_lemma(raw: Floats, times: int, seed: int) -> None:
    """With N >= 2K the counts are whole, sum to N, and no arm gets less than a quarter of its share."""
    weights = raw / raw.sum()
    size = times * len(weights) + seed % 3
    counts = constant_ratio_ceiling(weights, size, np.random.default_rng(seed))
    assert counts.dtype == np.int64
    assert counts.sum() == size
    assert (counts >= weights * size / 4 - 1e-9).all()
    assert (counts[weights == 0] == 0).all()


@given(any_means, st.integers(0, 1000))
def test_the_lemma_for_the_paper_s_weights(means: Floats, seed: int) -> None:
    """The same for the weights that the policy hands to it."""
    weights = h1_weights(means)
    size = 2 * len(means)
    counts = constant_ratio_ceiling(weights, size, np.random.default_rng(seed))
    assert counts.sum() == size
    assert (counts >= np.maximum(1, weights * size / 4 - 1e-9)).all()


def test_whole_shares_are_exact() -> None:
    """Shares that are whole in theory lose nothing to rounding: a tenth of 30 is three, whatever the generator says."""
    counts = constant_ratio_ceiling(np.full(10, 0.1), 30, np.random.default_rng(0))
    assert counts.tolist() == [3] * 10


@pytest.mark.parametrize("seed", range(3))
def test_the_remainder_is_one_choice_by_weight(seed: int) -> None:
    """What the floors leave is drawn by one call of the generator, so that a replay draws the same."""
    weights = np.array([0.5, 0.3, 0.2])
    counts = constant_ratio_ceiling(weights, 8, np.random.default_rng(seed))
    # N' = 5: floors 2, 1, 1 and one each make 7; one is left.
    extra = int(np.random.default_rng(seed).choice(3, size=1, p=weights)[0])
    assert counts.tolist() == [3 + (extra == 0), 2 + (extra == 1), 2 + (extra == 2)]

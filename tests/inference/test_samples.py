"""Rows that are equal are found as such, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.inference.samples import Floats, distinct
from tests.inference.arms import unhurried

EXTREMES = np.array([0.0, 1.0, 1e9, 1e9 + 1.0, 1e-300, np.nextafter(1.0, 2.0), 1e100, 0.1])


def columns_of(seed: int, rows: int, kinds: int) -> list[Floats]:
    """Three columns of rows that are of so many kinds at most, extreme numbers among them."""
    rng = np.random.default_rng(seed)
    table = np.where(rng.random((3, kinds)) < 0.5, rng.choice(EXTREMES, (3, kinds)), rng.random((3, kinds)))
    return list(table[:, rng.integers(0, kinds, rows)])


@unhurried
@given(seed=st.integers(0, 10**6), rows=st.integers(100, 600), kinds=st.integers(1, 40))
def test_each_row_is_equal_to_the_one_that_stands_for_it_and_these_differ(seed: int, rows: int, kinds: int) -> None:
    """Numbers that differ in the last place are different."""
    columns = columns_of(seed, rows, kinds)
    found = distinct(*columns)
    assert found is not None
    first, place = found
    table = np.array(columns)
    assert (table[:, first[place]] == table).all()
    assert len(np.unique(table[:, first], axis=1).T) == len(first)


@pytest.mark.parametrize(("rows", "kinds"), [(99, 1), (1, 1), (400, 10_000)])
def test_a_search_that_would_not_pay_finds_nothing(rows: int, kinds: int) -> None:
    """Few rows, or rows of which most are their own kind."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, kinds, rows).astype(np.float64)
    assert distinct(values, values) is None

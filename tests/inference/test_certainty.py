"""Exact moments on their way to the inference."""

from __future__ import annotations

import pytest

from service.inference.certainty import period_of
from tests.test_exact import counted


@pytest.mark.parametrize(
    "rewards",
    [[[0.0, 1.0, 1.0], [1.0] * 5], [[0.25] * 4 + [0.5] * 3, [1.0, 0.0]], [[3.0, -2.0, 7.0], [4.0, 4.5]]],
    ids=["binary", "whole squares of broken rewards", "some broken"],
)
def test_the_short_way_for_whole_numbers_is_as_exact_as_the_long_one(rewards: list[list[float]]) -> None:
    """Means and variances of all arms at once are those of each by itself, also of what came since an earlier look."""
    moments = [counted(each) for each in rewards]
    earlier = [counted(each[:1]) for each in rewards]
    for less, rest in ((None, moments), (earlier, [one - other for one, other in zip(moments, earlier, strict=True)])):
        period = period_of(moments, less)
        assert period.counts.tolist() == [one.count for one in rest]
        assert period.means.tolist() == [one.mean() for one in rest]
        expected = [one.variance() for one in rest]
        assert [None if value != value else value for value in period.variances.tolist()] == expected  # noqa: PLR0124 - NaN

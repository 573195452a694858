"""Rates, the worst of them, and their intervals."""

from __future__ import annotations

import math

import pytest

from studies.error_rates import Outcome, rate, rate_interval, worst_rate


def test_rates() -> None:
    """H log(1/PoE) / T; without errors infinite with a finite lower end."""
    assert rate(math.exp(-2.0), 100.0, 400) == pytest.approx(0.5)
    low, value, high = rate_interval(0, 1000, 100.0, 400)
    assert math.isfinite(low)
    assert value == high == math.inf


def test_the_worst_rate() -> None:
    """The minimum, which instance has it, and an interval around it."""
    outcomes = [Outcome("a", 100, 1000, 50.0, 500), Outcome("b", 10, 1000, 50.0, 500)]
    low, value, high, where = worst_rate(outcomes)
    assert where == "a"
    assert value == pytest.approx(rate(0.1, 50.0, 500))
    assert low < value < high


def test_the_interval_of_a_minimum_of_equals_lies_below_one_of_them() -> None:
    """The minimum over many equal instances is below each: the bootstrap knows it."""
    one = worst_rate([Outcome("a", 50, 1000, 50.0, 500)])
    many = worst_rate([Outcome(str(i), 50, 1000, 50.0, 500) for i in range(20)])
    assert many.high < one.high
    assert many.low < one.value

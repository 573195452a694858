"""Intervals, rates, the worst of them, and agreement of counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.simulation.metrics import Outcome, holm, rate, rate_interval, two_sample_p, wilson, worst_rate


def test_wilson() -> None:
    """A textbook value, and the ends."""
    assert wilson(10, 100) == pytest.approx((0.0552, 0.1, 0.1744), abs=1e-4)
    assert wilson(0, 50).low == 0.0
    assert wilson(50, 50).high == 1.0


def test_wilson_covers() -> None:
    """Near 95% of simulated counts have the true share inside."""
    rng = np.random.default_rng(4)
    inside = [
        interval.low <= 0.03 <= interval.high
        for count in rng.binomial(2000, 0.03, 2000)
        if (interval := wilson(int(count), 2000))
    ]
    assert abs(np.mean(inside) - 0.95) < 0.02


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


def test_holm() -> None:
    """The smallest p-value meets level/m, the next level/(m - 1), and the first miss ends it."""
    assert holm([0.001, 0.2, 0.004, 0.0049], 0.01) == [True, False, False, False]
    assert holm([0.001, 0.003, 0.9], 0.01) == [True, True, False]


def test_two_samples() -> None:
    """Equal shares agree, far ones do not."""
    assert two_sample_p(10, 1000, 20, 2000) > 0.9
    assert two_sample_p(10, 1000, 60, 1000) < 1e-6

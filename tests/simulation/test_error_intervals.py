"""Wilson's interval: a textbook value, its ends, its coverage."""

from __future__ import annotations

import numpy as np
import pytest

from service.simulation.error_intervals import wilson


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

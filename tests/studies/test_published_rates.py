"""The paper's tables, as they were copied."""

from __future__ import annotations

import math

from studies.published_rates import published_rates


def test_published_rates_are_whole_numbers_of_errors() -> None:
    """With H = 4 H1 = 348 every finite published rate on instance 9 is a whole number of errors in 10,000 runs."""
    for budget, rates in published_rates()["instance_9_by_budget"]["rates"].items():
        for rate in rates:
            if rate is not None:
                low, high = (10_000 * math.exp(-(rate + shift) * int(budget) / 348) for shift in (0.0005, -0.0005))
                assert math.floor(high) >= math.ceil(low)

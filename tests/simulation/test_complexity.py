"""H1, H2 and H3 of all instances, as printed in the specification."""

from __future__ import annotations

import math

import pytest

from service.simulation.complexity import h1, h2, h3, olog, sr_exponent
from service.simulation.environments import instance

TABLE = {
    "1": (647.848, 800, 3200),
    "2": (37.926, 47.286, 189.144),
    "3": (425.354, 200, 800),
    "4": (435, 500, 1250),
    "5": (4257.015, 3185.801, 12743.205),
    "6": (434.391, 409.184, 1636.734),
    "7": (975, 1000, 2051.282),
    "8": (260.625, 250, 555.556),
    "9": (87, 75, 225),
    "10": (205.444, 200, 800),
    "open_bandit": (307.397, 154.602, 446.188),
    "movielens": (1729.464, 1812.184, 7248.736),
}


@pytest.mark.parametrize("name", TABLE)
def test_complexities(name: str) -> None:
    """To the last printed digit."""
    means = instance(name).means
    assert (h1(means), h2(means), h3(means)) == pytest.approx(TABLE[name], abs=6e-4)


def test_two_arms() -> None:
    """For two arms the cheapest mistake makes both look like their mean: H3 = 8 / gap^2, and SR's exponent is gap^2 / 8."""
    assert h3([1.0, 0.0]) == pytest.approx(8.0)
    assert olog(2) == 1.0
    assert sr_exponent([1.0, 0.0]) == pytest.approx(1.0 / 8.0)


def test_h3_lies_between_half_and_the_whole_of_the_appendix_h2() -> None:
    """H2/2 <= H3 <= H2 with the appendix's H2, four times the main text's."""
    for name in TABLE:
        means = instance(name).means
        assert 2.0 * h2(means) * (1 - 1e-12) <= h3(means) <= 4.0 * h2(means) * (1 + 1e-12)
        assert math.isfinite(h1(means))

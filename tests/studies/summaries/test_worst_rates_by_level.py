"""Worst rates at shorter and longer budgets, and what published rates could come from."""

from __future__ import annotations

from service.simulation.environments import INSTANCES
from studies.pages.worst_rates_section import not_below, rates_verdict
from studies.summaries.worst_rates_by_level import by_level

LEVELS = ("0.2", "0.05", "0.01", "0.001")


def test_the_claim_by_level_and_the_reach_of_a_published_rate() -> None:
    """SR passes Simple Tracking at the last level; a published rate is judged by what the first three levels could give."""
    shares = {"simple_tracking": (0.2, 0.05, 0.01, 0.001), "sr": (0.3, 0.08, 0.02, 0.0005)}
    counts = {
        (name, 1000 * (place + 1)): {policy: (round(10_000 * found[place]), 10_000) for policy, found in shares.items()}
        for name in INSTANCES
        for place in range(4)
    }
    found = by_level(counts, LEVELS)
    assert [not_below(found, "H1", "simple_tracking", place) for place in range(4)] == [[], [], [], ["sr"]]
    low, high = found["reach"]["H1"]["sr"]
    ours = [0.0, 0.0, 0.0]
    assert (
        rates_verdict("sr", {"paper": ours, "published": [low, low, high]}, found["reach"]["H1"])
        == "not pinned down by the paper"
    )
    beyond = {"paper": ours, "published": [2.0 * high, 2.0 * high, 3.0 * high]}
    assert rates_verdict("sr", beyond, found["reach"]["H1"]) == "**not reproduced**"
    assert rates_verdict("sr", {"paper": [1.0, 1.1, 1.2], "published": [1.1, 1.3, 1.4]}, {}) == "reproduced"


def test_levels_wait_for_all_ten_instances() -> None:
    """Nine of them have no worst rate yet."""
    counts = {(name, draws): {"sr": (1, 10)} for name in INSTANCES[1:] for draws in (1, 2, 3, 4)}
    assert by_level(counts, LEVELS) == {}

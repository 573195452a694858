"""How an export leaves the processor to those who ask."""

from __future__ import annotations

import pytest

from service.application.live.export_lane import rest_after


@pytest.mark.parametrize(
    ("seconds", "worked", "rest"),
    [(0.01, 0.009, 0.02), (0.01, 0.004, 0.0), (10.0, 9.0, 0.25), (10.0, 0.1, 0.0), (0.0, 0.0, 0.0)],
    ids=["busy", "idle", "a slow reader of a busy worker", "a slow reader", "no time at all"],
)
def test_it_rests_while_its_worker_is_busy(seconds: float, worked: float, rest: float) -> None:
    """Twice as long as a piece took, at most a quarter of a second; not at all where nobody needs it."""
    assert rest_after(seconds, worked) == rest

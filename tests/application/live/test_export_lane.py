"""How an export leaves the processor to those who ask."""

from __future__ import annotations

import pytest

from service.application.live.export_lane import is_busy


@pytest.mark.parametrize(
    ("seconds", "worked", "busy"),
    [(0.05, 0.045, True), (0.05, 0.02, False), (10.0, 9.0, True), (10.0, 0.1, False), (0.0, 0.0, False)],
    ids=["asks come all the time", "few asks", "a slow reader beside asks", "a slow reader alone", "no time at all"],
)
def test_it_rests_while_its_worker_is_busy(seconds: float, worked: float, *, busy: bool) -> None:
    """By the processor time of the worker since the rest before; nobody waits for an export that is alone."""
    assert is_busy(seconds, worked) is busy

"""Pauses before a worker comes back."""

from __future__ import annotations

from service.supervision.backoff import Backoff


def test_only_deaths_in_a_row_are_waited_for() -> None:
    """The first is replaced at once; the pauses double up to half a minute; whoever served for a while is as new."""
    backoff = Backoff()
    assert [backoff.seconds_after(0) for _ in range(9)] == [0, 0.5, 1, 2, 4, 8, 16, 30, 30]
    assert backoff.seconds_after(60) == 0
    assert [backoff.seconds_after(1) for _ in range(2)] == [0, 0.5]
    assert Backoff(quick_deaths=100_000).seconds_after(0) == 30

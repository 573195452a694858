"""Numbers and times as people write them."""

from __future__ import annotations

import pytest

from service.web.charts.scales import clock_name, moment, progress, signed, steady, time_ticks

_DAY = 86_400_000_000


@pytest.mark.parametrize(("offset", "label"), [(0, "UTC"), (330, "UTC+05:30"), (-210, "UTC\u221203:30"), (840, "UTC+14:00")])
def test_a_clock_is_named(offset: int, label: str) -> None:
    """UTC, or how far from it."""
    assert clock_name(offset) == label


@pytest.mark.parametrize("offset", [0, 330, -210])
def test_times_are_round_on_the_viewers_clock(offset: int) -> None:
    """Days begin at midnight there, whatever UTC says; every tick lies inside."""
    start = 20_000 * _DAY + 12_345_678
    ticks = time_ticks(start, start + 5 * _DAY, 5, offset)
    assert len(ticks) == 5
    for at, label in ticks:
        assert start <= at <= start + 5 * _DAY
        assert f"{moment(at, offset):%H:%M:%S}" == "00:00:00"
        assert f"{moment(at, offset):%-d %b}" == label


def test_numbers_that_are_compared_have_the_same_digits() -> None:
    """13.90 beside 11.54, not 13.9; large and tiny ones go on by their power of ten."""
    write = steady([13.9, 11.54])
    assert [write(value) for value in (13.9, 11.0, 11.54, -2.0)] == ["13.90", "11.00", "11.54", "\u22122.00"]
    assert steady([1_250.0, 980.0])(1_250.0) == "1,250"
    assert steady([2e9, 1e9])(2e9) == "2e+09"
    assert steady([0.0])(0.0) == "0"


def test_progress_is_never_rounded_up_to_a_verdict() -> None:
    """99.99% of the evidence is 99%."""
    assert [progress(part) for part in (0.0, 0.429, 0.9999, 1.0)] == ["0%", "42%", "99%", "100%"]


def test_a_signed_number_shows_its_sign() -> None:
    """With a real minus."""
    assert [signed(value, str) for value in (2.5, -2.5, 0.0)] == ["+2.5", "\u22122.5", "\u00b10.0"]

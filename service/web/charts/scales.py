"""From numbers to places and back to words: scales, round ticks, and how a number is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_SECOND = 1_000_000
_MINUTE = 60 * _SECOND
_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200]
_DAY = 86_400
# Beyond these a number is written with its power of ten.
_SMALLEST, _LARGEST = 1e-4, 1e7
_DAYS = [1, 2, 7, 14, 28, 91, 182, 364, 728, 1820]


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight line from a range of numbers to a range of places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a number."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between low and high, about so many."""
    if not high > low:
        return [low]
    rough = (high - low) / max(about, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 2.5, 5, 10) if power * times >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def padded(values: Sequence[float], part: float = 0.06) -> tuple[float, float]:
    """The range of the values with some air on both sides."""
    low, high = min(values), max(values)
    air = (high - low) * part or abs(low) * part or 0.5
    return low - air, high + air


def time_ticks(start: int, end: int, about: int = 5, utc_offset: int = 0) -> list[tuple[int, str]]:
    """Times (microseconds) between start and end that are round on a clock so many minutes ahead of UTC, with their labels."""
    seconds = max((end - start) / _SECOND, 1.0)
    steps = _STEPS + [days * _DAY for days in _DAYS]
    step = next((one for one in steps if seconds / one <= about), steps[-1])
    form = "%H:%M:%S" if step < _STEPS[6] else "%H:%M" if step < _DAY else "%-d %b" if step < _DAYS[-3] * _DAY else "%b %Y"
    ahead = utc_offset * _MINUTE
    first = -(-(start + ahead) // (step * _SECOND))
    places = range(first * step * _SECOND, end + ahead + 1, step * _SECOND)
    return [(place - ahead, moment(place).strftime(form)) for place in places]


def moment(microseconds: int, utc_offset: int = 0) -> datetime:
    """A time as people count it, on a clock so many minutes ahead of UTC."""
    return datetime.fromtimestamp((microseconds + utc_offset * _MINUTE) // _SECOND, UTC)


def clock_name(utc_offset: int) -> str:
    """UTC, or how far from it: UTC+05:30."""
    hours, minutes = divmod(abs(utc_offset), 60)
    sign = "+" if utc_offset > 0 else "\u2212"
    return "UTC" if utc_offset == 0 else f"UTC{sign}{hours:02}:{minutes:02}"


def percent(value: float, digits: int = 0) -> str:
    """A part of one as a percentage."""
    return f"{value * 100:.{digits}f}%"


def number(value: float) -> str:
    """Up to four significant digits, with separators where they help."""
    size = abs(value)
    if size and not _SMALLEST <= size < _LARGEST:
        return f"{value:.3g}".replace("-", "\u2212")
    digits = max(0, 3 - max(1, math.floor(math.log10(size)) + 1 if size else 1))
    written = f"{value:,.{digits}f}"
    return (written.rstrip("0").rstrip(".") if "." in written else written).replace("-", "\u2212")


def steady(values: Sequence[float]) -> Callable[[float], str]:
    """A writer of numbers that are compared with each other: all with as many digits as their differences need."""
    sizes = [abs(value) for value in values if value]
    span = max(values) - min(values)
    if not sizes or not span or max(sizes) >= _LARGEST or span < _SMALLEST:
        return number
    digits = max(0, min(6, 2 - math.floor(math.log10(span))))
    return lambda value: f"{value:,.{digits}f}".replace("-", "\u2212")


def signed(value: float, write: Callable[[float], str]) -> str:
    """With its sign, whichever it is."""
    return ("+" if value > 0 else "\u2212" if value < 0 else "\u00b1") + write(abs(value))


def progress(part: float) -> str:
    """How far the evidence has come, never rounded up to a verdict that is not there."""
    return f"{100 if part >= 1.0 else min(99, math.floor(part * 100))}%"

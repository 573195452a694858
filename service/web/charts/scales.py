"""From numbers to places and back to words: scales, round ticks, and how a number is written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_SECOND = 1_000_000
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


def time_ticks(start: int, end: int, about: int = 5) -> list[tuple[int, str]]:
    """Round times (microseconds) between start and end, with their labels in UTC."""
    seconds = max((end - start) / _SECOND, 1.0)
    steps = _STEPS + [days * _DAY for days in _DAYS]
    step = next((one for one in steps if seconds / one <= about), steps[-1])
    form = "%H:%M:%S" if step < _STEPS[6] else "%H:%M" if step < _DAY else "%-d %b" if step < _DAYS[-3] * _DAY else "%b %Y"
    first = -(-start // (step * _SECOND))
    places = range(first * step * _SECOND, end + 1, step * _SECOND)
    return [(place, moment(place).strftime(form)) for place in places]


def moment(microseconds: int) -> datetime:
    """A time as people count it."""
    return datetime.fromtimestamp(microseconds // _SECOND, UTC)


def percent(value: float, digits: int = 0) -> str:
    """A part of one."""
    return f"{value * 100:.{digits}f}%"


def number(value: float) -> str:
    """Up to four significant digits, with separators where they help."""
    size = abs(value)
    if size and not _SMALLEST <= size < _LARGEST:
        return f"{value:.3g}".replace("-", "\u2212")
    digits = max(0, 3 - max(1, math.floor(math.log10(size)) + 1 if size else 1))
    written = f"{value:,.{digits}f}"
    return (written.rstrip("0").rstrip(".") if "." in written else written).replace("-", "\u2212")

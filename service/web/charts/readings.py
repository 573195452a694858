"""The numbers behind a picture, for whoever points at it: kept in the picture as JSON, read by the dashboard.

A picture is read along one axis: from time to time, or from row to row. At each place of that axis there is a reading: what it is
of, and for every series a value in words with the place of its dot.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

_MOST = 120


Point = TypeVar("Point")


def worth_reading(points: Sequence[Point]) -> list[Point]:
    """As many points as a pointer can tell apart, evenly thinned, the newest among them."""
    last = len(points) - 1
    stride = max(1, -(-last // _MOST))
    return [point for number, point in enumerate(points) if (last - number) % stride == 0]


@dataclass(frozen=True, slots=True)
class Series:
    """What a value belongs to, with the look of its line."""

    name: str
    colour: str
    dashes: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """The values at one place; None where a series has none there."""

    of: str | int
    """A name, or a time in microseconds."""
    place: float
    values: list[str | None]
    dots: list[float | None]
    """Their places along the other axis."""


@dataclass(slots=True)
class Readings:
    """All readings of a picture, in the order of their places."""

    axis: Literal["x", "y"]
    span: tuple[float, float]
    """Of the plot, along the other axis."""
    series: list[Series]
    readings: list[Reading] = field(default_factory=list)

    def encode(self) -> str:
        """JSON, with times in milliseconds, as browsers count them."""
        content: dict[str, Any] = {
            "axis": self.axis,
            "span": [round(end, 1) for end in self.span],
            "series": [{"name": one.name, "colour": one.colour, "dashes": one.dashes} for one in self.series],
            "readings": [
                {
                    "of": one.of if isinstance(one.of, str) else one.of // 1000,
                    "place": round(one.place, 1),
                    "values": one.values,
                    "dots": [None if dot is None else round(dot, 1) for dot in one.dots],
                }
                for one in self.readings
            ],
        }
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False)

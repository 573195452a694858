"""Writing SVG: a handful of shapes, and text that cannot break out of it or beyond its room."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import TypeAlias

Attribute: TypeAlias = str | float
_FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
# What XML 1.0 cannot hold, whatever way it is escaped.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# The widths of letters as parts of the font's size: of a wide one of these fonts, because the reader's is not known.
_WIDTHS = {
    **dict.fromkeys("ijl|!.,:;'`", 0.34),
    **dict.fromkeys('frtI()[]{}/\\-" ', 0.42),
    **dict.fromkeys("mwMW@%", 0.98),
    **dict.fromkeys("\u2026\u2014", 1.0),
}
_LOWER, _UPPER, _EAST_ASIAN = 0.63, 0.73, 1.05
_BOLD, _BOLD_FROM = 1.1, 600
_ELLIPSIS = "…"


def escaped(text: str) -> str:
    """The text with what XML would read as its own escaped, and what it cannot hold replaced."""
    return escape(_NOT_XML.sub("\ufffd", text))


def text_width(text: str, size: float = 12, weight: float = 400) -> float:
    """The room that a text takes, rather too much than too little."""
    width = 0.0
    for letter in text:
        known = _WIDTHS.get(letter)
        if known is not None:
            width += known
        elif unicodedata.east_asian_width(letter) in "WF":
            width += _EAST_ASIAN
        elif not unicodedata.combining(letter):
            width += _UPPER if letter.isupper() else _LOWER
    return width * size * (_BOLD if weight >= _BOLD_FROM else 1.0)


def shortened(text: str, width: float, size: float = 12, weight: float = 400) -> str:
    """The text, cut where it would not fit."""
    if text_width(text, size, weight) <= width:
        return text
    letters = len(text)
    while letters > 1 and text_width(text[:letters].rstrip() + _ELLIPSIS, size, weight) > width:
        letters -= 1
    return text[:letters].rstrip() + _ELLIPSIS


def _number(value: Attribute) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def _places(points: Iterable[tuple[float, float]]) -> str:
    return " ".join([f"{x:.1f},{y:.1f}" for x, y in points])


class Svg:
    """A picture being drawn."""

    def __init__(self, width: float, height: float, title: str, description: str) -> None:
        self._head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
            f'role="img" font-family="{_FONT}" font-size="12"><title>{escaped(title)}</title><desc>{escaped(description)}</desc>'
        )
        self._parts: list[str] = []
        self._metadata = ""

    def attach(self, metadata: str) -> None:
        """Text for programs that show the picture."""
        safe = escape(
            _NOT_XML.sub("\ufffd", metadata), quote=False
        )  # JSON is full of quotation marks, which only attributes mind
        self._metadata = f"<metadata>{safe}</metadata>"

    def add(self, element: str, **attributes: Attribute) -> None:
        """An element without content; `stroke_width` becomes stroke-width."""
        written = " ".join(f'{name.replace("_", "-")}="{escape(_number(value))}"' for name, value in attributes.items())
        self._parts.append(f"<{element} {written}/>")

    def text(self, x: float, y: float, content: str, **attributes: Attribute) -> None:
        """Words at a place."""
        self._write(x, y, escaped(content), attributes)

    def label(self, x: float, y: float, content: str, width: float, **attributes: Attribute) -> None:
        """Words at a place, cut to a width; whoever points at them is told the whole."""
        size, weight = float(attributes.get("font_size", 12)), float(attributes.get("font_weight", 400))
        shown = shortened(content, width, size, weight)
        whole = "" if shown == content else f"<title>{escaped(content)}</title>"
        self._write(x, y, whole + escaped(shown), attributes)

    def _write(self, x: float, y: float, markup: str, attributes: Mapping[str, Attribute]) -> None:
        written = " ".join(f'{name.replace("_", "-")}="{escape(_number(value))}"' for name, value in attributes.items())
        self._parts.append(f'<text x="{_number(x)}" y="{_number(y)}" {written}>{markup}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, **attributes: Attribute) -> None:
        """A straight line."""
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)

    def path(self, points: Sequence[tuple[float, float]], **attributes: Attribute) -> None:
        """A line through these points."""
        self.add("polyline", points=_places(points), fill="none", stroke_linejoin="round", stroke_linecap="round", **attributes)

    def area(self, points: Sequence[tuple[float, float]], floor: float, **attributes: Attribute) -> None:
        """What lies between these points and a floor."""
        closed: Iterable[tuple[float, float]] = [(points[0][0], floor), *points, (points[-1][0], floor)]
        self.add("polygon", points=_places(closed), **attributes)

    def encode(self) -> bytes:
        """The whole file."""
        return "".join((self._head, self._metadata, *self._parts, "</svg>\n")).encode()


def spread(wanted: Sequence[float], gap: float, lowest: float, highest: float) -> list[float]:
    """Places for labels near where they are wanted, at least a gap apart, in the same order."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed = [wanted[index] for index in order]
    for before, after in pairwise(range(len(placed))):
        placed[after] = max(placed[after], placed[before] + gap)
    if placed and placed[-1] > highest:
        placed[-1] = highest
        for after, before in pairwise(reversed(range(len(placed)))):
            placed[before] = min(placed[before], placed[after] - gap)
    result = [0.0] * len(wanted)
    for index, place in zip(order, placed, strict=True):
        result[index] = max(place, lowest)
    return result


def apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Places near those wanted: whatever is closer together than the gap lies side by side around its middle, in its order."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    result = list(wanted)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or wanted[order[end]] - wanted[order[end - 1]] >= gap:
            together = order[start:end]
            first = sum(wanted[index] for index in together) / len(together) - gap * (len(together) - 1) / 2
            for number, index in enumerate(together):
                result[index] = first + gap * number
            start = end
    return result

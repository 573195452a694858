"""Means with their intervals: one row per arm, best first, against the control where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from service.application.reads.recommendation import Recommendation, Standing
from service.web.charts.frame import TOP, Frame, framed
from service.web.charts.readings import Reading, Readings, Series
from service.web.charts.scales import Scale, number, padded, percent, round_ticks, signed, steady
from service.web.charts.style import ChartStyle
from service.web.charts.svg import text_width

_ROW = 26
_MOST_ROWS = 30
_FEW = 4
_GAP = 14
_MOST_TICKS = 6
_SMALL_PART, _LARGE_PART = 0.1, 10.0


def writer_for(recommendation: Recommendation) -> Callable[[float], str]:
    """Rates as percentages, other rewards as numbers that all have the same digits."""
    if recommendation.progress.experiment.reward.kind == "binary":
        return lambda value: percent(value, 1)
    return steady([one.mean for one in recommendation.standings if one.mean is not None] or [0.0])


def _part(size: float) -> str:
    return "999%+" if size >= _LARGE_PART else percent(size, 1 if size < _SMALL_PART else 0)


@dataclass(frozen=True, slots=True)
class _Words:
    """How the numbers of a picture are written."""

    write: Callable[[float], str]
    binary: bool
    control: int | None

    def lift(self, one: Standing) -> str:
        """Over the control: as a part of it where that can be said, else as a difference."""
        if one.arm.position == self.control:
            return "control"
        if one.lift is None:
            return ""
        return signed(one.lift.difference, self.difference) if one.lift.ratio is None else signed(one.lift.ratio - 1.0, _part)

    def lift_range(self, one: Standing) -> str | None:
        """The lift over the control with its interval."""
        if one.lift is None:
            return None
        interval, write, base = one.lift.difference_interval, self.difference, 0.0
        if one.lift.ratio is not None:
            interval, write, base = one.lift.ratio_interval, _part, 1.0
        ends = "" if interval is None else f" ({' to '.join(signed(end - base, write) for end in interval)})"
        return self.lift(one) + ends

    def difference(self, size: float) -> str:
        """In points of a percentage, or in the rewards' own unit."""
        return f"{size * 100:.1f} pts" if self.binary else self.write(size)


def draw_means(style: ChartStyle, recommendation: Recommendation) -> bytes:
    """The picture."""
    experiment = recommendation.progress.experiment
    known = [one for one in recommendation.standings if one.mean is not None]
    known.sort(key=lambda one: (not one.arm.active, -experiment.reward.sign * (one.mean or 0.0), one.arm.position))
    shown = _with_control(known, experiment.control)
    words = _Words(writer_for(recommendation), experiment.reward.kind == "binary", experiment.control)
    more = len(recommendation.standings) - len(shown)
    described = "; ".join(f"{one.arm.name or one.arm.key} {words.write(one.mean or 0.0)}" for one in shown[:10])
    height = TOP + _ROW * max(len(shown), _FEW) + 44
    frame = framed(style, recommendation, "Mean rewards", described, height)
    if not shown:
        return frame.say("No rewards yet")

    rows = _Rows.of(frame, shown, words, binary=words.binary)
    rows.draw_axis(height - 34)
    rows.draw_control(shown, height - 34)
    leader = recommendation.best.key if recommendation.best else None
    readings = Readings("y", (rows.across.start, rows.across.end), _series(words))
    for place, one in enumerate(shown):
        y = TOP + _ROW * (place + 0.5)
        rows.draw(one, y, is_leader=one.arm.key == leader)
        readings.readings.append(_reading(one, y, words))
    if more > 0:
        frame.svg.text(16, height - 16, f"+ {more:,} more", fill=style.theme.muted, font_size=11)
    frame.svg.attach(readings.encode())
    return frame.svg.encode()


def _with_control(known: list[Standing], control: int | None) -> list[Standing]:
    """The best rows, and the control's whatever its place: the others are told against it."""
    shown = known[:_MOST_ROWS]
    missing = [one for one in known[_MOST_ROWS:] if one.arm.position == control]
    return shown[: _MOST_ROWS - len(missing)] + missing


def _series(words: _Words) -> list[Series]:
    lift = [] if words.control is None else [Series("Over the control", "")]
    return [*lift, Series("Mean", ""), Series("Interval", ""), Series("Observed", "")]


def _reading(one: Standing, y: float, words: _Words) -> Reading:
    interval = None if one.interval is None else " to ".join(words.write(end) for end in one.interval)
    lift = [] if words.control is None else [words.lift_range(one)]
    values = [*lift, words.write(one.mean or 0.0), interval, f"{one.observations:,}"]
    return Reading(one.arm.name or one.arm.key, y, values, [None] * len(values))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where the parts of a row stand: name, plot, lift, mean."""

    frame: Frame
    words: _Words
    across: Scale
    means_width: float

    @classmethod
    def of(cls, frame: Frame, shown: list[Standing], words: _Words, *, binary: bool) -> _Rows:
        """Room for the longest of each, and the rest for the plot."""
        style = frame.style
        named = min(max(text_width(one.arm.name or one.arm.key, 12, 600) for one in shown) + 32, style.width * 0.34)
        means = max(text_width(words.write(one.mean or 0.0), 12, 600) for one in shown)
        lifts = max(text_width(words.lift(one), 12, 600) for one in shown)
        right = 16 + means + _GAP + (lifts + _GAP if lifts else 0.0)
        ends = [bound for one in shown for bound in (one.interval or ())]
        low, high = padded([*ends, *(one.mean or 0.0 for one in shown)])
        if binary:
            low, high = max(low, 0.0), min(high, 1.0)
        return cls(frame, words, Scale(low, high, named, style.width - right), means)

    def draw_axis(self, bottom: float) -> None:
        """Round numbers along the bottom, as many as have room."""
        across, theme, svg = self.across, self.frame.style.theme, self.frame.svg
        write = self.words.write if self.words.binary else number
        for tick in self._ticks(write):
            svg.line(across(tick), TOP, across(tick), bottom, stroke=theme.grid)
            svg.text(across(tick), bottom + 18, write(tick), fill=theme.muted, text_anchor="middle", font_size=11)

    def _ticks(self, write: Callable[[float], str]) -> list[float]:
        across, fewest = self.across, 2
        for about in range(_MOST_TICKS, fewest, -1):
            ticks = round_ticks(across.low, across.high, about)
            if sum(text_width(write(tick), 11) + 8 for tick in ticks) < across.end - across.start:
                return ticks
        return round_ticks(across.low, across.high, fewest)

    def draw_control(self, shown: list[Standing], bottom: float) -> None:
        """The mean to beat, across all rows."""
        theme = self.frame.style.theme
        for one in shown:
            if one.arm.position == self.words.control and one.mean is not None:
                x = self.across(one.mean)
                self.frame.svg.line(x, TOP - 4, x, bottom, stroke=theme.muted, stroke_dasharray="4 3")
                self.frame.legend([("mean of the control", "4 3")])

    def draw(self, one: Standing, y: float, *, is_leader: bool) -> None:
        """Name, interval, mean as a dot, lift and mean in words."""
        style, svg, across, mean = self.frame.style, self.frame.svg, self.across, one.mean or 0.0
        theme, lift = style.theme, self.words.lift(one)
        colour = theme.accent if is_leader else theme.muted if one.arm.active else theme.faint
        ink = theme.ink if one.arm.active else theme.muted
        weight = 600 if is_leader else 400
        svg.label(16, y + 4, one.arm.name or one.arm.key, across.start - 28, fill=ink, font_weight=weight)
        if one.interval:
            low, high = (across(min(max(bound, across.low), across.high)) for bound in one.interval)
            svg.line(low, y, high, y, stroke=colour, stroke_width=6, stroke_linecap="round", stroke_opacity=0.28)
        svg.add("circle", cx=across(mean), cy=y, r=4.5, fill=colour, stroke=theme.paper, stroke_width=1.5)
        at = style.width - 16
        svg.text(at, y + 4, self.words.write(mean), fill=theme.muted if lift else ink, text_anchor="end", font_weight=weight)
        if lift:
            told = theme.muted if lift == "control" else ink
            at -= round(self.means_width + _GAP)
            svg.text(at, y + 4, lift, fill=told, text_anchor="end", font_weight=weight)

"""Means with their intervals: one row per arm, best first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from service.application.reads.recommendation import Recommendation, Standing
from service.web.charts.frame import TOP, framed
from service.web.charts.scales import Scale, number, padded, percent, round_ticks
from service.web.charts.style import ChartStyle
from service.web.charts.svg import Svg, shortened

_ROW = 26
_MOST_ROWS = 30
_FEW = 4


def writer_for(recommendation: Recommendation) -> Callable[[float], str]:
    """Rates as percentages, other rewards as numbers."""
    binary = recommendation.progress.experiment.reward.kind == "binary"
    return (lambda value: percent(value, 1)) if binary else number


def draw_means(style: ChartStyle, recommendation: Recommendation) -> bytes:
    """The picture."""
    known = [one for one in recommendation.standings if one.mean is not None]
    sign = recommendation.progress.experiment.reward.sign
    known.sort(key=lambda one: (not one.arm.active, -sign * (one.mean or 0.0), one.arm.position))
    shown, write, theme = known[:_MOST_ROWS], writer_for(recommendation), style.theme
    more = len(recommendation.standings) - len(shown)
    described = "; ".join(f"{one.arm.name or one.arm.key} {write(one.mean or 0.0)}" for one in shown[:10])
    height = TOP + _ROW * max(len(shown), _FEW) + 44
    frame = framed(style, recommendation, "Mean reward with its interval", described, height)
    if not shown:
        return frame.say("No rewards yet")

    label_width = min(max(len(one.arm.name or one.arm.key) for one in shown) * 7.6 + 32, style.width * 0.34)
    ends = [bound for one in shown for bound in (one.interval or ()) if bound is not None]
    low, high = padded([*ends, *(one.mean or 0.0 for one in shown)])
    if recommendation.progress.experiment.reward.kind == "binary":
        low, high = max(low, 0.0), min(high, 1.0)
    across = Scale(low, high, label_width, style.width - 70.0)
    bottom = height - 34
    for tick in round_ticks(low, high, 3 if style.width < 400 else 6):  # noqa: PLR2004 - fewer labels where it is narrow
        frame.svg.line(across(tick), TOP, across(tick), bottom, stroke=theme.grid)
        frame.svg.text(across(tick), bottom + 18, write(tick), fill=theme.muted, text_anchor="middle", font_size=11)
    leader = recommendation.best.key if recommendation.best else None
    rows = _Rows(frame.svg, style, across, write)
    for row, one in enumerate(shown):
        rows.draw(one, TOP + _ROW * (row + 0.5), is_leader=one.arm.key == leader)
    if more > 0:
        frame.svg.text(16, bottom + 18, f"+ {more:,} more", fill=theme.muted, font_size=11)
    return frame.svg.encode()


@dataclass(frozen=True, slots=True)
class _Rows:
    svg: Svg
    style: ChartStyle
    across: Scale
    write: Callable[[float], str]

    def draw(self, one: Standing, y: float, *, is_leader: bool) -> None:
        """Name, interval, mean as a dot, mean as a number."""
        theme, across, mean = self.style.theme, self.across, one.mean or 0.0
        colour = theme.accent if is_leader else theme.muted if one.arm.active else theme.faint
        words = theme.ink if one.arm.active else theme.muted
        weight = 600 if is_leader else 400
        self.svg.text(16, y + 4, shortened(one.arm.name or one.arm.key, across.start - 28), fill=words, font_weight=weight)
        if one.interval:
            low, high = (across(min(max(bound, across.low), across.high)) for bound in one.interval)
            self.svg.line(low, y, high, y, stroke=colour, stroke_width=6, stroke_linecap="round", stroke_opacity=0.28)
        self.svg.add("circle", cx=across(mean), cy=y, r=4.5, fill=colour, stroke=theme.paper, stroke_width=1.5)
        self.svg.text(self.style.width - 16, y + 4, self.write(mean), fill=words, text_anchor="end", font_weight=weight)

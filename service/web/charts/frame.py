"""What the charts share: title, axes, and the colours of the arms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.application.reads.recommendation import Recommendation
from service.domain import Arm
from service.web.charts.scales import Scale, clock_name, moment, time_ticks
from service.web.charts.style import ChartStyle
from service.web.charts.svg import Svg, shortened, text_width

TOP = 58
_BOTTOM = 30
_SMALL = 400


@dataclass(frozen=True, slots=True)
class Frame:
    """A picture with its heading, ready to draw in."""

    svg: Svg
    style: ChartStyle
    height: float

    @property
    def floor(self) -> float:
        """Where the plot ends below."""
        return self.height - _BOTTOM

    def axis_up(self, scale: Scale, ticks: Sequence[float], write: Callable[[float], str]) -> None:
        """Horizontal lines with their numbers."""
        theme, (start, end) = self.style.theme, self.style.plot
        for tick in ticks:
            y = scale(tick)
            self.svg.line(start, y, end, y, stroke=theme.grid)
            self.svg.text(start - 8, y + 4, write(tick), fill=theme.muted, text_anchor="end", font_size=11)

    def axis_of_time(self, scale: Scale, start: int, end: int) -> None:
        """Times along the floor."""
        about = 3 if self.style.width < _SMALL else 5
        for at, label in time_ticks(start, end, about, self.style.utc_offset):
            self.svg.text(scale(at), self.floor + 18, label, fill=self.style.theme.muted, text_anchor="middle", font_size=11)

    def legend(self, words: Sequence[tuple[str, str | None]]) -> None:
        """What the kinds of lines mean, at the right of the title: each a word and the dashes of its line."""
        x, theme = self.style.width - 16.0, self.style.theme
        for word, dashes in reversed(words):
            self.svg.text(x, 24, word, fill=theme.muted, font_size=11, text_anchor="end")
            x -= text_width(word, 11) + 6
            drawn = {"stroke_dasharray": dashes, "stroke_linecap": "round"} if dashes else {}
            self.svg.line(x - 20, 20, x, 20, stroke=theme.muted, stroke_width=1.5 if dashes else 2, **drawn)
            x -= 20 + 14

    def say(self, words: str) -> bytes:
        """Words instead of a chart, where there is nothing to draw yet."""
        self.svg.text(
            self.style.width / 2,
            (TOP + self.floor) / 2 + 6,
            words,
            fill=self.style.theme.muted,
            text_anchor="middle",
            font_size=14,
        )
        return self.svg.encode()


def framed(style: ChartStyle, recommendation: Recommendation, title: str, description: str, height: float | None = None) -> Frame:
    """An empty picture with its heading: what is shown, of which experiment, and when."""
    theme, progress = style.theme, recommendation.progress
    tall = float(style.height) if height is None else height
    name = progress.experiment.name or progress.experiment.key
    svg = Svg(style.width, tall, f"{title}: {name}", description)
    svg.add("rect", width=style.width, height=tall, fill=theme.paper)
    draws = sum(one.draws for one in recommendation.standings)
    at = moment(progress.as_of, style.utc_offset)
    rest = f" · {draws:,} draws · {at:%-d %b %Y %H:%M} {clock_name(style.utc_offset)}"
    svg.text(16, 24, title, fill=theme.ink, font_size=14, font_weight=600)
    svg.text(16, 42, shortened(name, style.width - 32 - text_width(rest, 11), 11) + rest, fill=theme.muted, font_size=11)
    return Frame(svg, style, tall)


DASHES = (None, "9 3", "4 3", "12 3 2 3", "6 2 1.5 2")
"""Of the lines of named arms, the leader's first: whoever sees no colours tells them apart by these."""


def colours(style: ChartStyle, arms: Sequence[Arm], leader: Arm | None) -> dict[str, str]:
    """The accent for the leader, another colour for each of a few others, grey for the rest."""
    given: dict[str, str] = {}
    others = iter(style.theme.others)
    for arm in arms:
        is_leader = leader is not None and arm.key == leader.key
        given[arm.key] = style.theme.accent if is_leader else next(others, style.theme.faint)
    return given

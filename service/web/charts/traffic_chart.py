"""Where the traffic goes: each arm's share of the draws over time, against its target."""

from __future__ import annotations

from service.application.reads.course import Course
from service.application.reads.recommendation import Recommendation
from service.domain import Snapshot
from service.web.charts.frame import TOP, Frame, colours, framed
from service.web.charts.scales import Scale, percent, round_ticks
from service.web.charts.style import ChartStyle
from service.web.charts.svg import shortened, spread

_NAMED = 5
_MOST_LINES = 40


def draw_traffic(style: ChartStyle, recommendation: Recommendation, course: Course) -> bytes:
    """The picture: solid lines are shares, dotted ones targets."""
    leader = recommendation.concluded_arm or recommendation.best
    standings = sorted(recommendation.standings, key=lambda one: (one.arm != leader, -one.share, one.arm.position))
    shown = [one.arm for one in standings[:_MOST_LINES]]
    named = shown[:_NAMED]
    described = "; ".join(f"{one.arm.name or one.arm.key} {percent(one.share, 1)}" for one in standings[:10])
    frame = framed(style, recommendation, "Share of the traffic", described)
    points = [point.snapshot for point in course.points if any(point.snapshot.draws)]
    if not points:
        return frame.say("No traffic yet")

    start, end = points[0].at, max(points[-1].at, points[0].at + 1)
    timed = [(point, sum(point.draws)) for point in points]
    lines = {arm.key: _line(timed, arm.position) for arm in shown}
    top = max((max(share, target) for line in lines.values() for _, share, target in line), default=1.0)
    across, up = Scale(start, end, *style.plot), Scale(0.0, min(1.0, top * 1.1), frame.floor, TOP)
    frame.axis_up(up, round_ticks(0.0, up.high, 4), percent)
    frame.axis_of_time(across, start, end)
    colour = colours(style, named, leader)
    for arm in reversed(shown):
        _draw_line(frame, lines[arm.key], across, up, colour.get(arm.key, style.theme.faint), is_named=arm in named)
    last = [lines[arm.key][-1][1] if lines[arm.key] else 0.0 for arm in named]
    for arm, share, y in zip(named, last, spread([up(one) for one in last], 15, TOP + 6, frame.floor), strict=True):
        words = shortened(f"{percent(share)} {arm.name or arm.key}", style.right - 14, 11)
        frame.svg.text(
            style.plot[1] + 8, y + 4, words, fill=colour[arm.key], font_size=11, font_weight=600 if arm == leader else 500
        )
    return frame.svg.encode()


def _line(points: list[tuple[Snapshot, int]], arm: int) -> list[tuple[int, float, float]]:
    """(time, share, target) of one arm, from when it was there."""
    return [(point.at, point.draws[arm] / total, point.targets[arm]) for point, total in points if arm < len(point.draws)]


def _draw_line(
    frame: Frame, line: list[tuple[int, float, float]], across: Scale, up: Scale, colour: str, *, is_named: bool
) -> None:
    if not line:
        return
    places = [(across(at), up(share)) for at, share, _ in line]
    if len(places) == 1:
        frame.svg.add("circle", cx=places[0][0], cy=places[0][1], r=3, fill=colour)
        return
    if is_named:
        targets = [(across(at), up(target)) for at, _, target in line]
        frame.svg.path(targets, stroke=colour, stroke_width=1.25, stroke_dasharray="1 4", stroke_opacity=0.8)
    frame.svg.path(places, stroke=colour, stroke_width=2 if is_named else 1)

"""Where the traffic goes: each arm's share of the draws over time, against its target."""

from __future__ import annotations

from dataclasses import dataclass

from service.application.reads.course import Course
from service.application.reads.recommendation import Recommendation
from service.domain import Arm, Snapshot
from service.web.charts.frame import DASHES, TOP, Frame, colours, framed
from service.web.charts.readings import Reading, Readings, Series, worth_reading
from service.web.charts.scales import Scale, percent, round_ticks
from service.web.charts.style import ChartStyle
from service.web.charts.svg import apart, spread

_NAMED = 5
_MOST_LINES = 40
# Between the middles of two lines.
_BESIDE = 2.6
_TARGET_DASHES = "0.5 4"


@dataclass(frozen=True, slots=True)
class _Moment:
    """Share and target of one arm at one time."""

    at: int
    share: float
    target: float


def draw_traffic(style: ChartStyle, recommendation: Recommendation, course: Course) -> bytes:
    """The picture: strong lines are shares, fine dotted ones targets."""
    leader = recommendation.concluded_arm or recommendation.best
    standings = sorted(recommendation.standings, key=lambda one: (one.arm != leader, -one.share, one.arm.position))
    shown = [one.arm for one in standings[:_MOST_LINES]]
    named = shown[:_NAMED]
    described = "; ".join(f"{one.arm.name or one.arm.key} {percent(one.share, 1)}" for one in standings[:10])
    frame = framed(style, recommendation, "Share of the traffic", described)
    points = [point.snapshot for point in course.points if any(point.snapshot.draws)]
    if not points:
        return frame.say("No traffic yet")

    frame.legend([("share", None), ("target", _TARGET_DASHES)])
    start, end = min(points[0].at, points[-1].at - 1), points[-1].at
    timed = [(point, sum(point.draws)) for point in points]
    lines = {arm.key: _line(timed, arm.position) for arm in shown}
    top = max((max(one.share, one.target) for line in lines.values() for one in line), default=1.0)
    across, up = Scale(start, end, *style.plot), Scale(0.0, min(1.0, top * 1.1), frame.floor, TOP)
    frame.axis_up(up, round_ticks(0.0, up.high, 4), percent)
    frame.axis_of_time(across, start, end)
    colour = colours(style, named, leader)
    for arm in shown[_NAMED:]:
        _draw_places(frame, [(across(one.at), up(one.share)) for one in lines[arm.key]], colour=style.theme.faint)
    for arm in named:
        _draw_target(frame, lines[arm.key], across, up, colour=colour[arm.key])
    looks = dict(zip((arm.key for arm in named), DASHES, strict=False))
    for arm, places in zip(named, _side_by_side(timed, named, across, up), strict=True):
        _draw_places(frame, places, colour=colour[arm.key], width=2.5 if arm == named[0] else 2.0, dashes=looks[arm.key])
    _draw_labels(frame, named, lines, up, colour)
    series = [Series(arm.name or arm.key, colour[arm.key], looks[arm.key]) for arm in named]
    frame.svg.attach(_readings(timed, named, series, across, up, others=len(recommendation.standings) - len(named)).encode())
    return frame.svg.encode()


def _line(points: list[tuple[Snapshot, int]], arm: int) -> list[_Moment]:
    """One arm from when it was there."""
    return [_Moment(point.at, point.draws[arm] / total, point.targets[arm]) for point, total in points if arm < len(point.draws)]


def _side_by_side(
    timed: list[tuple[Snapshot, int]], named: list[Arm], across: Scale, up: Scale
) -> list[list[tuple[float, float]]]:
    """The places of the named lines. Where they would lie on each other they lie side by side."""
    places: list[list[tuple[float, float]]] = [[] for _ in named]
    for snapshot, total in timed:
        there = [number for number, arm in enumerate(named) if arm.position < len(snapshot.draws)]
        heights = apart([up(snapshot.draws[named[number].position] / total) for number in there], _BESIDE)
        for number, y in zip(there, heights, strict=True):
            places[number].append((across(snapshot.at), y))
    return places


def _draw_places(
    frame: Frame, places: list[tuple[float, float]], *, colour: str, width: float = 1.0, dashes: str | None = None
) -> None:
    if len(places) == 1:
        frame.svg.add("circle", cx=places[0][0], cy=places[0][1], r=3, fill=colour)
    elif places:
        frame.svg.path(places, stroke=colour, stroke_width=width, **({"stroke_dasharray": dashes} if dashes else {}))


def _draw_target(frame: Frame, line: list[_Moment], across: Scale, up: Scale, *, colour: str) -> None:
    if len(line) > 1:
        places = [(across(one.at), up(one.target)) for one in line]
        frame.svg.path(places, stroke=colour, stroke_width=1.5, stroke_dasharray=_TARGET_DASHES, stroke_opacity=0.9)


def _draw_labels(frame: Frame, named: list[Arm], lines: dict[str, list[_Moment]], up: Scale, colour: dict[str, str]) -> None:
    """A name and a number for each line, apart from each other, with a thread to the line's end."""
    edge = frame.style.plot[1]
    last = [lines[arm.key][-1].share if lines[arm.key] else 0.0 for arm in named]
    for arm, share, y in zip(named, last, spread([up(one) for one in last], 15, TOP + 6, frame.floor), strict=True):
        weight = 600 if arm == named[0] else 500
        frame.svg.line(edge + 1, up(share), edge + 9, y, stroke=colour[arm.key], stroke_opacity=0.6)
        words, room = f"{percent(share)} {arm.name or arm.key}", frame.style.right - 20
        frame.svg.label(edge + 12, y + 4, words, room, fill=colour[arm.key], font_size=11, font_weight=weight)


def _readings(
    timed: list[tuple[Snapshot, int]], named: list[Arm], series: list[Series], across: Scale, up: Scale, *, others: int
) -> Readings:
    found = Readings("x", (TOP, up.start), series + ([Series(f"{others:,} others", "")] if others else []))
    for snapshot, total in worth_reading(timed):
        there = [arm.position if arm.position < len(snapshot.draws) else None for arm in named]
        shares = [None if place is None else snapshot.draws[place] / total for place in there]
        values = [
            None if share is None or place is None else f"{percent(share, 1)} (target {percent(snapshot.targets[place], 1)})"
            for place, share in zip(there, shares, strict=True)
        ]
        dots = [None if share is None else up(share) for share in shares]
        if others:
            values.append(percent(max(0.0, 1.0 - sum(share or 0.0 for share in shares)), 1))
            dots.append(None)
        found.readings.append(Reading(snapshot.at, across(snapshot.at), values, dots))
    return found

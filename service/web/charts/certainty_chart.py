"""How far the verdict is: over time, the evidence of the pair of arms that holds it up, as a part of what it needs."""

from __future__ import annotations

from itertools import groupby

from service.application.reads.course import Course, Point
from service.application.reads.recommendation import Recommendation
from service.domain import Arm
from service.web.charts.frame import TOP, Frame, colours, framed
from service.web.charts.readings import Reading, Readings, Series, worth_reading
from service.web.charts.scales import Scale, percent, progress
from service.web.charts.style import ChartStyle
from service.web.charts.svg import text_width

_STRIP = 22
_ALMOST = 0.99


def draw_certainty(style: ChartStyle, recommendation: Recommendation, course: Course) -> bytes:
    """The picture: progress as a line, where the verdict fell as a mark, the arm that led at each time as a strip below."""
    verdict = recommendation.verdict
    described = f"{progress(verdict.progress)} of the evidence that a verdict needs"
    if verdict.held_up_by is not None:
        described += f", held up by {_name(recommendation.standings[verdict.held_up_by].arm)}"
    frame = framed(style, recommendation, "Progress to the verdict", described)
    points = [point for point in course.points if point.best]
    if not points:
        return frame.say("Too early to tell")

    theme, svg = style.theme, frame.svg
    start, end = min(points[0].snapshot.at, points[-1].snapshot.at - 1), points[-1].snapshot.at
    floor = frame.floor - _STRIP
    across, up = Scale(start, end, *style.plot), Scale(0.0, 1.0, floor, TOP)
    frame.axis_up(up, [0.0, 0.25, 0.5, 0.75, 1.0], percent)
    frame.axis_of_time(across, start, end)
    parts = _parts(recommendation, points)
    places = [(across(point.snapshot.at), up(part)) for point, part in zip(points, parts, strict=True)]
    svg.area(places, floor, fill=theme.accent, fill_opacity=0.12)
    svg.path(places, stroke=theme.accent, stroke_width=2)
    svg.add("circle", cx=places[-1][0], cy=places[-1][1], r=4, fill=theme.accent, stroke=theme.paper, stroke_width=1.5)
    newest = "shown" if parts[-1] >= 1.0 else progress(parts[-1])
    svg.text(style.plot[1] + 10, max(places[-1][1], TOP + 4) + 4, newest, fill=theme.accent, font_weight=600)
    _draw_verdict(frame, recommendation, points, across)
    _draw_leaders(frame, recommendation, points, across)
    svg.attach(_readings(points, parts, across, up, theme.accent).encode())
    return svg.encode()


def _name(arm: Arm) -> str:
    return arm.name or arm.key


def _parts(recommendation: Recommendation, points: list[Point]) -> list[float]:
    """The least evidence against a rival at each time. What was found is kept, so the line stays up from then on; it ends now."""
    found = recommendation.verdict.separated_at
    parts = []
    for point in points:
        part = min((part for part in point.certainty.evidence if part is not None), default=0.0)
        if found is not None:  # before that, nobody had looked at the right moment
            part = 1.0 if point.snapshot.at >= found else min(part, _ALMOST)
        parts.append(part)
    return [*parts[:-1], recommendation.verdict.progress]


def _draw_verdict(frame: Frame, recommendation: Recommendation, points: list[Point], across: Scale) -> None:
    """Where the verdict fell that holds now."""
    verdict = recommendation.verdict
    at, words = (verdict.separated_at, "separated") if verdict.separated else (verdict.since, "decided")
    if at is None and verdict.separated:  # seen, and not kept yet
        at = next(point.snapshot.at for point in reversed(points))
    if at is None:
        return
    x, theme = across(min(max(at, across.low), across.high)), frame.style.theme
    frame.svg.line(x, TOP, x, frame.floor, stroke=theme.ink, stroke_dasharray="3 3")
    frame.svg.add("circle", cx=x, cy=TOP, r=6, fill=theme.ink)
    frame.svg.path([(x - 2.8, TOP + 0.2), (x - 0.8, TOP + 2.4), (x + 2.9, TOP - 2)], stroke=theme.paper, stroke_width=1.6)
    fits = x + 12 + text_width(words, 11, 600) < frame.style.plot[1]
    frame.svg.text(
        x + (10 if fits else -10),
        TOP + 18,
        words,
        fill=theme.ink,
        font_size=11,
        font_weight=600,
        text_anchor="start" if fits else "end",
    )


def _draw_leaders(frame: Frame, recommendation: Recommendation, points: list[Point], across: Scale) -> None:
    """A strip that shows which arm was recommended when."""
    arms = list({point.best.key: point.best for point in points if point.best}.values())
    colour = colours(frame.style, arms, recommendation.best)
    runs = [(best, [point.snapshot.at for point in run]) for best, run in groupby(points, key=lambda point: point.best)]
    y = frame.floor - 10
    for index, (best, times) in enumerate(runs):
        until = runs[index + 1][1][0] if index + 1 < len(runs) else times[-1]
        start, end = across(times[0]), across(until)
        if best is not None:
            frame.svg.add("rect", x=start, y=y, width=max(end - start, 1.0), height=6, rx=1, fill=colour[best.key])
    last = runs[-1][0]
    if last is not None:
        x, room, ink = frame.style.plot[1] + 10, frame.style.right - 14, colour[last.key]
        words = f"{_name(last)} leads"
        words = words if text_width(words, 11, 600) <= room else _name(last)
        frame.svg.label(x, y + 7, words, room, fill=ink, font_size=11, font_weight=600)


def _readings(points: list[Point], parts: list[float], across: Scale, up: Scale, colour: str) -> Readings:
    found = Readings("x", (TOP, up.start + _STRIP), [Series("Progress", colour), Series("Leads", "")])
    for point, part in worth_reading(list(zip(points, parts, strict=True))):
        leads = None if point.best is None else _name(point.best)
        found.readings.append(Reading(point.snapshot.at, across(point.snapshot.at), [progress(part), leads], [up(part), None]))
    return found

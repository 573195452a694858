"""How sure it is: one minus the estimated chance that the recommended arm is not the best, over time."""

from __future__ import annotations

from itertools import groupby

from service.application.reads.course import Course, Point
from service.application.reads.recommendation import Recommendation
from service.web.charts.frame import TOP, Frame, colours, framed
from service.web.charts.scales import Scale, percent
from service.web.charts.style import ChartStyle
from service.web.charts.svg import shortened

_STRIP = 22


def draw_certainty(style: ChartStyle, recommendation: Recommendation, course: Course) -> bytes:
    """The picture: the estimate as a line, the arm that led at each time as a strip below."""
    error = recommendation.error_estimate
    described = "Not known yet" if error is None else f"{percent(1 - error, 1)} that the recommended arm is the best, by estimate"
    frame = framed(style, recommendation, "Certainty of the recommendation", described)
    points = [point for point in course.points if point.best]
    known = [point for point in points if point.certainty.error_estimate is not None]
    if not known:
        return frame.say("Too early to tell")

    theme, svg = style.theme, frame.svg
    start, end = points[0].snapshot.at, max(points[-1].snapshot.at, points[0].snapshot.at + 1)
    floor = frame.floor - _STRIP
    across, up = Scale(start, end, *style.plot), Scale(0.0, 1.0, floor, TOP)
    frame.axis_up(up, [0.0, 0.25, 0.5, 0.75, 1.0], percent)
    frame.axis_of_time(across, start, end)
    places = [(across(point.snapshot.at), up(1 - (point.certainty.error_estimate or 0.0))) for point in known]
    svg.area(places, floor, fill=theme.accent, fill_opacity=0.12)
    svg.path(places, stroke=theme.accent, stroke_width=2)
    svg.add("circle", cx=places[-1][0], cy=places[-1][1], r=4, fill=theme.accent, stroke=theme.paper, stroke_width=1.5)
    newest = percent(1 - (known[-1].certainty.error_estimate or 0.0), 1)
    svg.text(style.plot[1] + 10, places[-1][1] + 4, newest, fill=theme.accent, font_weight=600)
    _draw_separation(frame, points, across)
    _draw_leaders(frame, recommendation, points, across)
    return svg.encode()


def _draw_separation(frame: Frame, points: list[Point], across: Scale) -> None:
    """From when on the lead has been proven at the chosen confidence."""
    proven = None
    for point in reversed(points):
        if not point.certainty.separated:
            break
        proven = point
    if proven is None:
        return
    x, theme = across(proven.snapshot.at), frame.style.theme
    frame.svg.line(x, TOP, x, frame.floor, stroke=theme.ink, stroke_dasharray="3 3")
    right = x < sum(across(at) for at in (across.low, across.high)) / 2
    frame.svg.text(
        x + (6 if right else -6), TOP + 10, "separated", fill=theme.ink, font_size=11, text_anchor="start" if right else "end"
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
        words = shortened(last.name or last.key, frame.style.right - 18, 11)
        frame.svg.text(frame.style.plot[1] + 10, y + 7, words, fill=colour[last.key], font_size=11, font_weight=600)

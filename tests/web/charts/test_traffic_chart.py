"""Shares of the traffic over time."""

from __future__ import annotations

import pytest

from service.web.charts import draw_traffic, style_for
from service.web.charts.style import SizeName
from tests.web.charts.played import HOUR, lines, played, readings, require_room, words


def test_lines_that_lie_on_each_other_are_told_apart() -> None:
    """Arms with the same share all along lie side by side, around their place, each in its colour and its dashes."""
    picture = draw_traffic(style_for("light", "large"), *played([0.2, 0.4, 0.1]))
    drawn = [one for one in lines(picture) if one.get("stroke-opacity") is None]
    heights = [[float(place.split(",")[1]) for place in one["points"].split()] for one in drawn]
    assert len({one.get("stroke-dasharray") for one in drawn}) == 3
    assert len({one["stroke"] for one in drawn}) == 3
    dots = readings(picture)["readings"][-1]["dots"]
    for together in zip(*heights, strict=True):
        upper, middle, lower = sorted(together)
        assert middle - upper == pytest.approx(lower - middle) == pytest.approx(2.6, abs=0.11)
        assert middle == pytest.approx(dots[0], abs=0.11)


def test_target_lines_have_a_legend() -> None:
    """What the dotted ones are is said beside the title."""
    picture = draw_traffic(style_for("light", "large"), *played([0.2, 0.4]))
    assert words(picture)[2:4] == ["target", "share"]
    assert sum(one.get("stroke-opacity") is not None for one in lines(picture)) == 2


@pytest.mark.parametrize("size", ["small", "large"])
def test_words_have_room(size: SizeName) -> None:
    """Long names are cut at the right edge, and no label lies on another."""
    names = ["W" * 80, "测试" * 40, "An arm with a name that is far too long for any picture"]
    require_room(draw_traffic(style_for("dark", size), *played([0.2, 0.4, 0.1], names=names)))


def test_its_numbers_can_be_read() -> None:
    """At every time the share and the target of each named arm, those of the others together, and where their dots stand."""
    told = readings(draw_traffic(style_for("light", "large"), *played([0.5 - 0.01 * place for place in range(8)])))
    assert told["axis"] == "x"
    assert [one["name"] for one in told["series"]][-1] == "3 others"
    last = told["readings"][-1]
    assert last["of"] % (HOUR // 1000) == told["readings"][0]["of"] % (HOUR // 1000)
    assert last["values"][0].startswith("12.5% (target ")
    assert last["values"][-1] == "37.5%"
    assert last["dots"][-1] is None
    assert all(told["span"][0] <= dot <= told["span"][1] for dot in last["dots"][:-1])


def test_of_many_points_some_are_read() -> None:
    """As many as a pointer can tell apart, the newest among them."""
    recommendation, course = played([0.2, 0.4], rounds=500)
    told = readings(draw_traffic(style_for("light", "large"), recommendation, course))["readings"]
    assert 60 <= len(told) <= 130
    assert told[-1]["of"] == course.points[-1].snapshot.at // 1000


def test_before_any_draw_it_says_so() -> None:
    """And there is nothing to read."""
    assert "No traffic yet" in words(draw_traffic(style_for("light", "large"), *played([0.2, 0.4], rounds=0)))

"""Means with their intervals, against the control."""

from __future__ import annotations

import pytest

from service.domain import RewardSpec
from service.web.charts import draw_means, style_for
from service.web.charts.style import SizeName
from tests.web.charts.played import lines, parsed, played, readings, require_room, words

LONG = "An arm with a name that is far too long for any picture, however wide"


def test_the_control_is_a_line_to_beat() -> None:
    """A dashed line at its mean, a legend that says so, and each arm's lift before its mean."""
    recommendation, _ = played([0.2, 0.4, 0.1], control=0)
    picture = draw_means(style_for("light", "large"), recommendation)
    said = words(picture)
    control = recommendation.standings[0]
    assert "mean of the control" in said
    assert "control" in said
    dashed = [one.attrib for one in parsed(picture).iter("{http://www.w3.org/2000/svg}line") if "stroke-dasharray" in one.attrib]
    (reference, legend) = sorted(dashed, key=lambda one: one["x1"] != one["x2"])
    assert reference["x1"] == reference["x2"]
    dots = {one.attrib["cx"] for one in parsed(picture).iter("{http://www.w3.org/2000/svg}circle")}
    assert reference["x1"] in dots
    assert legend["stroke-dasharray"] == reference["stroke-dasharray"]
    told = readings(picture)
    assert [series["name"] for series in told["series"]] == ["Over the control", "Mean", "Interval", "Observed"]
    by_name = {one["of"]: one["values"] for one in told["readings"]}
    assert by_name["Arm 0"][0] is None
    lift = recommendation.standings[1].lift
    assert lift is not None
    assert lift.ratio is not None
    assert by_name["Arm 1"][0].startswith(f"+{(lift.ratio - 1) * 100:.0f}% (")
    assert by_name["Arm 0"][1] == f"{(control.mean or 0) * 100:.1f}%"


def test_without_a_control_there_is_no_lift() -> None:
    """Neither a line nor a column nor a reading of it."""
    recommendation, _ = played([0.2, 0.4])
    picture = draw_means(style_for("light", "large"), recommendation)
    assert "mean of the control" not in words(picture)
    assert [series["name"] for series in readings(picture)["series"]] == ["Mean", "Interval", "Observed"]
    assert lines(picture) == []


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("control", [None, 2])
def test_words_have_room(size: SizeName, control: int | None) -> None:
    """Names of any length, in any script, run neither out of the picture nor into each other."""
    names = [LONG, "W" * 80, "测试" * 40, "i"]
    recommendation, _ = played([0.2, 0.4, 0.35, 0.3], names=names, control=control)
    picture = draw_means(style_for("light", size), recommendation)
    require_room(picture)
    assert [one["of"] for one in readings(picture)["readings"] if one["of"] == LONG] == [LONG]


def test_of_many_arms_the_best_are_shown_and_the_control() -> None:
    """Thirty rows at most, the control among them however bad it is, and how many more there are."""
    recommendation, _ = played([0.95 - 0.015 * place for place in range(40)], control=39)
    picture = draw_means(style_for("light", "large"), recommendation)
    rows = [one["of"] for one in readings(picture)["readings"]]
    assert len(rows) == 30
    assert recommendation.best is not None
    assert rows[0] == recommendation.best.name
    assert rows[-1] == "Arm 39"
    assert "+ 10 more" in words(picture)


def test_numbers_of_one_picture_have_the_same_digits() -> None:
    """Rewards that are no rates are written with as many digits as their differences need."""
    recommendation, _ = played([0.2, 0.4], reward=RewardSpec("bounded", "maximize", 0.0, 1.0))
    values = [one["values"][0] for one in readings(draw_means(style_for("light", "large"), recommendation))["readings"]]
    assert len({len(value.partition(".")[2]) for value in values}) == 1


def test_before_any_reward_it_says_so() -> None:
    """And there is nothing to read."""
    recommendation, _ = played([0.2, 0.4], rounds=0)
    picture = draw_means(style_for("light", "small"), recommendation)
    assert "No rewards yet" in words(picture)
    assert b"<metadata>" not in picture

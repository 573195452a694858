"""What the pictures share."""

from __future__ import annotations

from service.web.charts import draw_means, draw_traffic, style_for
from tests.web.charts.played import played, words


def test_a_picture_says_which_clock_its_times_are_told_by() -> None:
    """UTC where it is embedded elsewhere; the viewer's where that is asked for, in the heading and along the axis."""
    recommendation, course = played([0.2, 0.4], rounds=12)
    heading, *others = words(draw_traffic(style_for("light", "large"), recommendation, course))[1:]
    there, *shifted = words(draw_traffic(style_for("light", "large", 330), recommendation, course))[1:]
    assert heading.endswith("16 Jun 2025 03:06 UTC")
    assert there.endswith("16 Jun 2025 08:36 UTC+05:30")
    assert [word for word in others if ":" in word] != [word for word in shifted if ":" in word]


def test_a_long_name_leaves_room_for_the_rest_of_the_heading() -> None:
    """The name is cut, draws and time are not."""
    recommendation, _ = played([0.2, 0.4], name="A name " * 30)
    heading = words(draw_means(style_for("light", "small"), recommendation))[1]
    assert "… · 800 draws · " in heading
    assert heading.endswith(" UTC")

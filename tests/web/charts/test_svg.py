"""Writing SVG: text stays text, and stays in its room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.web.charts.svg import Svg, apart, shortened, spread, text_width
from tests.web.charts.played import parsed, words


@given(st.text(max_size=60), st.floats(20, 300))
def test_a_shortened_text_fits(text: str, width: float) -> None:
    """Whatever the letters; one letter and the ellipsis are always shown."""
    shown = shortened(text, width)
    assert text_width(shown) <= width or len(shown) <= 2
    assert shown == text or shown.endswith("…")


def test_wide_letters_take_more_room_than_narrow_ones() -> None:
    """A name in capitals or in Chinese is cut earlier than one of thin letters; bold is wider."""
    assert text_width("MMMM") > text_width("mnmn") > text_width("illi")
    assert text_width("测试") > text_width("te")
    assert text_width("name", weight=600) > text_width("name")
    assert len(shortened("W" * 50, 100)) < len(shortened("i" * 50, 100))


def test_a_cut_label_tells_the_whole_to_whoever_points_at_it() -> None:
    """The words are cut, their title is not; words that fit have none."""
    svg = Svg(100, 50, "title", "description")
    svg.label(0, 10, "A very long name <of> an arm", 60)
    svg.label(0, 30, "short", 60)
    root = parsed(svg.encode())
    titles = [one.text for one in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["title", "A very long name <of> an arm"]
    assert words(svg.encode())[0].endswith("…")
    assert words(svg.encode())[1] == "short"


def test_what_is_attached_comes_back_as_it_was() -> None:
    """Quotation marks, angle brackets and ampersands in names survive."""
    svg = Svg(10, 10, "", "")
    svg.attach('{"name": "a<b>&\\"c"}')
    assert parsed(svg.encode()).findtext("{http://www.w3.org/2000/svg}metadata") == '{"name": "a<b>&\\"c"}'


def test_labels_are_spread_apart_in_their_order() -> None:
    """As close to where they are wanted as the gap allows."""
    assert spread([50, 50, 10], 15, 0, 100) == [50, 65, 10]
    assert spread([95, 99], 15, 0, 100) == [85, 100]


def test_lines_that_are_too_close_lie_side_by_side() -> None:
    """Around their middle and in their order; the others stay where they are."""
    assert apart([50, 50, 10, 53, 50], 2) == [48, 50, 10, 53, 52]
    assert apart([], 2) == []
    assert apart([7], 2) == [7]

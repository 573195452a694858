"""The numbers behind a picture."""

from __future__ import annotations

import json
from itertools import pairwise

from service.web.charts.readings import Reading, Readings, Series, worth_reading


def test_readings_are_thinned_from_the_newest_on() -> None:
    """The last one is always there, and the gaps are even; of a few, all are."""
    kept = worth_reading(range(1, 400))
    assert kept[-1] == 399
    assert len({later - earlier for earlier, later in pairwise(kept)}) == 1
    assert len(kept) <= 121
    assert worth_reading(range(100)) == list(range(100))
    assert worth_reading([]) == []


def test_one_reading_is_enough() -> None:
    """And its places are rounded to what a screen can show."""
    told = Readings("y", (1.23456, 9.0), [Series("a", "")], [Reading("Green", 7.77777, [None], [None])])
    content = json.loads(told.encode())
    assert content["readings"] == [{"of": "Green", "place": 7.8, "values": [None], "dots": [None]}]
    assert content["span"] == [1.2, 9.0]
